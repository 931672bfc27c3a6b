/* Berkeley DB in C: ops, groups and the driver tables of its four variants. */
#include "berkeleydb.h"

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
  code = let_go(session);
  if (code != 0) return code;
  if (space == NULL) return NO_KEYSPACE;
  if (space->secondary != NULL) return INDEX_WRITTEN;
  if (op->kind == KV_PUT && op->value_length < space->value_min) return VALUE_TOO_SHORT;
  if (op->key_length > session->database->key_max) return KEY_REFUSED;
  if (op->kind == KV_PUT)
    code = space->db->put(space->db, transaction, &key, &value, (op->flags & KV_NEW) != 0 ? DB_NOOVERWRITE : 0);
  else
    code = space->db->del(space->db, transaction, &key, 0);
  if (code == 0 && session->database->is_synced) code = space->db->sync(space->db, 0);
  return code;
}

/* Runs an op of a group. */
int run_in(kv_session *session, kv_op *op, DB_TXN *transaction) {
  if (op->kind == KV_GET) return get_in(session, op, transaction);
  if (op->kind == KV_SCAN) return scan_in(session, op, transaction);
  return write_in(session, op, transaction);
}

KV_INLINE uint32_t one(kv_session *session, kv_op *op, kv_batch *batch, int (*run)(kv_session *, kv_op *, DB_TXN *)) {
  int code;
  if (session->database->is_in_children) return run_group(session, op, 1, 1, batch), op->status;
  do code = run(session, op, around(session));
  while (is_retried(session, op, code));
  return status_of(op, batch, code);
}

static uint32_t get(kv_session *session, kv_op *op, kv_batch *batch) { return one(session, op, batch, get_in); }
static uint32_t write_one(kv_session *session, kv_op *op, kv_batch *batch) { return one(session, op, batch, write_in); }
static uint32_t scan(kv_session *session, kv_op *op, kv_batch *batch) { return one(session, op, batch, scan_in); }

#define ANY_CAPABILITIES (KV_CAN_DELETE | KV_DELETE_TELLS | KV_OVERWRITE | KV_CAN_NEW | KV_CAN_PREFIX | KV_KEYSPACES)
#define TREE_CAPABILITIES (ANY_CAPABILITIES | KV_ORDERED | KV_CAN_REVERSE | KV_CAN_HOLD)
#define TRANSACTION_CAPABILITIES (KV_TRANSACTION | KV_TRANSACTION_READS | KV_CAN_LONG_TRANSACTION)

/* Each variant has some of these. */
static const kv_option options[] = {
    {"sync", "flag", "false", "write out the cache after each write; without a log this guarantees nothing"},
    {"page_size", "bytes", "0", "page size in bytes, 512 to 65536; 0 = the file system's block size"},
    {"single_transaction", "flag", "false", "one transaction around everything; for one thread; level none"},
    {"child_transactions", "flag", "false", "in the single transaction: each op or group is a child of it"},
    {"table_lock", "flag", "false", "lock databases instead of pages (DB->set_lk_exclusive); for one thread"},
    {"snapshot", "flag", "false", "reads see a snapshot and wait for no lock (DB_MULTIVERSION)"},
    {"bulk_put", "flag", "true", "joined puts of one keyspace in one call (DB_MULTIPLE_KEY)"},
    {"checkpoint_seconds", "count", "60", "seconds between checkpoints; 0 = no timed checkpoints"},
    {"checkpoint_log", "bytes", "67108864", "bytes of log that trigger a checkpoint; 0 = no such checkpoints"},
    {"log_buffer", "bytes", "0", "size of the log buffer in bytes; 0 = as shipped, 32000"},
    {"log_file", "bytes", "0", "size of a log file in bytes; 0 = as shipped, 10 MiB"},
    {"log_auto_remove", "flag", "true", "remove log files that recovery does not need"},
    {"deadlock", "choice:random|oldest|youngest|minlocks|maxlocks|minwrite|maxwrite", "random",
     "which transaction a deadlock undoes"},
    {"fill_factor", "count", "0", "rows per bucket before it is split; 0 = as shipped"},
};
enum { ALL = sizeof(options) / sizeof(options[0]) };

/* A variant: its execute, its open and its table. */
#define VARIANT(NAME, TABLE, ENGINE, FAMILY, PRODUCT, TYPE, KEY_MAX, CAPABILITIES, LEVELS, GROUP, COUNT, OPTIONS) \
  static uint32_t execute_##NAME(kv_session *session, kv_batch *batch) {                                          \
    static const kv_calls calls = {.capabilities = CAPABILITIES,                                                  \
                                   .get = get,                                                                    \
                                   .put = write_one,                                                              \
                                   .remove = write_one,                                                           \
                                   .scan = scan,                                                                  \
                                   .control = control,                                                            \
                                   .group = GROUP};                                                               \
    return kv_run(session, batch, &calls);                                                                        \
  }                                                                                                               \
  static uint32_t open_##NAME(const kv_config *config, kv_opened *opened, kv_database **database);                \
  static const kv_driver NAME##_driver = {.abi = KV_ABI,                                                          \
                                          .size = sizeof(kv_driver),                                              \
                                          .name = TABLE,                                                          \
                                          .engine = ENGINE,                                                       \
                                          .language = "C",                                                        \
                                          .family = FAMILY,                                                       \
                                          .capabilities = CAPABILITIES,                                           \
                                          .levels = LEVELS,                                                       \
                                          .key_size_max = KEY_MAX,                                                \
                                          .option_count = COUNT,                                                  \
                                          .options = OPTIONS,                                                     \
                                          .open = open_##NAME,                                                    \
                                          .session = begin_session,                                               \
                                          .execute = execute_##NAME,                                              \
                                          .session_end = end_session,                                             \
                                          .maintain = maintain_store,                                             \
                                          .stats = store_stats,                                                   \
                                          .close = close_store};                                                  \
  static uint32_t open_##NAME(const kv_config *config, kv_opened *opened, kv_database **database) {               \
    static const variant NAME##_variant = {&NAME##_driver, PRODUCT, TYPE, #NAME};                                 \
    return open_store(&NAME##_variant, config, opened, database);                                                 \
  }

#define ALL_LEVELS (1u << KV_NONE | 1u << KV_PROCESS | 1u << KV_POWER)

VARIANT(btree, "berkeleydb", "B+tree with transactions and a log", "b+tree", TRANSACTIONAL, DB_BTREE, 0,
        TREE_CAPABILITIES | TRANSACTION_CAPABILITIES | KV_INDEXES, ALL_LEVELS, run_group, ALL - 2, options + 1)
VARIANT(hash, "berkeleydb-hash", "linear hash table with transactions and a log", "hash", TRANSACTIONAL, DB_HASH,
        HASH_KEY_MAX, ANY_CAPABILITIES | TRANSACTION_CAPABILITIES, ALL_LEVELS, run_group, ALL - 1, options + 1)
VARIANT(cds, "berkeleydb-cds", "B+tree for many readers or one writer, without a log", "b+tree", CONCURRENT, DB_BTREE,
        0, TREE_CAPABILITIES | KV_SINGLE_WRITER | KV_SCAN_BLOCKS_WRITES, 1u << KV_NONE, NULL, 2, options)
VARIANT(plain, "berkeleydb-plain", "B+tree without an environment: no locks, no log", "b+tree", PLAIN, DB_BTREE, 0,
        TREE_CAPABILITIES | KV_SINGLE_THREAD, 1u << KV_NONE, NULL, 2, options)

KV_EXPORT(&btree_driver, &hash_driver, &cds_driver, &plain_driver)
