/* The driver of the system's LMDB: a copy-on-write B+tree in a memory map, written by one thread at a time. */
#include "database.h"

KV_INLINE uint32_t get_in(MDB_txn *transaction, const kv_database *database, kv_op *op, kv_batch *batch) {
  MDB_val key = bytes(op->key, op->key_length), value;
  if (op->keyspace >= database->keyspaces) return KV_UNSUPPORTED;
  const int code = mdb_get(transaction, database->databases[op->keyspace], &key, &value);
  if (code == MDB_NOTFOUND) return KV_NOT_FOUND;
  return code == 0 ? kv_deliver(op, value.mv_data, value.mv_size) : lmdb_failed(batch, op, code);
}

/* In the session's renewed read transaction, with its cursor of the keyspace. */
static uint32_t scan_renewed(kv_session *session, kv_op *op, kv_batch *batch) {
  if (op->keyspace >= session->database->keyspaces) return KV_UNSUPPORTED;
  MDB_cursor *cursor = session->cursors[op->keyspace];
  const int code = mdb_cursor_renew(session->reader, cursor);
  return code == 0 ? lmdb_scan_with(cursor, op, batch, 0, NULL) : lmdb_failed(batch, op, code);
}

static uint32_t read_one(kv_session *session, kv_op *op, kv_batch *batch) {
  return op->kind == KV_GET ? get_in(session->reader, session->database, op, batch) : scan_renewed(session, op, batch);
}

/* In the session's write transaction; reads see its writes. */
static uint32_t write_one(kv_session *session, kv_op *op, kv_batch *batch) {
  const kv_database *database = session->database;
  MDB_val key = bytes(op->key, op->key_length), value = bytes(op->value, op->value_length);
  if (op->keyspace >= database->keyspaces) return KV_UNSUPPORTED;
  const MDB_dbi keyspace = database->databases[op->keyspace];
  if (op->kind == KV_GET) return get_in(session->writer, database, op, batch);
  if (op->kind == KV_SCAN) {
    MDB_cursor *cursor;
    const int code = mdb_cursor_open(session->writer, keyspace, &cursor);
    if (code != 0) return lmdb_failed(batch, op, code);
    const uint32_t status = lmdb_scan_with(cursor, op, batch, 0, NULL);
    mdb_cursor_close(cursor);
    return status;
  }
  int code;
  if (op->kind == KV_PUT) {
    code = mdb_put(session->writer, keyspace, &key, &value, (op->flags & KV_NEW) != 0 ? MDB_NOOVERWRITE : 0);
  } else if (op->kind == KV_DELETE) {
    code = mdb_del(session->writer, keyspace, &key, NULL);
  } else {
    return KV_UNSUPPORTED;
  }
  if (code == MDB_KEYEXIST) return KV_EXISTS;
  if (code == MDB_NOTFOUND) return KV_NOT_FOUND;
  return code == 0 ? KV_OK : lmdb_failed(batch, op, code);
}

static uint32_t get(kv_session *session, kv_op *op, kv_batch *batch) {
  lmdb_let_go(session);
  const int code = mdb_txn_renew(session->reader);
  if (code != 0) return lmdb_failed(batch, op, code);
  const uint32_t status = get_in(session->reader, session->database, op, batch);
  mdb_txn_reset(session->reader);
  return status;
}

/* KV_DROP: there are no transactions over several calls. */
static uint32_t control(kv_session *session, kv_op *op, kv_batch *batch) {
  (void)op;
  (void)batch;
  lmdb_let_go(session);
  return KV_OK;
}

/* Commits, or aborts a transaction without a change, which costs no sync. */
static int finish(kv_session *session, int is_worth_it) {
  if (is_worth_it) return mdb_txn_commit(session->writer);
  mdb_txn_abort(session->writer);
  return 0;
}

/* A single put or delete is a transaction. */
static uint32_t change(kv_session *session, kv_op *op, kv_batch *batch) {
  lmdb_let_go(session);
  int code = mdb_txn_begin(session->database->environment, NULL, 0, &session->writer);
  if (code != 0) return lmdb_failed(batch, op, code);
  const uint32_t status = write_one(session, op, batch);
  code = finish(session, status == KV_OK);
  return code == 0 ? status : lmdb_failed(batch, op, code);
}

/* Joined ops are one transaction: one snapshot if all are reads. */
static uint32_t group(kv_session *session, kv_op *ops, uint32_t count, int atomic, kv_batch *batch) {
  (void)atomic;
  int code;
  lmdb_let_go(session);
  if (kv_only_reads(ops, count)) {
    code = mdb_txn_renew(session->reader);
    if (code != 0) return lmdb_failed(batch, ops, code);
    kv_each(session, ops, count, batch, read_one);
    mdb_txn_reset(session->reader);
    return KV_OK;
  }
  code = mdb_txn_begin(session->database->environment, NULL, 0, &session->writer);
  if (code != 0) return lmdb_failed(batch, ops, code);
  code = finish(session, kv_each(session, ops, count, batch, write_one));
  return code == 0 ? KV_OK : lmdb_failed(batch, ops, code);
}

static uint32_t execute(kv_session *session, kv_batch *batch) {
  static const kv_calls calls = {.capabilities = CAPABILITIES,
                                 .get = get,
                                 .put = change,
                                 .remove = change,
                                 .scan = lmdb_scan,
                                 .control = control,
                                 .group = group};
  return kv_run(session, batch, &calls);
}

static uint32_t session_end(kv_session *session, char *error) {
  (void)error;
  for (uint32_t i = 0; i < session->database->keyspaces; i++)
    if (session->cursors[i] != NULL) mdb_cursor_close(session->cursors[i]);
  if (session->reader != NULL) mdb_txn_abort(session->reader);
  free(session);
  return KV_OK;
}

/* A session's read transaction is reset between ops, so that it keeps no page from being reused. */
static uint32_t begin_session(kv_database *database, const kv_arena *arena, kv_session **session, char *error) {
  (void)arena;
  kv_session *made = calloc(1, sizeof(kv_session) + database->keyspaces * sizeof(MDB_cursor *));
  if (made == NULL) return kv_fail_call(error, KV_ERROR, "out of memory");
  made->database = database;
  int code = mdb_txn_begin(database->environment, NULL, MDB_RDONLY, &made->reader);
  for (uint32_t i = 0; i < database->keyspaces && code == 0; i++)
    code = mdb_cursor_open(made->reader, database->databases[i], &made->cursors[i]);
  if (code != 0) {
    session_end(made, NULL);
    return kv_fail_call(error, KV_ERROR, "session: %s", mdb_strerror(code));
  }
  mdb_txn_reset(made->reader);
  *session = made;
  return KV_OK;
}

const kv_driver lmdb_system = {
    .abi = KV_ABI,
    .size = sizeof(kv_driver),
    .name = "lmdb-system",
    .engine = "copy-on-write B+tree in a memory map, the system's library",
    .language = "C",
    .family = "b+tree",
    .capabilities = CAPABILITIES,
    .levels = 1u << KV_PROCESS | 1u << KV_POWER,
    .key_size_max = KEY_BYTES_MAX,
    .option_count = OPTION_COUNT,
    .options = lmdb_options,
    .open = lmdb_open,
    .session = begin_session,
    .execute = execute,
    .session_end = session_end,
    .maintain = lmdb_maintain,
    .stats = lmdb_stats,
    .close = lmdb_close,
};

KV_EXPORT(&lmdb_system)
