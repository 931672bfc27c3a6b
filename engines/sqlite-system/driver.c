/* The driver of the system's SQLite as a key-value store: a table without row ids for each keyspace, in WAL mode. */
#include "database.h"

static const char BUSY_TEXT[] = "another writer kept the database busy; increase the option busy-timeout-ms";

/* The status of a failed op; KV_CONFLICT, without a text yet, if another writer blocked it. */
static uint32_t failed(const kv_session *session, kv_batch *batch, const kv_op *op, int code) {
  if ((code & 0xff) == SQLITE_BUSY) return KV_CONFLICT;
  const uint32_t status = code == SQLITE_FULL ? KV_FULL : code == SQLITE_TOOBIG ? KV_TOO_LARGE : KV_ERROR;
  return kv_fail(batch, op, status, "%s", sqlite3_errmsg(session->connection));
}

/* A null pointer would be the SQL value NULL, which is not the empty blob. */
KV_INLINE int bind(sqlite3_stmt *statement, int number, const uint8_t *bytes, uint32_t length) {
  return sqlite3_bind_blob64(statement, number, length != 0 ? (const void *)bytes : "", length, SQLITE_STATIC);
}

static uint32_t get(kv_session *session, kv_op *op, kv_batch *batch) {
  sqlite3_stmt *statement = session->statements[op->keyspace][GET];
  uint32_t status = KV_NOT_FOUND;
  int code = bind(statement, 1, op->key, op->key_length);
  if (code == SQLITE_OK) code = sqlite3_step(statement);
  if (code == SQLITE_ROW) {
    const void *value = sqlite3_column_blob(statement, 0);
    status = kv_deliver(op, value, (size_t)sqlite3_column_bytes(statement, 0));
  } else if (code != SQLITE_DONE) {
    status = failed(session, batch, op, code);
  }
  sqlite3_reset(statement);
  return status;
}

static uint32_t change(kv_session *session, kv_op *op, kv_batch *batch) {
  const int is_put = op->kind == KV_PUT, is_new = (op->flags & KV_NEW) != 0;
  sqlite3_stmt *statement = session->statements[op->keyspace][!is_put ? DELETE : is_new ? PUT_NEW : PUT];
  int code = bind(statement, 1, op->key, op->key_length);
  if (code == SQLITE_OK && is_put) code = bind(statement, 2, op->value, op->value_length);
  if (code == SQLITE_OK) code = sqlite3_step(statement);
  uint32_t status = code == SQLITE_DONE ? KV_OK : failed(session, batch, op, code);
  if (status == KV_OK && sqlite3_changes(session->connection) == 0) status = is_put ? KV_EXISTS : KV_NOT_FOUND;
  sqlite3_reset(statement);
  return status;
}

/* The statement of a scan with these bounds: 0 = inclusive, 1 = exclusive, 2 = none. */
static int scan_statement(kv_session *session, const kv_op *op, int low, int high, sqlite3_stmt **statement) {
  static const char *const lows[] = {"key >= ?1", "key > ?1", "TRUE"};
  static const char *const highs[] = {"key <= ?2", "key < ?2", "TRUE"};
  const int is_reverse = (op->flags & KV_REVERSE) != 0;
  sqlite3_stmt **slot = &session->statements[op->keyspace][SCANS + low * 6 + high * 2 + is_reverse];
  char sql[128];
  int code = SQLITE_OK;
  if (*slot == NULL) {
    snprintf(sql, sizeof(sql), "SELECT key, value FROM k%u WHERE %s AND %s ORDER BY key %s", op->keyspace, lows[low],
             highs[high], is_reverse ? "DESC" : "ASC");
    code = sqlite3_prepare_v3(session->connection, sql, -1, SQLITE_PREPARE_PERSISTENT, slot, NULL);
  }
  *statement = *slot;
  return code;
}

/* The bounds in SQL are the start of the scan and its exclusive end; the row writer handles prefix and limit. */
static uint32_t scan_between(kv_session *session, kv_op *op, kv_batch *batch, kv_place place) {
  const int is_reverse = (op->flags & KV_REVERSE) != 0, is_prefix = (op->flags & KV_PREFIX) != 0;
  const int from = place.length == 0 ? 2 : place.is_exclusive || (op->flags & KV_RESUME) != 0;
  const int to = is_prefix || op->value_length == 0 ? 2 : 1;
  sqlite3_stmt *statement;
  kv_rows rows = kv_rows_begin(op);
  int code = scan_statement(session, op, is_reverse ? to : from, is_reverse ? from : to, &statement);
  if (code == SQLITE_OK && from != 2) code = bind(statement, is_reverse ? 2 : 1, place.key, place.length);
  if (code == SQLITE_OK && to != 2) code = bind(statement, is_reverse ? 1 : 2, op->value, op->value_length);
  while ((code == SQLITE_OK || code == SQLITE_ROW) && (code = sqlite3_step(statement)) == SQLITE_ROW) {
    const void *key = sqlite3_column_blob(statement, 0), *value = sqlite3_column_blob(statement, 1);
    const int key_length = sqlite3_column_bytes(statement, 0), value_length = sqlite3_column_bytes(statement, 1);
    if (!kv_rows_push(&rows, key != NULL ? key : "", (size_t)key_length, value, (size_t)value_length)) break;
  }
  const uint32_t status = code == SQLITE_DONE || code == SQLITE_ROW ? rows.status : failed(session, batch, op, code);
  sqlite3_reset(statement);
  return status;
}

static uint32_t scan(kv_session *session, kv_op *op, kv_batch *batch) {
  uint8_t space[1024];
  uint8_t *bound = op->value_length <= sizeof(space) ? space : malloc(op->value_length);
  if (bound == NULL) return kv_fail(batch, op, KV_ERROR, "out of memory");
  const uint32_t status = scan_between(session, op, batch, kv_scan_place(op, bound));
  if (bound != space) free(bound);
  return status;
}

static uint32_t once(kv_session *session, kv_op *op, kv_batch *batch) {
  if (op->keyspace >= session->database->keyspaces) return KV_UNSUPPORTED;
  switch (op->kind) {
  case KV_GET:
    return get(session, op, batch);
  case KV_SCAN:
    return scan(session, op, batch);
  case KV_PUT:
  case KV_DELETE:
    return change(session, op, batch);
  default:
    return kv_fail(batch, op, KV_UNSUPPORTED, "a transaction may have only gets, scans, puts and deletes");
  }
}

/* An op, alone (SQLite makes it a transaction) or in one: retried while another writer keeps the database busy. */
static uint32_t one(kv_session *session, kv_op *op, kv_batch *batch) {
  uint32_t status = once(session, op, batch);
  for (int tries = 1; status == KV_CONFLICT && tries < TRIES; tries++) {
    op->retries++;
    status = once(session, op, batch);
  }
  if (status == KV_CONFLICT) kv_fail(batch, op, status, "%s", BUSY_TEXT);
  return status;
}

static uint32_t control(kv_session *session, int which, kv_op *op, kv_batch *batch) {
  for (int tries = 1;; tries++) {
    const int code = sqlite3_step(session->control[which]);
    sqlite3_reset(session->control[which]);
    if (code == SQLITE_DONE) return KV_OK;
    const uint32_t status = failed(session, batch, op, code);
    if (status == KV_CONFLICT && tries == TRIES) return kv_fail(batch, op, status, "%s", BUSY_TEXT);
    if (status != KV_CONFLICT) return status;
    op->retries++;
  }
}

static uint32_t group(kv_session *session, kv_op *ops, uint32_t count, int atomic, kv_batch *batch) {
  (void)atomic;
  uint32_t status = control(session, kv_only_reads(ops, count) ? BEGIN_READ : BEGIN_WRITE, ops, batch);
  if (status != KV_OK) return status;
  const int is_whole = kv_each(session, ops, count, batch, one);
  if (is_whole) status = control(session, COMMIT, ops, batch);
  if ((!is_whole || status != KV_OK) && !sqlite3_get_autocommit(session->connection))
    control(session, ROLLBACK, ops, batch);
  return status;
}

static uint32_t execute(kv_session *session, kv_batch *batch) {
  static const kv_calls calls = {
      .capabilities = CAPABILITIES, .get = one, .put = one, .remove = one, .scan = one, .group = group};
  return kv_run(session, batch, &calls);
}

const kv_driver sqlite_system = {
    .abi = KV_ABI,
    .size = sizeof(kv_driver),
    .name = "sqlite-system",
    .engine = "B-tree of SQL tables with a write-ahead log, the system's library",
    .language = "C",
    .family = "b+tree",
    .capabilities = CAPABILITIES,
    .levels = 1u << KV_PROCESS | 1u << KV_POWER,
    .option_count = OPTION_COUNT,
    .options = sqlite_options,
    .open = sqlite_open,
    .session = sqlite_session,
    .execute = execute,
    .session_end = sqlite_session_end,
    .maintain = sqlite_maintain,
    .stats = sqlite_stats,
    .close = sqlite_close_all,
};

KV_EXPORT(&sqlite_system)
