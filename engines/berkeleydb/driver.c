/* Berkeley DB in C: ops, groups and the tables of its four variants. */
#include "berkeleydb.h"

/* Deadlocks of one op or group before it is given up. */
enum { RETRIES_MAX = 1000 };

KV_INLINE DBT input(const void *bytes, uint32_t length) {
  return (DBT){.data = (void *)(uintptr_t)bytes, .size = length};
}

KV_INLINE keyspace *space_of(kv_session *session, const kv_op *op) {
  return op->keyspace < session->database->keyspace_count ? &session->database->keyspaces[op->keyspace] : NULL;
}

KV_INLINE int get_in(kv_session *session, kv_op *op, DB_TXN *transaction) {
  keyspace *space = space_of(session, op);
  DBT key = input(op->key, op->key_length);
  DBT value = {.data = op->out, .ulen = op->out_size, .flags = DB_DBT_USERMEM};
  DBC *cursor;
  int code;
  if (space == NULL) return NO_KEYSPACE;
  if (space->hides_values) value.flags |= DB_DBT_PARTIAL; /* of no bytes */
  if (session->database->is_snapshot && transaction == NULL) {
    code = space->db->cursor(space->db, NULL, &cursor, DB_TXN_SNAPSHOT);
    if (code != 0) return code;
    code = cursor->get(cursor, &key, &value, DB_SET);
    cursor->close(cursor);
  } else {
    code = space->db->get(space->db, transaction, &key, &value, 0);
  }
  op->length = code == 0 ? value.size : 0;
  if (code == DB_BUFFER_SMALL) op->needed = value.size;
  return code;
}

KV_INLINE int write_in(kv_session *session, kv_op *op, DB_TXN *transaction) {
  keyspace *space = space_of(session, op);
  DBT key = input(op->key, op->key_length);
  DBT value = input(op->value, op->value_length);
  int code;
  if (space == NULL) return NO_KEYSPACE;
  if (space->secondary != NULL) return INDEX_WRITTEN;
  if (op->kind == KV_PUT)
    code = space->db->put(space->db, transaction, &key, &value, (op->flags & KV_NEW) != 0 ? DB_NOOVERWRITE : 0);
  else
    code = space->db->del(space->db, transaction, &key, 0);
  if (code == 0 && session->database->is_synced) code = space->db->sync(space->db, 0);
  return code;
}

static int run_in(kv_session *session, kv_op *op, DB_TXN *transaction) {
  if (op->kind == KV_GET) return get_in(session, op, transaction);
  if (op->kind == KV_SCAN) return scan_in(session, op, transaction);
  return write_in(session, op, transaction);
}

static uint32_t fail(const kv_op *op, kv_batch *batch, int code) {
  if (code == DB_LOCK_DEADLOCK || code == DB_LOCK_NOTGRANTED) return KV_CONFLICT;
  if (code == NO_KEYSPACE) return kv_fail(batch, op, KV_UNSUPPORTED, "there is no keyspace %u", op->keyspace);
  if (code == INDEX_WRITTEN)
    return kv_fail(batch, op, KV_UNSUPPORTED, "keyspace %u is an index: its rows follow the primary's", op->keyspace);
  if (code == PLACE_LOST) return kv_fail(batch, op, KV_ABORTED, "the row that the scan was to go on behind is gone");
  if (code == KEY_TOO_LONG) return kv_fail(batch, op, KV_TOO_LARGE, "a key that a scan meets has %d bytes at most", KEY_ROOM);
  return kv_fail(batch, op, code == ENOSPC || code == EDQUOT ? KV_FULL : KV_ERROR, "%s", explain(code));
}

KV_INLINE int is_answer(int code) { return code == 0 || code == DB_NOTFOUND || code == DB_KEYEXIST; }

KV_INLINE uint32_t status_of(const kv_op *op, kv_batch *batch, int code) {
  if (code == 0) return KV_OK;
  if (code == DB_NOTFOUND) return KV_NOT_FOUND;
  if (code == DB_KEYEXIST) return KV_EXISTS;
  return code == DB_BUFFER_SMALL ? (uint32_t)KV_SHORT : fail(op, batch, code);
}

/* Whether to run it again: a deadlock undid it. The one transaction cannot be run again from here. */
KV_INLINE int is_retried(kv_session *session, kv_op *op, int code) {
  return code == DB_LOCK_DEADLOCK && session->database->whole == NULL && op->retries++ < RETRIES_MAX;
}

static int is_read(const kv_op *ops, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (ops[i].kind != KV_GET && ops[i].kind != KV_SCAN) return 0;
  return 1;
}

/* Puts of one keyspace, in one call; DB_BUFFER_SMALL: not such a group. */
static int put_all(kv_session *session, kv_op *ops, uint32_t count, DB_TXN *transaction) {
  const keyspace *space = space_of(session, ops);
  uint64_t bytes = 8;
  DBT rows = {.flags = DB_DBT_USERMEM | DB_DBT_BULK};
  void *at;
  uint32_t i;
  if (space == NULL || space->secondary != NULL || count < 2) return DB_BUFFER_SMALL;
  for (i = 0; i < count; i++) {
    if (ops[i].kind != KV_PUT || (ops[i].flags & KV_NEW) != 0 || ops[i].keyspace != ops->keyspace) return DB_BUFFER_SMALL;
    bytes += 16 + (uint64_t)ops[i].key_length + ops[i].value_length;
  }
  if (make_room(session, bytes) != 0) return ENOMEM;
  rows.data = session->bulk;
  rows.ulen = session->bulk_size;
  DB_MULTIPLE_WRITE_INIT(at, &rows);
  for (i = 0; i < count; i++) {
    DB_MULTIPLE_KEY_WRITE_NEXT(at, &rows, ops[i].key, ops[i].key_length, ops[i].value, ops[i].value_length);
    ops[i].status = KV_OK;
  }
  return space->db->put(space->db, transaction, &rows, NULL, DB_MULTIPLE_KEY);
}

/* Runs a group once, in a transaction that is undone if an op of it, then the `culprit`, cannot be done. */
static int run_once(kv_session *session, kv_op *ops, uint32_t count, uint32_t *culprit) {
  const kv_database *database = session->database;
  DB_ENV *environment = database->environment;
  const uint32_t flags = database->is_snapshot && is_read(ops, count) ? DB_TXN_SNAPSHOT : 0;
  DB_TXN *transaction;
  int code = environment->txn_begin(environment, database->whole, &transaction, flags);
  *culprit = 0;
  if (code != 0) return code;
  code = database->is_bulk_put ? put_all(session, ops, count, transaction) : DB_BUFFER_SMALL;
  if (code == DB_BUFFER_SMALL) {
    for (uint32_t i = 0; i < count; i++) {
      code = run_in(session, &ops[i], transaction);
      *culprit = i;
      if (!is_answer(code)) break;
      ops[i].status = status_of(&ops[i], NULL, code);
      code = 0;
    }
  }
  if (code == 0) return transaction->commit(transaction, 0);
  transaction->abort(transaction);
  return code;
}

/* Joined writes are one commit, whether or not they are a transaction. */
static uint32_t group(kv_session *session, kv_op *ops, uint32_t count, int atomic, kv_batch *batch) {
  uint32_t culprit;
  int code;
  if (!atomic && is_read(ops, count)) return KV_NOT_RUN;
  do code = run_once(session, ops, count, &culprit);
  while (is_retried(session, ops, code));
  if (code == 0) return KV_OK;
  for (uint32_t i = 0; i < count; i++) ops[i].status = KV_ABORTED;
  ops[culprit].status = status_of(&ops[culprit], batch, code);
  return KV_OK;
}

KV_INLINE uint32_t one(kv_session *session, kv_op *op, kv_batch *batch, int (*run)(kv_session *, kv_op *, DB_TXN *)) {
  int code;
  if (session->database->is_in_children) return group(session, op, 1, 1, batch), op->status;
  do code = run(session, op, session->database->whole);
  while (is_retried(session, op, code));
  return status_of(op, batch, code);
}

static uint32_t get(kv_session *session, kv_op *op, kv_batch *batch) { return one(session, op, batch, get_in); }
static uint32_t write_one(kv_session *session, kv_op *op, kv_batch *batch) { return one(session, op, batch, write_in); }
static uint32_t scan(kv_session *session, kv_op *op, kv_batch *batch) { return one(session, op, batch, scan_in); }

static uint32_t new_session(kv_database *database, const kv_arena *arena, kv_session **session, char *error) {
  kv_session *made = calloc(1, sizeof(kv_session));
  int code = made == NULL ? ENOMEM : 0;
  (void)arena;
  if (code == 0) {
    made->database = database;
    code = make_room(made, 2 * (uint64_t)database->page_size);
  }
  pthread_mutex_lock(&database->sessions_lock);
  if (code == 0 && database->is_single && database->whole == NULL)
    code = database->environment->txn_begin(database->environment, NULL, &database->whole, 0);
  if (code == 0) database->sessions++;
  pthread_mutex_unlock(&database->sessions_lock);
  if (code == 0) return *session = made, KV_OK;
  if (made != NULL) free(made->bulk);
  free(made);
  return kv_fail_call(error, KV_ERROR, "session: %s", explain(code));
}

static uint32_t end_session(kv_session *session, char *error) {
  kv_database *database = session->database;
  DB_TXN *whole = NULL;
  int code = 0;
  pthread_mutex_lock(&database->sessions_lock);
  if (--database->sessions == 0) whole = database->whole, database->whole = NULL;
  pthread_mutex_unlock(&database->sessions_lock);
  if (whole != NULL) code = database->is_aborted ? whole->abort(whole) : whole->commit(whole, 0);
  free(session->bulk);
  free(session);
  return code == 0 ? KV_OK : kv_fail_call(error, KV_ERROR, "end of the transaction: %s", explain(code));
}

#define ANY_CAPABILITIES (KV_CAN_DELETE | KV_DELETE_TELLS | KV_OVERWRITE | KV_CAN_NEW | KV_CAN_PREFIX | KV_KEYSPACES)
#define TREE_CAPABILITIES (ANY_CAPABILITIES | KV_ORDERED | KV_CAN_REVERSE)
#define TRANSACTION_CAPABILITIES (KV_TRANSACTION | KV_TRANSACTION_READS)

#define PAGE_OPTION {"page_size", "bytes", "0", "bytes of a page, 512 to 65536; 0 = the file system's block, as shipped"}
#define SYNC_OPTION {"sync", "flag", "false", "write the whole cache out after each write (DB->sync); without a log no promise"}
#define TRANSACTION_OPTIONS                                                                                            \
  PAGE_OPTION, {"single_transaction", "flag", "false", "one transaction around everything; one session; level none"},  \
      {"child_transactions", "flag", "false", "in the single transaction: each op or group is a child of it"},         \
      {"abort", "flag", "false", "the single transaction is undone at its end: nothing stays"},                        \
      {"table_lock", "flag", "false", "lock whole databases, not pages (DB->set_lk_exclusive); one session"},          \
      {"snapshot", "flag", "false", "reads see a snapshot and wait for no lock (DB_MULTIVERSION)"},                    \
      {"bulk_put", "flag", "true", "joined puts of one keyspace in one call (DB_MULTIPLE_KEY)"},                       \
      {"checkpoint_seconds", "count", "60", "seconds between checkpoints; 0 = none by time"},                          \
      {"checkpoint_log", "bytes", "67108864", "bytes of log after which a checkpoint is made; 0 = none by log"},       \
      {"log_buffer", "bytes", "0", "bytes of the log's buffer; 0 = as shipped, 32000"},                                \
      {"log_file", "bytes", "0", "bytes of a file of the log; 0 = as shipped, 10 MiB"},                                \
      {"log_auto_remove", "flag", "true", "remove files of the log that recovery does not need"},                      \
      {"deadlock", "choice:random|oldest|youngest|minlocks|maxlocks|minwrite|maxwrite", "random",                      \
       "who is undone in a deadlock"}

static const kv_option tree_options[] = {TRANSACTION_OPTIONS};
static const kv_option hash_options[] = {
    TRANSACTION_OPTIONS, {"fill_factor", "count", "0", "rows of a bucket before it is split; 0 = as shipped"}};
static const kv_option plain_options[] = {PAGE_OPTION, SYNC_OPTION};

/* A variant: its execute, its open and its table. */
#define VARIANT(NAME, TABLE, ENGINE, FAMILY, PRODUCT, TYPE, CAPABILITIES, LEVELS, OPTIONS, GROUP)                      \
  static uint32_t execute_##NAME(kv_session *session, kv_batch *batch) {                                               \
    static const kv_calls calls = {.capabilities = CAPABILITIES,                                                       \
                                   .get = get, .put = write_one, .remove = write_one, .scan = scan, .group = GROUP};           \
    return kv_run(session, batch, &calls);                                                                             \
  }                                                                                                                    \
  static uint32_t open_##NAME(const kv_config *config, kv_opened *opened, kv_database **database);                     \
  static const kv_driver NAME##_driver = {                                                                             \
      .abi = KV_ABI, .size = sizeof(kv_driver), .name = TABLE, .engine = ENGINE, .language = "C", .family = FAMILY,    \
      .capabilities = CAPABILITIES, .levels = LEVELS,                                                                  \
      .option_count = sizeof(OPTIONS) / sizeof(OPTIONS[0]), .options = OPTIONS,                                        \
      .open = open_##NAME, .close = close_store, .session = new_session, .session_end = end_session,                   \
      .execute = execute_##NAME, .maintain = maintain_store, .stats = store_stats};                                    \
  static uint32_t open_##NAME(const kv_config *config, kv_opened *opened, kv_database **database) {                    \
    static const variant NAME##_variant = {&NAME##_driver, PRODUCT, TYPE, #NAME};                                      \
    return open_store(&NAME##_variant, config, opened, database);                                                      \
  }

#define ALL_LEVELS (1u << KV_NONE | 1u << KV_PROCESS | 1u << KV_POWER)

VARIANT(btree, "berkeleydb", "B+tree with transactions and a log", "b+tree", TRANSACTIONAL, DB_BTREE,
        TREE_CAPABILITIES | TRANSACTION_CAPABILITIES | KV_INDEXES, ALL_LEVELS, tree_options, group)
VARIANT(hash, "berkeleydb-hash", "linear hash table with transactions and a log", "hash", TRANSACTIONAL, DB_HASH,
        ANY_CAPABILITIES | TRANSACTION_CAPABILITIES, ALL_LEVELS, hash_options, group)
VARIANT(cds, "berkeleydb-cds", "B+tree for many readers or one writer, without a log", "b+tree", CONCURRENT, DB_BTREE,
        TREE_CAPABILITIES | KV_SINGLE_WRITER, 1u << KV_NONE, plain_options, NULL)
VARIANT(plain, "berkeleydb-plain", "B+tree without an environment: no locks, no log", "b+tree", PLAIN, DB_BTREE,
        TREE_CAPABILITIES | KV_SINGLE_THREAD, 1u << KV_NONE, plain_options, NULL)

KV_EXPORT(&btree_driver, &hash_driver, &cds_driver, &plain_driver)
