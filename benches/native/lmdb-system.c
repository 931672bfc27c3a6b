/* LMDB's driver against hand-written loops on the same environment. */
#include "../../engines/lmdb-system/driver.c"
#include "fidelity.h"

typedef struct hand {
  MDB_env *environment;
  MDB_dbi keyspace;
  MDB_txn *reader; /* renewed and reset for each op, as LMDB's manual advises */
  MDB_cursor *cursor;
} hand;

static void *begin_by_hand(kv_database *database) {
  hand *made = calloc(1, sizeof(hand));
  fidelity_check(made != NULL, "out of memory");
  made->environment = database->environment;
  made->keyspace = database->databases[0];
  fidelity_check(mdb_txn_begin(made->environment, NULL, MDB_RDONLY, &made->reader) == 0, "begin");
  fidelity_check(mdb_cursor_open(made->reader, made->keyspace, &made->cursor) == 0, "cursor");
  mdb_txn_reset(made->reader);
  return made;
}

static void end_by_hand(void *state) {
  hand *own = state;
  mdb_cursor_close(own->cursor);
  mdb_txn_abort(own->reader);
  free(own);
}

KV_INLINE void put_in(MDB_txn *writer, MDB_dbi keyspace, const fidelity_op *op) {
  MDB_val key = {KEY_BYTES, (void *)op->key}, value = {VALUE_BYTES, (void *)op->value};
  fidelity_check(mdb_put(writer, keyspace, &key, &value, 0) == 0, "put");
}

static void put_by_hand(void *state, fidelity_block *block) {
  const hand *own = state;
  FIDELITY_EACH(op, block) {
    MDB_txn *writer;
    fidelity_check(mdb_txn_begin(own->environment, NULL, 0, &writer) == 0, "begin");
    put_in(writer, own->keyspace, op);
    fidelity_check(mdb_txn_commit(writer) == 0, "commit");
  }
}

static void put_joined_by_hand(void *state, fidelity_block *block) {
  const hand *own = state;
  MDB_txn *writer;
  block->start = kv_ticks(FIDELITY_CLOCK);
  fidelity_check(mdb_txn_begin(own->environment, NULL, 0, &writer) == 0, "begin");
  for (fidelity_op *op = block->ops; op != block->after; op++) put_in(writer, own->keyspace, op);
  fidelity_check(mdb_txn_commit(writer) == 0, "commit");
  block->after[-1].end = kv_ticks(FIDELITY_CLOCK);
}

static void get_by_hand(void *state, fidelity_block *block) {
  const hand *own = state;
  FIDELITY_EACH(op, block) {
    MDB_val key = {KEY_BYTES, (void *)op->key}, value;
    fidelity_check(mdb_txn_renew(own->reader) == 0, "renew");
    fidelity_check(mdb_get(own->reader, own->keyspace, &key, &value) == 0, "get");
    fidelity_check(value.mv_size <= VALUE_BYTES, "get: too long");
    memcpy(op->out, value.mv_data, value.mv_size);
    op->length = value.mv_size;
    mdb_txn_reset(own->reader);
  }
}

static void scan_by_hand(void *state, fidelity_block *block) {
  const hand *own = state;
  FIDELITY_EACH(op, block) {
    MDB_val key = {KEY_BYTES, (void *)op->key}, value;
    fidelity_check(mdb_txn_renew(own->reader) == 0, "renew");
    fidelity_check(mdb_cursor_renew(own->reader, own->cursor) == 0, "renew the cursor");
    int code = mdb_cursor_get(own->cursor, &key, &value, MDB_SET_RANGE);
    for (int row = 0; code == 0; code = mdb_cursor_get(own->cursor, &key, &value, MDB_NEXT)) {
      fidelity_row(op, key.mv_data, key.mv_size, value.mv_data, value.mv_size);
      if (++row == SCAN_ROWS) break;
    }
    mdb_txn_reset(own->reader);
  }
}

int main(int argc, char **argv) {
  static const fidelity_hand alone = {.name = "lmdb-system",
                                      .level = KV_PROCESS,
                                      .begin = begin_by_hand,
                                      .put = put_by_hand,
                                      .get = get_by_hand,
                                      .scan = scan_by_hand,
                                      .end = end_by_hand};
  static const fidelity_hand joined = {.name = "lmdb-system",
                                       .level = KV_PROCESS,
                                       .begin = begin_by_hand,
                                       .put = put_joined_by_hand,
                                       .end = end_by_hand};
  if (fidelity_main(argc, argv, &alone) != 0) return 1;
  fidelity_is_joined = 1;
  return fidelity_main(argc, argv, &joined);
}
