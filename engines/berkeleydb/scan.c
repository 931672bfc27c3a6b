/* Scans of Berkeley DB: upward by bulk get, complete pages per call; in reverse and through an index row by row. */
#include "berkeleydb.h"

enum {
  BULK_MAX = 256 << 10,
  ROW_SIZE_FIRST = 128,
  HELD_ROWS_MAX = 16 /* per call of a held scan: for more, a search and bulk get are faster than steps */
};

/* Makes the session's buffer at least this large. */
int make_room(kv_session *session, uint64_t bytes) {
  const uint64_t wanted = (bytes + 1023) / 1024 * 1024; /* bulk get requires multiples of 1 KiB */
  uint8_t *room;
  if (wanted <= session->bulk_size) return 0;
  if (wanted > UINT32_MAX || (room = realloc(session->bulk, wanted)) == NULL) return ENOMEM;
  session->bulk = room;
  session->bulk_size = (uint32_t)wanted;
  return 0;
}

/* Whether an unordered scan skips the row: kv_rows_push would end the scan there. */
static int is_elsewhere(const kv_op *op, const void *key, size_t length) {
  return length < op->value_length || memcmp(key, op->value, op->value_length) != 0;
}

/* Offers the rows of a full bulk buffer. */
static int push_all(kv_rows *rows, DBT *bulk, int is_hash, int hides_values) {
  void *at, *key, *value;
  size_t key_length, value_length;
  DB_MULTIPLE_INIT(at, bulk);
  for (;;) {
    DB_MULTIPLE_KEY_NEXT(at, bulk, key, key_length, value, value_length);
    if (at == NULL) return 1;
    if (is_hash && is_elsewhere(rows->op, key, key_length)) continue;
    if (!kv_rows_push(rows, key, key_length, value, hides_values ? 0 : value_length)) return 0;
  }
}

/* The first call's buffer: for the requested rows, in pages that are three quarters full, and one partial page. */
static uint32_t first_size(const kv_session *session, const kv_op *op) {
  const uint32_t page = session->database->page_size;
  const uint32_t row = session->row_size != 0 ? session->row_size : ROW_SIZE_FIRST;
  uint64_t bytes = ((uint64_t)op->limit * (row + 16)) * 4 / 3 + page;
  if (bytes > op->out_size + (uint64_t)page) bytes = op->out_size + (uint64_t)page;
  if (bytes > BULK_MAX) bytes = BULK_MAX;
  if (bytes < page) bytes = page;
  return (uint32_t)((bytes + 1023) / 1024 * 1024);
}

/* A step of a cursor, with a larger buffer if it was too small. */
static int step(kv_session *session, DBC *cursor, DBT *key, DBT *data, uint32_t flags) {
  for (;;) {
    int code = cursor->get(cursor, key, data, flags);
    if (code != DB_BUFFER_SMALL) return code;
    if (key->size > key->ulen) return KEY_TOO_LONG;
    if (data->size <= data->ulen) data->size = data->ulen * 2;
    code = make_room(session, data->size);
    if (code != 0) return code;
    data->data = session->bulk;
    data->ulen = session->bulk_size;
  }
}

static int scan_bulk(kv_session *session, DBC *cursor, kv_rows *rows, const kv_place *place, int hides_values) {
  const int is_hash = session->database->variant->type == DB_HASH; /* unordered, so there is no place to search for */
  DBT key = {.data = session->key, .size = place->length, .ulen = KEY_ROOM, .flags = DB_DBT_USERMEM};
  DBT bulk = {.flags = DB_DBT_USERMEM};
  uint32_t flags = place->length == 0 ? DB_FIRST : is_hash ? DB_SET : DB_SET_RANGE;
  int code = make_room(session, first_size(session, rows->op));
  if (code != 0) return code;
  bulk.data = session->bulk;
  bulk.ulen = first_size(session, rows->op);
  for (;; flags = DB_NEXT) {
    code = step(session, cursor, &key, &bulk, flags | DB_MULTIPLE_KEY);
    if (code == DB_NOTFOUND) return flags == DB_SET ? PLACE_LOST : 0;
    if (code != 0) return code;
    if (!push_all(rows, &bulk, is_hash, hides_values)) return 0;
    if (bulk.ulen < BULK_MAX && make_room(session, 2 * (uint64_t)bulk.ulen) == 0) bulk.ulen *= 2;
    bulk.data = session->bulk;
  }
}

/* Moves the cursor to the first row of a reverse scan: the last key that is not above, or below, `place`. */
static int seek_down(kv_session *session, DBC *cursor, DBT *key, DBT *value, const kv_place *place) {
  int code, order;
  if (place->length == 0) return step(session, cursor, key, value, DB_LAST);
  code = step(session, cursor, key, value, DB_SET_RANGE);
  if (code == DB_NOTFOUND) return step(session, cursor, key, value, DB_LAST);
  if (code != 0) return code;
  order = kv_compare(key->data, key->size, place->key, place->length);
  if (order == 0 && !place->is_exclusive) return 0;
  return step(session, cursor, key, value, DB_PREV);
}

/* Starts at `place`; without one the cursor is at the row that was written last. */
static int scan_steps(kv_session *session, DBC *cursor, kv_rows *rows, const kv_place *place, int hides_values) {
  const int is_down = (rows->op->flags & KV_REVERSE) != 0;
  DBT key = {
      .data = session->key, .size = place != NULL ? place->length : 0, .ulen = KEY_ROOM, .flags = DB_DBT_USERMEM};
  DBT value = {.data = session->bulk, .ulen = session->bulk_size, .flags = DB_DBT_USERMEM};
  int code;
  if (hides_values || (rows->op->flags & KV_KEYS) != 0) value.flags |= DB_DBT_PARTIAL; /* of no bytes */
  if (place == NULL)
    code = step(session, cursor, &key, &value, is_down ? DB_PREV : DB_NEXT);
  else if (is_down)
    code = seek_down(session, cursor, &key, &value, place);
  else
    code = step(session, cursor, &key, &value, place->length == 0 ? DB_FIRST : DB_SET_RANGE);
  while (code == 0 && kv_rows_push(rows, key.data, key.size, value.data, value.size))
    code = step(session, cursor, &key, &value, is_down ? DB_PREV : DB_NEXT);
  session->key_length = key.size;
  return code == DB_NOTFOUND ? 0 : code;
}

/* Closes the cursor of a held scan, before anything that its locks would block, and before its transaction ends. */
int let_go(kv_session *session) {
  DBC *cursor = session->cursor;
  session->cursor = NULL;
  session->held.is_held = 0;
  return cursor != NULL ? cursor->close(cursor) : 0;
}

/* The next rows of a held scan. */
static int go_on(kv_session *session, kv_op *op) {
  const keyspace *space = &session->database->keyspaces[op->keyspace];
  kv_rows rows = kv_rows_begin(op);
  const int code = rows.is_full ? 0 : scan_steps(session, session->cursor, &rows, NULL, space->hides_values);
  int closed = 0;
  if (code != 0 || !kv_keep(&session->held, &rows)) closed = let_go(session);
  if (code != 0 || closed != 0) return code != 0 ? code : closed;
  return rows.status == KV_SHORT ? DB_BUFFER_SMALL : 0;
}

/* Runs a scan in `transaction` (null: by itself), with a cursor that releases the lock of a page when it leaves it, so
 * that a long scan needs few locks. In a group it keeps them, like the gets of a transaction. */
int scan_in(kv_session *session, kv_op *op, DB_TXN *transaction) {
  kv_database *database = session->database;
  keyspace *space = op->keyspace < database->keyspace_count ? &database->keyspaces[op->keyspace] : NULL;
  const int is_held = (op->flags & KV_HOLD) != 0 && transaction == around(session) && op->limit <= HELD_ROWS_MAX;
  const int is_stepped = is_held || (op->flags & KV_REVERSE) != 0 || (space != NULL && space->db == space->secondary);
  kv_rows rows = kv_rows_begin(op);
  uint32_t flags = 0;
  DBC *cursor;
  int code, closed;
  if (is_held && kv_goes_on(&session->held, op, session->key, session->key_length)) return go_on(session, op);
  code = let_go(session);
  if (code != 0) return code;
  if (space == NULL) return NO_KEYSPACE;
  if (op->value_length > KEY_ROOM || op->key_length > KEY_ROOM) return KEY_TOO_LONG;
  kv_place place = kv_scan_place(op, session->place);
  if (database->variant->type == DB_HASH) place.length = op->key_length; /* a prefix is not a place there */
  if (place.length != 0) memcpy(session->key, place.key, place.length);
  if (transaction == NULL && database->is_snapshot) flags = DB_TXN_SNAPSHOT;
  if (transaction != NULL && transaction == around(session)) flags = DB_READ_COMMITTED;
  code = space->db->cursor(space->db, transaction, &cursor, flags);
  if (code != 0) return code;
  if (rows.is_full)
    code = 0;
  else if (is_stepped)
    code = scan_steps(session, cursor, &rows, &place, space->hides_values);
  else
    code = scan_bulk(session, cursor, &rows, &place, space->hides_values);
  if (code == 0 && is_held && kv_keep(&session->held, &rows)) {
    session->cursor = cursor;
  } else {
    closed = cursor->close(cursor);
    if (code == 0) code = closed;
  }
  if (op->rows >= 8) session->row_size = (uint32_t)(op->length / op->rows);
  return code == 0 && rows.status == KV_SHORT ? DB_BUFFER_SMALL : code;
}
