/* Opens, maintains and closes an LMDB environment, and reads its options. */
#include <unistd.h>

#include "database.h"

static const uint64_t MAP_BYTES = 64ull << 30;
/* LMDB's own default; a session uses one slot, maintenance another for a moment. */
static const unsigned READERS_MIN = 126;

const kv_option lmdb_options[OPTION_COUNT] = {
    {"write-map", "flag", "false", "write through the map (MDB_WRITEMAP) instead of pwrite"},
    {"map-size", "bytes", "0", "size of the map; 0 = the disk limit, otherwise 64 GiB"},
    {"read-ahead", "flag", "true", "let the system read ahead in the map"},
};

/* Opens the named databases; a single keyspace needs no name, which saves the page of names in each commit. */
static uint32_t open_keyspaces(kv_database *database, const kv_config *config, kv_opened *opened) {
  const unsigned flags = (config->flags & KV_CREATE) != 0 ? MDB_CREATE : 0;
  MDB_txn *transaction;
  char name[16];
  MDB_dbi named;
  int code = mdb_txn_begin(database->environment, NULL, 0, &transaction);
  if (code != 0) return kv_fail_open(opened, KV_ERROR, "open: %s", mdb_strerror(code));
  if (config->keyspaces == 1) {
    code = mdb_dbi_open(transaction, NULL, 0, &database->databases[0]);
    if (code == 0 && flags == 0 && mdb_dbi_open(transaction, "k0", 0, &named) == 0) code = MDB_INCOMPATIBLE;
  }
  for (uint32_t i = 0; i < config->keyspaces && config->keyspaces > 1 && code == 0; i++) {
    snprintf(name, sizeof(name), "k%u", i);
    code = mdb_dbi_open(transaction, name, flags, &database->databases[i]);
  }
  if (code == MDB_NOTFOUND || code == MDB_INCOMPATIBLE) {
    mdb_txn_abort(transaction);
    return kv_fail_open(opened, KV_ERROR, "open: the database was not created with %u keyspaces", config->keyspaces);
  }
  if (code == 0)
    code = mdb_txn_commit(transaction);
  else
    mdb_txn_abort(transaction);
  return code == 0 ? KV_OK : kv_fail_open(opened, KV_ERROR, "open: keyspaces: %s", mdb_strerror(code));
}

static uint32_t open_environment(kv_database *database, const kv_config *config, kv_opened *opened, uint64_t map_bytes,
                                 unsigned flags) {
  const unsigned readers = 2 * config->threads > READERS_MIN ? 2 * config->threads : READERS_MIN;
  const char *what = "create an environment";
  char file[4096];
  snprintf(file, sizeof(file), "%s/data.mdb", config->path);
  if ((config->flags & KV_CREATE) == 0 && access(file, F_OK) != 0)
    return kv_fail_open(opened, KV_ERROR, "open: %s: %s", file, strerror(errno));
  int code = mdb_env_create(&database->environment);
  if (code == 0) code = (what = "map-size", mdb_env_set_mapsize(database->environment, map_bytes));
  if (code == 0) code = (what = "keyspaces", mdb_env_set_maxdbs(database->environment, config->keyspaces));
  if (code == 0) code = (what = "readers", mdb_env_set_maxreaders(database->environment, readers));
  if (code == 0) code = (what = config->path, mdb_env_open(database->environment, config->path, flags, 0644));
  if (code != 0) return kv_fail_open(opened, KV_ERROR, "open: %s: %s", what, mdb_strerror(code));
  if (mdb_env_get_maxkeysize(database->environment) < KEY_BYTES_MAX)
    return kv_fail_open(opened, KV_UNSUPPORTED, "this LMDB was built for keys of at most %d bytes, not %d",
                        mdb_env_get_maxkeysize(database->environment), KEY_BYTES_MAX);
  return open_keyspaces(database, config, opened);
}

uint32_t lmdb_open(const kv_config *config, kv_opened *opened, kv_database **database) {
  uint64_t map_bytes;
  int write_map, read_ahead, major, minor, patch;
  uint32_t status = kv_open_begin(&lmdb_system, config, opened);
  if (status == KV_OK) status = kv_pick_level(&lmdb_system, config, KV_POWER, opened);
  if (status == KV_OK) status = kv_setting_flag(&lmdb_system, config, "write-map", &write_map, opened);
  if (status == KV_OK) status = kv_setting_flag(&lmdb_system, config, "read-ahead", &read_ahead, opened);
  if (status == KV_OK) status = kv_setting_number(&lmdb_system, config, "map-size", &map_bytes, opened);
  if (status != KV_OK) return status;
  if (map_bytes == 0) map_bytes = config->disk_limit_bytes != 0 ? config->disk_limit_bytes : MAP_BYTES;
  if (map_bytes < 1 << 20) map_bytes = 1 << 20;
  if (map_bytes > UINT64_MAX >> 1) return kv_fail_open(opened, KV_ERROR, "option map-size: too large");
  map_bytes = (map_bytes + 0xffff) & ~0xffffull;
  kv_database *made = calloc(1, sizeof(kv_database) + config->keyspaces * sizeof(MDB_dbi));
  if (made == NULL) return kv_fail_open(opened, KV_ERROR, "out of memory");
  made->keyspaces = config->keyspaces;
  const int is_synced = opened->level == KV_POWER;
  /* MDB_NOTLS: a reader's slot belongs to its session, not to the thread that created it. */
  status = open_environment(
      made, config, opened, map_bytes,
      MDB_NOTLS | (is_synced ? 0 : MDB_NOSYNC) | (write_map ? MDB_WRITEMAP : 0) | (read_ahead ? 0 : MDB_NORDAHEAD));
  if (status != KV_OK) {
    mdb_env_close(made->environment);
    free(made);
    return status;
  }
  mdb_version(&major, &minor, &patch);
  snprintf(opened->version, sizeof(opened->version), "%d.%d.%d", major, minor, patch);
  snprintf(opened->compression, sizeof(opened->compression), "none");
  kv_opened_setting(opened, "no-sync", "%s", is_synced ? "false" : "true");
  kv_opened_setting(opened, "write-map", "%s", write_map ? "true" : "false");
  kv_opened_setting(opened, "map-size", "%llu", (unsigned long long)map_bytes);
  kv_opened_setting(opened, "read-ahead", "%s", read_ahead ? "true" : "false");
  *database = made;
  return KV_OK;
}

uint32_t lmdb_maintain(kv_database *database, uint32_t work, char *error) {
  if (work == KV_COMPACT) return KV_UNSUPPORTED; /* can only write a copy */
  if (work == KV_SETTLE) return KV_OK;           /* nothing runs in the background */
  const int code = mdb_env_sync(database->environment, 1);
  return code == 0 ? KV_OK : kv_fail_call(error, KV_ERROR, "flush: %s", mdb_strerror(code));
}

uint32_t lmdb_stats(kv_database *database, char *out, uint64_t size) {
  MDB_envinfo info;
  MDB_stat sum = {0}, one;
  MDB_txn *transaction;
  if (size != 0) out[0] = 0;
  if (mdb_env_info(database->environment, &info) != 0) return KV_ERROR;
  if (mdb_txn_begin(database->environment, NULL, MDB_RDONLY, &transaction) != 0) return KV_ERROR;
  for (uint32_t i = 0; i < database->keyspaces; i++) {
    if (mdb_stat(transaction, database->databases[i], &one) != 0) continue;
    sum.ms_psize = one.ms_psize;
    if (one.ms_depth > sum.ms_depth) sum.ms_depth = one.ms_depth;
    sum.ms_branch_pages += one.ms_branch_pages;
    sum.ms_leaf_pages += one.ms_leaf_pages;
    sum.ms_overflow_pages += one.ms_overflow_pages;
    sum.ms_entries += one.ms_entries;
  }
  mdb_txn_abort(transaction);
  const int length =
      snprintf(out, size,
               "last_page=%zu\npage_bytes=%u\nreaders=%u\nlast_transaction=%zu\nlevels=%u\nbranch_pages=%zu\n"
               "leaf_pages=%zu\noverflow_pages=%zu\nrows=%zu\n",
               info.me_last_pgno, sum.ms_psize, info.me_numreaders, info.me_last_txnid, sum.ms_depth,
               sum.ms_branch_pages, sum.ms_leaf_pages, sum.ms_overflow_pages, sum.ms_entries);
  return length >= 0 && (uint64_t)length < size ? KV_OK : KV_SHORT;
}

uint32_t lmdb_close(kv_database *database, char *error) {
  const int code = mdb_env_sync(database->environment, 1);
  mdb_env_close(database->environment);
  free(database);
  return code == 0 ? KV_OK : kv_fail_call(error, KV_ERROR, "close: %s", mdb_strerror(code));
}
