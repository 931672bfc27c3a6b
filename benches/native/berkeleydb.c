/* Berkeley DB's driver against a hand-written loop on the same DB handle. */
#include "../../engines/berkeleydb/driver.c"
#include "fidelity.h"

/* The buffer of the loop's bulk get: the rows of a scan, on pages that random inserts left two thirds full. */
enum { BULK_BYTES = 32 << 10 };

typedef struct hand {
  DB *db;
  uint8_t *bulk;
} hand;

static void *begin(kv_database *database) {
  hand *own = malloc(sizeof(hand));
  fidelity_check(own != NULL, "out of memory");
  own->db = database->keyspaces[0].db;
  own->bulk = malloc(BULK_BYTES);
  fidelity_check(own->bulk != NULL, "out of memory");
  memset(own->bulk, 0, BULK_BYTES);
  return own;
}

static void end(void *state) {
  free(((hand *)state)->bulk);
  free(state);
}

/* Two threads that split pages can deadlock; like the driver, the loop then tries again. */
static void hand_put(void *state, fidelity_block *block) {
  hand *own = state;
  FIDELITY_EACH(op, block) {
    DBT key, value;
    int code;
    memset(&key, 0, sizeof(key));
    memset(&value, 0, sizeof(value));
    key.data = (void *)(uintptr_t)op->key;
    key.size = KEY_BYTES;
    value.data = (void *)(uintptr_t)op->value;
    value.size = VALUE_BYTES;
    do code = own->db->put(own->db, NULL, &key, &value, 0);
    while (code == DB_LOCK_DEADLOCK);
    fidelity_check(code == 0, "put");
  }
}

static void hand_get(void *state, fidelity_block *block) {
  hand *own = state;
  FIDELITY_EACH(op, block) {
    DBT key, value;
    memset(&key, 0, sizeof(key));
    memset(&value, 0, sizeof(value));
    key.data = (void *)(uintptr_t)op->key;
    key.size = KEY_BYTES;
    value.data = op->out;
    value.ulen = VALUE_BYTES;
    value.flags = DB_DBT_USERMEM;
    fidelity_check(own->db->get(own->db, NULL, &key, &value, 0) == 0, "get");
    op->length = value.size;
  }
}

static void hand_scan(void *state, fidelity_block *block) {
  hand *own = state;
  FIDELITY_EACH(op, block) {
    uint8_t first[KEY_BYTES];
    DBT key, bulk;
    DBC *cursor;
    uint32_t flags = DB_SET_RANGE | DB_MULTIPLE_KEY;
    int rows = 0;
    memset(&key, 0, sizeof(key));
    memset(&bulk, 0, sizeof(bulk));
    memcpy(first, op->key, KEY_BYTES);
    key.data = first;
    key.size = key.ulen = KEY_BYTES;
    key.flags = bulk.flags = DB_DBT_USERMEM;
    bulk.data = own->bulk;
    bulk.ulen = BULK_BYTES;
    fidelity_check(own->db->cursor(own->db, NULL, &cursor, 0) == 0, "cursor");
    while (rows < SCAN_ROWS && cursor->get(cursor, &key, &bulk, flags) == 0) {
      void *at, *row_key, *value;
      size_t key_length, value_length;
      DB_MULTIPLE_INIT(at, &bulk);
      for (; rows < SCAN_ROWS; rows++) {
        DB_MULTIPLE_KEY_NEXT(at, &bulk, row_key, key_length, value, value_length);
        if (at == NULL) break;
        fidelity_row(op, row_key, key_length, value, value_length);
      }
      flags = DB_NEXT | DB_MULTIPLE_KEY;
    }
    fidelity_check(cursor->close(cursor) == 0, "close");
  }
}

int main(int argc, char **argv) {
  /* No checkpoint and no new log file within a round: their syncs would affect one side only. */
  static const fidelity_hand by_hand = {
      "berkeleydb",
      KV_PROCESS,
      {{"checkpoint_seconds", "0"}, {"checkpoint_log", "0"}, {"log_file", "134217728"}, {NULL, NULL}},
      begin,
      hand_put,
      hand_get,
      hand_scan,
      end};
  return fidelity_main(argc, argv, &by_hand);
}
