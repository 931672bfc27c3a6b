/* Scans of TokuKV, and the cursor that a session holds from call to call. */
#include "tokukv.h"

typedef struct walk {
  kv_rows rows;
  const kv_place *left_out; /* the row to skip: the place itself, if the scan begins below it */
  int is_over;
  kv_session *holder; /* receives the key of the last row; or null */
} walk;

/* Accepts rows as long as the engine has more of the same basement node. */
static int push(const DBT *key, const DBT *value, void *extra) {
  walk *scan = extra;
  const kv_place *out = scan->left_out;
  if (out != NULL && kv_compare(key->data, key->size, out->key, out->length) == 0) return TOKUDB_CURSOR_CONTINUE;
  scan->is_over = !kv_rows_push(&scan->rows, key->data, key->size, value->data, value->size);
  if (!scan->is_over) return TOKUDB_CURSOR_CONTINUE;
  if (scan->holder != NULL && scan->rows.is_full && scan->rows.status == KV_OK && key->size <= KEY_SIZE_MAX) {
    memcpy(scan->holder->key, key->data, key->size);
    scan->holder->key_length = key->size;
  }
  return 0;
}

/* Walks from the scan's place, or from the cursor's row. */
static int run(kv_session *session, DBC *cursor, walk *scan, int goes_on) {
  const kv_op *op = scan->rows.op;
  const int is_reverse = (op->flags & KV_REVERSE) != 0;
  int error = 0;
  if (!goes_on && !scan->is_over) {
    uint8_t *space = tokukv_space_of(session, op->value_length);
    if (space == NULL) return ENOMEM;
    const kv_place place = kv_scan_place(op, space);
    const DBT key = tokukv_bytes(place.key, place.length);
    scan->left_out = place.is_exclusive ? &place : NULL;
    if (place.length == 0)
      error = is_reverse ? cursor->c_getf_last(cursor, 0, push, scan) : cursor->c_getf_first(cursor, 0, push, scan);
    else if (is_reverse)
      error = cursor->c_getf_set_range_reverse(cursor, 0, (DBT *)&key, push, scan);
    else
      error = cursor->c_getf_set_range(cursor, 0, (DBT *)&key, push, scan);
    scan->left_out = NULL; /* only the first row of a scan can be it */
  }
  while (error == 0 && !scan->is_over) /* the engine stops at the end of each basement node */
    error = is_reverse ? cursor->c_getf_prev(cursor, 0, push, scan) : cursor->c_getf_next(cursor, 0, push, scan);
  return error == DB_NOTFOUND ? 0 : error;
}

uint32_t tokukv_scan_within(kv_session *session, kv_op *op, kv_batch *batch, DB_TXN *txn) {
  DB *dictionary = session->database->spaces[op->keyspace].dictionaries[0];
  walk scan = {kv_rows_begin(op), NULL, op->limit == 0, NULL};
  DBC *cursor;
  int error = dictionary->cursor(dictionary, txn, &cursor, 0);
  if (error != 0) return tokukv_outcome(batch, op, error, "cursor");
  error = run(session, cursor, &scan, 0);
  cursor->c_close(cursor);
  return error == 0 ? scan.rows.status : tokukv_outcome(batch, op, error, "scan");
}

/* Opens the cursor of a held scan: in the open transaction, or in a separate one with a snapshot. */
static int begin_held(kv_session *session, uint32_t keyspace) {
  const kv_database *database = session->database;
  DB *dictionary = database->spaces[keyspace].dictionaries[0];
  const uint32_t flags = DB_TXN_SNAPSHOT | DB_TXN_READ_ONLY;
  int error = tokukv_let_go(session);
  if (error == 0 && database->has_transactions && session->open == NULL)
    error = database->env->txn_begin(database->env, NULL, &session->reader, flags);
  if (error != 0) return error;
  return dictionary->cursor(dictionary, session->reader != NULL ? session->reader : session->open, &session->cursor, 0);
}

uint32_t tokukv_scan_held(kv_session *session, kv_op *op, kv_batch *batch) {
  if (op->keyspace >= session->database->space_count)
    return kv_fail(batch, op, KV_UNSUPPORTED, "there is no keyspace %u", op->keyspace);
  const int goes_on = kv_goes_on(&session->held, op, session->key, session->key_length);
  walk scan = {kv_rows_begin(op), NULL, op->limit == 0, session};
  int error = goes_on ? 0 : begin_held(session, op->keyspace);
  session->held.is_held = 0;
  if (error == 0) error = run(session, session->cursor, &scan, goes_on);
  if (error == 0 && kv_keep(&session->held, &scan.rows)) return scan.rows.status;
  const int ended = tokukv_let_go(session);
  if (error == 0) error = ended;
  return error == 0 ? scan.rows.status : tokukv_outcome(batch, op, error, "scan");
}

int tokukv_let_go(kv_session *session) {
  DBC *cursor = session->cursor;
  DB_TXN *reader = session->reader;
  int error = 0, ended = 0;
  session->cursor = NULL;
  session->reader = NULL;
  session->held.is_held = 0;
  if (cursor != NULL) error = cursor->c_close(cursor);
  if (reader != NULL) ended = reader->commit(reader, 0);
  return error != 0 ? error : ended;
}
