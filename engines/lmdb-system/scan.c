/* Scans of the system's LMDB, and the cursor that a session holds from call to call. */
#include "database.h"

uint32_t lmdb_failed(kv_batch *batch, const kv_op *op, int code) {
  switch (code) {
  case MDB_MAP_FULL:
    return kv_fail(batch, op, KV_FULL, "the map is full; increase the option map-size");
  case MDB_BAD_VALSIZE:
    return kv_fail(batch, op, KV_TOO_LARGE, "a key must have 1 to %d bytes", KEY_BYTES_MAX);
  case ENOSPC:
    return kv_fail(batch, op, KV_FULL, "%s", mdb_strerror(code));
  default:
    return kv_fail(batch, op, KV_ERROR, "%s", mdb_strerror(code));
  }
}

/* Moves a cursor to the first row of a scan. */
static int stand(MDB_cursor *cursor, const kv_op *op, MDB_val *key, MDB_val *value) {
  uint8_t space[KEY_BYTES_MAX];
  const int is_reverse = (op->flags & KV_REVERSE) != 0;
  const kv_place place = kv_scan_place(op, space);
  if (place.length == 0) return mdb_cursor_get(cursor, key, value, is_reverse ? MDB_LAST : MDB_FIRST);
  *key = bytes(place.key, place.length);
  const int code = mdb_cursor_get(cursor, key, value, MDB_SET_RANGE);
  if (!is_reverse) return code;
  if (code == MDB_NOTFOUND) return mdb_cursor_get(cursor, key, value, MDB_LAST);
  if (code != 0) return code;
  const int order = kv_compare(key->mv_data, key->mv_size, place.key, place.length);
  return order > 0 || (order == 0 && place.is_exclusive) ? mdb_cursor_get(cursor, key, value, MDB_PREV) : 0;
}

uint32_t lmdb_scan_with(MDB_cursor *cursor, kv_op *op, kv_batch *batch, int goes_on, kv_held *held) {
  const MDB_cursor_op step = (op->flags & KV_REVERSE) != 0 ? MDB_PREV : MDB_NEXT;
  MDB_val key, value;
  kv_rows rows = kv_rows_begin(op);
  if ((op->flags & KV_PREFIX) != 0 && op->value_length > KEY_BYTES_MAX) return rows.status; /* no key is that long */
  int code = goes_on ? mdb_cursor_get(cursor, &key, &value, step) : stand(cursor, op, &key, &value);
  while (code == 0 && kv_rows_push(&rows, key.mv_data, key.mv_size, value.mv_data, value.mv_size))
    code = mdb_cursor_get(cursor, &key, &value, step);
  if (code == 0 && held != NULL) kv_keep(held, &rows);
  return code == 0 || code == MDB_NOTFOUND ? rows.status : lmdb_failed(batch, op, code);
}

/* Whether the scan continues with the held cursor. */
static int goes_on(const kv_session *session, const kv_op *op) {
  MDB_val key, value;
  return session->held.is_held && op->keyspace == session->held.keyspace &&
         mdb_cursor_get(session->cursors[op->keyspace], &key, &value, MDB_GET_CURRENT) == 0 &&
         kv_goes_on(&session->held, op, key.mv_data, key.mv_size);
}

uint32_t lmdb_scan(kv_session *session, kv_op *op, kv_batch *batch) {
  const int is_next = goes_on(session, op);
  if (op->keyspace >= session->database->keyspaces) return KV_UNSUPPORTED;
  MDB_cursor *cursor = session->cursors[op->keyspace];
  if (!is_next) {
    lmdb_let_go(session);
    int code = mdb_txn_renew(session->reader);
    if (code != 0) return lmdb_failed(batch, op, code);
    code = mdb_cursor_renew(session->reader, cursor);
    if (code != 0) return mdb_txn_reset(session->reader), lmdb_failed(batch, op, code);
  }
  session->held.is_held = 0;
  const uint32_t status = lmdb_scan_with(cursor, op, batch, is_next, &session->held);
  if (!session->held.is_held) mdb_txn_reset(session->reader);
  return status;
}
