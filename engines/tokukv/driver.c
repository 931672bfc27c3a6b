/* TokuKV (PerconaFT), a fractal tree: its driver tables, sessions and transactions. */
#include "tokukv.h"

#include <sched.h>

enum { TRIES = 64 };

/* Begins a transaction; with the option child_transactions one inside another. Ending `outer` ends both. */
static int begin(kv_session *session, uint32_t flags, DB_TXN **outer, DB_TXN **inner) {
  const kv_database *database = session->database;
  DB_ENV *env = database->env;
  int error = env->txn_begin(env, session->open, outer, session->open != NULL ? 0 : flags);
  if (error != 0) return error;
  if (session->open == NULL) memset(session->is_locked, 0, database->space_count);
  *inner = *outer;
  if (!database->has_child_transactions) return 0;
  error = env->txn_begin(env, *outer, inner, 0);
  if (error != 0) (*outer)->abort(*outer);
  return error;
}

/* KV_OK: all ops have an answer. Otherwise the status of the failed op; the others are KV_ABORTED. */
static uint32_t run_each(kv_session *session, kv_op *ops, uint32_t count, kv_batch *batch, DB_TXN *txn) {
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t status = tokukv_run(session, &ops[i], batch, txn);
    ops[i].status = status;
    if (status <= KV_EXISTS) continue;
    for (uint32_t j = 0; j < count; j++)
      if (j != i) ops[j].status = KV_ABORTED;
    return status;
  }
  return KV_OK;
}

static int has_writes(const kv_op *ops, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (ops[i].kind != KV_GET && ops[i].kind != KV_SCAN) return 1;
  return 0;
}

/* One transaction (in an open one, a child of it), retried when another one has its locks. Transactions that only read
 * take no locks: they have a snapshot. */
static uint32_t transact(kv_session *session, kv_op *ops, uint32_t count, kv_batch *batch) {
  const uint32_t reading = DB_TXN_SNAPSHOT | DB_TXN_READ_ONLY;
  const uint32_t flags = has_writes(ops, count) ? session->database->begin_flags : reading;
  for (uint32_t tries = 1;; tries++) {
    DB_TXN *outer, *inner;
    int error = begin(session, flags, &outer, &inner);
    if (error != 0) return tokukv_outcome(batch, ops, error, "begin");
    const uint32_t status = run_each(session, ops, count, batch, inner);
    if (status == KV_OK) {
      error = outer->commit(outer, session->database->commit_flags);
      return tokukv_outcome(batch, ops, error, "commit");
    }
    outer->abort(outer);
    if (status != KV_CONFLICT || tries == TRIES) return status;
    ops[0].retries = tries;
    sched_yield();
  }
}

/* A single op: a separate transaction unless one is open. */
static uint32_t alone(kv_session *session, kv_op *op, kv_batch *batch) {
  const kv_database *database = session->database;
  const int error = op->kind != KV_GET ? tokukv_let_go(session) : 0;
  if (error != 0) return tokukv_outcome(batch, op, error, "end of a held scan");
  if (!database->has_transactions || (session->open != NULL && !database->has_child_transactions))
    return tokukv_run(session, op, batch, session->open);
  const uint32_t status = transact(session, op, 1, batch);
  return status == KV_OK ? op->status : status;
}

/* A scan that must be held belongs to the open transaction, or to a separate one. */
static uint32_t scan(kv_session *session, kv_op *op, kv_batch *batch) {
  const int is_held = (op->flags & KV_HOLD) != 0 && !session->database->has_child_transactions;
  return is_held ? tokukv_scan_held(session, op, batch) : alone(session, op, batch);
}

static uint32_t group(kv_session *session, kv_op *ops, uint32_t count, int atomic, kv_batch *batch) {
  if (!atomic && !has_writes(ops, count)) return KV_NOT_RUN; /* there is no call for several gets */
  const int error = tokukv_let_go(session);
  if (error != 0) return tokukv_outcome(batch, ops, error, "end of a held scan");
  const uint32_t status = transact(session, ops, count, batch);
  return status == KV_SHORT ? KV_OK : status; /* if short, each op has its status */
}

static uint32_t control(kv_session *session, kv_op *op, kv_batch *batch) {
  const kv_database *database = session->database;
  DB_TXN *txn = session->open;
  const int closed = tokukv_let_go(session);
  if (closed != 0 || op->kind == KV_DROP) return tokukv_outcome(batch, op, closed, "end of a held scan");
  if ((op->kind == KV_BEGIN) == (txn != NULL))
    return kv_fail(batch, op, KV_ERROR, txn != NULL ? "a transaction is already open" : "no transaction is open");
  if (op->kind == KV_BEGIN) {
    memset(session->is_locked, 0, database->space_count);
    const int error = database->env->txn_begin(database->env, NULL, &session->open, database->begin_flags);
    return tokukv_outcome(batch, op, error, "begin");
  }
  session->open = NULL;
  const int error = op->kind == KV_COMMIT ? txn->commit(txn, database->commit_flags) : txn->abort(txn);
  return tokukv_outcome(batch, op, error, op->kind == KV_COMMIT ? "commit" : "abort");
}

#define PLAIN_CAPABILITIES                                                                                       \
  (KV_ORDERED | KV_CAN_REVERSE | KV_CAN_PREFIX | KV_CAN_DELETE | KV_OVERWRITE | KV_MERGE_ADD | KV_MERGE_APPEND | \
   KV_KEYSPACES | KV_CAN_TOUCH | KV_CAN_HOLD)
#define CAPABILITIES \
  (PLAIN_CAPABILITIES | KV_CAN_NEW | KV_TRANSACTION | KV_TRANSACTION_READS | KV_CAN_LONG_TRANSACTION | KV_INDEXES)

static uint32_t execute(kv_session *session, kv_batch *batch) {
  static const kv_calls calls = {.capabilities = CAPABILITIES,
                                 .get = alone,
                                 .put = alone,
                                 .remove = alone,
                                 .scan = scan,
                                 .merge = alone,
                                 .control = control,
                                 .group = group};
  return kv_run(session, batch, &calls);
}

static uint32_t execute_plain(kv_session *session, kv_batch *batch) {
  static const kv_calls calls = {.capabilities = PLAIN_CAPABILITIES,
                                 .get = alone,
                                 .put = alone,
                                 .remove = alone,
                                 .scan = scan,
                                 .merge = alone,
                                 .control = control};
  return kv_run(session, batch, &calls);
}

#define DICTIONARY_OPTIONS                                                                                        \
  {"compression", "choice:quicklz|zlib|lzma|snappy|none", "quicklz",                                              \
   "compression of basement nodes; for a new database"},                                                          \
      {"node_size", "bytes", "4194304", "size of a node before compression; for a new database"},                 \
      {"basement_size", "bytes", "131072", "size of a basement node, the unit of reads; for a new database"},     \
      {"fanout", "count", "16", "children of a node; for a new database"},                                        \
      {"checkpoint_period_s", "count", "60", "seconds between checkpoints; 0 = only at open and close"},          \
      {"cleaner_period_s", "count", "1", "seconds between runs of the cleaner, which flushes buffers; 0 = none"}, \
      {"cleaner_iterations", "count", "5", "nodes that one run of the cleaner flushes"}, {                        \
    "direct_io", "flag", "false", "bypass the page cache; for all databases of the process"                       \
  }

static const kv_option plain_options[] = {DICTIONARY_OPTIONS};
static const kv_option options[] = {
    DICTIONARY_OPTIONS,
    {"log_sync_period_ms", "count", "0", "at level none: interval of log syncs; 0 = never"},
    {"lock_timeout_ms", "count", "4000", "how long one attempt waits for a row lock"},
    {"lock_memory", "bytes", "67108864", "bytes of locks at which row locks become range locks"},
    {"prelock", "flag", "false", "a transaction that writes first locks complete tables, and no rows"},
    {"single_transaction", "flag", "false", "all ops of a session are one transaction, which ends with it: level none"},
    {"child_transactions", "flag", "false", "each transaction runs in a child of another"},
};

static uint32_t open_session(kv_database *database, const kv_arena *arena, kv_session **session, char *error) {
  (void)arena;
  const int code = tokukv_open_session(database, session);
  return code == 0 ? KV_OK : kv_fail_call(error, KV_ERROR, "session: %s", tokukv_text(code));
}

static const kv_driver driver, plain;

static uint32_t open_driver(const kv_config *config, kv_opened *opened, kv_database **database) {
  return tokukv_open(&driver, config, opened, database);
}

static uint32_t open_plain(const kv_config *config, kv_opened *opened, kv_database **database) {
  return tokukv_open(&plain, config, opened, database);
}

#define TABLE                                                                                                          \
  .abi = KV_ABI, .size = sizeof(kv_driver), .language = "C++", .family = "fractal tree", .key_size_max = KEY_SIZE_MAX, \
  .close = tokukv_close, .session = open_session, .session_end = tokukv_end_session, .maintain = tokukv_maintain,      \
  .stats = tokukv_stats

static const kv_driver driver = {
    TABLE,
    .name = "tokukv",
    .engine = "PerconaFT, the fractal tree of TokuDB, with transactions",
    .capabilities = CAPABILITIES,
    .levels = 1u << KV_NONE | 1u << KV_POWER,
    .option_count = sizeof(options) / sizeof(options[0]),
    .options = options,
    .open = open_driver,
    .execute = execute,
};
static const kv_driver plain = {
    TABLE,
    .name = "tokukv-plain",
    .engine = "PerconaFT, the fractal tree of TokuDB, without transactions and log",
    .capabilities = PLAIN_CAPABILITIES,
    .levels = 1u << KV_NONE,
    .option_count = sizeof(plain_options) / sizeof(plain_options[0]),
    .options = plain_options,
    .open = open_plain,
    .execute = execute_plain,
};

KV_EXPORT(&driver, &plain)
