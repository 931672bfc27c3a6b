/* Tokyo Cabinet: its B+ tree (tcbdb) and its hash file (tchdb), one driver table each. */
#include "cabinet.h"

static const kv_driver tree_driver, hash_driver;

static uint32_t open_tree(const kv_config *config, kv_opened *opened, kv_database **database) {
  return tokyo_open(&tree_driver, &tokyo_tree, config, opened, database);
}

static uint32_t open_hash(const kv_config *config, kv_opened *opened, kv_database **database) {
  return tokyo_open(&hash_driver, &tokyo_hash, config, opened, database);
}

static uint32_t begin_session(kv_database *database, const kv_arena *arena, kv_session **session, char *error) {
  kv_session *made = calloc(1, sizeof(kv_session));
  (void)arena;
  if (made == NULL) return kv_fail_call(error, KV_ERROR, "out of memory");
  made->database = database;
  made->key = tcxstrnew(); /* the library ends the process when out of memory */
  made->value = tcxstrnew();
  database->kind->session(made);
  *session = made;
  return KV_OK;
}

static uint32_t end_session(kv_session *session, char *error) {
  (void)error;
  if (session->cursor != NULL) tcbdbcurdel(session->cursor);
  tcxstrdel(session->key);
  tcxstrdel(session->value);
  free(session);
  return KV_OK;
}

static uint32_t maintain(kv_database *database, uint32_t work, char *error) {
  const kind *kind = database->kind;
  bool is_done = true; /* nothing runs in the background */
  pthread_rwlock_wrlock(&database->lock);
  if (work == KV_FLUSH) is_done = kind->sync(database->db);
  if (work == KV_COMPACT) is_done = kind->optimize(database->db);
  pthread_rwlock_unlock(&database->lock);
  if (is_done) return KV_OK;
  return kv_fail_call(error, KV_ERROR, "%s: %s", work == KV_FLUSH ? "flush" : "compact",
                      tcerrmsg(kind->error(database->db)));
}

static uint32_t stats(kv_database *database, char *out, uint64_t size) {
  pthread_rwlock_rdlock(&database->lock);
  const size_t length = database->kind->stats(database->db, out, size);
  pthread_rwlock_unlock(&database->lock);
  return length < size ? KV_OK : KV_SHORT;
}

static uint32_t close_database(kv_database *database, char *error) {
  const kind *kind = database->kind;
  uint32_t status = KV_OK;
  if (!kind->close(database->db))
    status = kv_fail_call(error, KV_ERROR, "close: %s", tcerrmsg(kind->error(database->db)));
  kind->free(database->db);
  pthread_rwlock_destroy(&database->lock);
  free(database);
  return status;
}

#define OPTIONS(map, alignment)                                                                          \
  {"map", "bytes", map, "bytes of the file, after its buckets, that are mapped into memory"},            \
      {"alignment_power", "count", alignment, "rows of the file are aligned to 2 to this power"},        \
      {"free_block_power", "count", "10", "2 to this power is the number of free blocks remembered"},    \
      {"defragment", "count", "0", "changes between defragmentation steps; 0 = no defragmentation"},     \
      {"large", "flag", "true", "64-bit addresses; as shipped (false) a file ends at 2 GiB"}, {          \
    "compression", "choice:none|deflate|bzip2|tcbs", "none", "compression of a row, or of a tree's leaf" \
  }

static const kv_option tree_options[] = {
    {"buckets", "count", "0", "buckets of the underlying hash file, more than the pages; 0 = 32749, as shipped"},
    {"page_size", "bytes", "16384", "size of a leaf in bytes at which it is split"},
    {"leaf_rows", "count", "128", "rows of a leaf at which it is split"},
    {"node_links", "count", "256", "links of a node at which it is split"},
    OPTIONS("0", "8"),
};

static const kv_option hash_options[] = {
    {"buckets", "count", "0", "buckets; 0 = 131071, as shipped, or twice the expected rows if that is more"},
    {"cached_records", "count", "0", "rows cached in memory of the process"},
    OPTIONS("67108864", "4"),
};

#define TABLE                                                                                                     \
  .abi = KV_ABI, .size = sizeof(kv_driver), .language = "C",                                                      \
  .levels = 1u << KV_NONE | 1u << KV_PROCESS | 1u << KV_POWER, .close = close_database, .session = begin_session, \
  .session_end = end_session, .maintain = maintain, .stats = stats

static const kv_driver tree_driver = {
    TABLE,
    .name = "tokyocabinet",
    .engine = "Tokyo Cabinet's B+ tree in a hash file",
    .family = "b+tree",
    .capabilities = TOKYO_TREE,
    .option_count = sizeof(tree_options) / sizeof(tree_options[0]),
    .options = tree_options,
    .open = open_tree,
    .execute = tokyo_execute_tree,
};

static const kv_driver hash_driver = {
    TABLE,
    .name = "tokyocabinet-hash",
    .engine = "Tokyo Cabinet's hash file",
    .family = "hash",
    .capabilities = TOKYO_HASH,
    .option_count = sizeof(hash_options) / sizeof(hash_options[0]),
    .options = hash_options,
    .open = open_hash,
    .execute = tokyo_execute_hash,
};

KV_EXPORT(&tree_driver, &hash_driver)
