/* Opens, maintains and closes an SQLite file, and reads its options. */
#include "database.h"

/* The default of `PRAGMA cache_size`, for each connection. */
static const uint64_t CACHE_BYTES = 2048000;

const kv_option sqlite_options[OPTION_COUNT] = {
    {"synchronous", "choice:off|normal", "off", "at process: whether checkpoints sync"},
    {"page-size", "bytes", "4096", "page size in bytes, a power of two; only for a new database"},
    {"mmap-size", "bytes", "0", "bytes of the file that are read through a memory map"},
    {"wal-autocheckpoint", "count", "1000", "pages in the log that start a checkpoint"},
    {"busy-timeout-ms", "count", "5000", "how long one attempt waits for another writer"},
};

static const struct {
  int what;
  const char *name;
} COUNTERS[COUNTER_COUNT] = {
    {SQLITE_DBSTATUS_CACHE_HIT, "cache_hits"},
    {SQLITE_DBSTATUS_CACHE_MISS, "cache_misses"},
    {SQLITE_DBSTATUS_CACHE_WRITE, "cache_writes"},
    {SQLITE_DBSTATUS_CACHE_SPILL, "cache_spills"},
};

sqlite3 *sqlite_connect(const kv_database *database, int is_new, char *error) {
  /* A session is used by one thread at a time, so its connection needs no mutex. */
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | (is_new ? SQLITE_OPEN_CREATE : 0);
  sqlite3 *made = NULL;
  int code = sqlite3_open_v2(database->file, &made, flags, NULL);
  if (code == SQLITE_OK) code = sqlite3_busy_timeout(made, database->busy_timeout_ms);
  if (code == SQLITE_OK) code = sqlite3_exec(made, database->pragmas, NULL, NULL, NULL);
  if (code == SQLITE_OK) return made;
  kv_fail_call(error, KV_ERROR, "%s: %s", database->file, made != NULL ? sqlite3_errmsg(made) : sqlite3_errstr(code));
  sqlite3_close(made);
  return NULL;
}

/* The single value of a pragma as text; empty if there is none. */
static void pragma(sqlite3 *connection, const char *name, char *text, size_t size) {
  sqlite3_stmt *statement;
  char sql[64];
  snprintf(sql, sizeof(sql), "PRAGMA %s", name);
  text[0] = 0;
  if (sqlite3_prepare_v2(connection, sql, -1, &statement, NULL) != SQLITE_OK) return;
  if (sqlite3_step(statement) == SQLITE_ROW)
    snprintf(text, size, "%s", (const char *)sqlite3_column_text(statement, 0));
  sqlite3_finalize(statement);
}

/* Creates the tables, or checks that they exist. */
static uint32_t open_keyspaces(const kv_database *database, int is_new, kv_opened *opened) {
  char sql[160];
  for (uint32_t i = 0; i < database->keyspaces; i++) {
    snprintf(sql, sizeof(sql),
             is_new ? "CREATE TABLE k%u (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID"
                    : "SELECT key, value FROM k%u LIMIT 0",
             i);
    if (sqlite3_exec(database->keeper, sql, NULL, NULL, NULL) != SQLITE_OK)
      return kv_fail_open(opened, KV_ERROR, "open: %s", sqlite3_errmsg(database->keeper));
  }
  return KV_OK;
}

/* The settings of each connection, from the options. */
static uint32_t read_options(kv_database *made, const kv_config *config, kv_opened *opened) {
  const char *synchronous = kv_setting_text(&sqlite_system, config, "synchronous");
  uint64_t page, mmap, checkpoint, busy_ms;
  uint32_t status = kv_setting_number(&sqlite_system, config, "page-size", &page, opened);
  if (status == KV_OK) status = kv_setting_number(&sqlite_system, config, "mmap-size", &mmap, opened);
  if (status == KV_OK) status = kv_setting_number(&sqlite_system, config, "wal-autocheckpoint", &checkpoint, opened);
  if (status == KV_OK) status = kv_setting_number(&sqlite_system, config, "busy-timeout-ms", &busy_ms, opened);
  if (status != KV_OK) return status;
  if (strcmp(synchronous, "off") != 0 && strcmp(synchronous, "normal") != 0)
    return kv_fail_open(opened, KV_ERROR, "option synchronous: expected off or normal, got `%s`", synchronous);
  if (page < 512 || page > 65536 || (page & (page - 1)) != 0)
    return kv_fail_open(opened, KV_ERROR, "option page-size: expected a power of two from 512 to 65536, got %llu",
                        (unsigned long long)page);
  if (busy_ms > INT32_MAX || checkpoint > INT32_MAX)
    return kv_fail_open(opened, KV_ERROR, "option %s: at most %d",
                        busy_ms > INT32_MAX ? "busy-timeout-ms" : "wal-autocheckpoint", INT32_MAX);
  /* The budget is split: each connection has its own cache. */
  const uint64_t connections = (uint64_t)config->threads + 1;
  const uint64_t cache_bytes = config->cache_bytes != 0 ? config->cache_bytes / connections : CACHE_BYTES;
  const uint64_t cache_kib = cache_bytes / 1024 != 0 ? cache_bytes / 1024 : 1;
  opened->cache_bytes = cache_kib * 1024 * connections;
  made->busy_timeout_ms = (int)busy_ms;
  snprintf(made->pragmas, sizeof(made->pragmas),
           "PRAGMA page_size=%llu; PRAGMA journal_mode=wal; PRAGMA synchronous=%s; PRAGMA cache_size=-%llu;"
           "PRAGMA mmap_size=%llu; PRAGMA wal_autocheckpoint=%llu;",
           (unsigned long long)page, opened->level == KV_POWER ? "full" : synchronous, (unsigned long long)cache_kib,
           (unsigned long long)mmap, (unsigned long long)checkpoint);
  return KV_OK;
}

static void report_settings(const kv_database *database, kv_opened *opened) {
  static const char *const names[][2] = {
      {"page-size", "page_size"},   {"journal-mode", "journal_mode"}, {"synchronous", "synchronous"},
      {"cache-size", "cache_size"}, {"mmap-size", "mmap_size"},       {"wal-autocheckpoint", "wal_autocheckpoint"},
  };
  char text[64];
  kv_opened_setting(opened, "busy-timeout-ms", "%d", database->busy_timeout_ms);
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    pragma(database->keeper, names[i][1], text, sizeof(text));
    kv_opened_setting(opened, names[i][0], "%s", text);
  }
  snprintf(opened->version, sizeof(opened->version), "%s", sqlite3_libversion());
  snprintf(opened->compression, sizeof(opened->compression), "none");
}

static void let_go(kv_database *database) {
  sqlite3_close(database->keeper);
  pthread_mutex_destroy(&database->lock);
  free(database->file);
  free(database);
}

uint32_t sqlite_open(const kv_config *config, kv_opened *opened, kv_database **database) {
  const int is_new = (config->flags & KV_CREATE) != 0;
  const size_t file_size = strlen(config->path) + sizeof("/data.sqlite");
  uint32_t status = kv_open_begin(&sqlite_system, config, opened);
  if (status == KV_OK) status = kv_pick_level(&sqlite_system, config, KV_POWER, opened);
  if (status != KV_OK) return status;
  if (!sqlite3_threadsafe()) return kv_fail_open(opened, KV_UNSUPPORTED, "this SQLite was built without threads");
  kv_database *made = calloc(1, sizeof(kv_database));
  if (made == NULL) return kv_fail_open(opened, KV_ERROR, "out of memory");
  pthread_mutex_init(&made->lock, NULL);
  made->keyspaces = config->keyspaces;
  made->file = malloc(file_size);
  if (made->file == NULL)
    status = kv_fail_open(opened, KV_ERROR, "out of memory");
  else
    snprintf(made->file, file_size, "%s/data.sqlite", config->path);
  if (status == KV_OK) status = read_options(made, config, opened);
  if (status == KV_OK && (made->keeper = sqlite_connect(made, is_new, opened->error)) == NULL) status = KV_ERROR;
  if (status == KV_OK) status = open_keyspaces(made, is_new, opened);
  if (status != KV_OK) {
    let_go(made);
    return status;
  }
  report_settings(made, opened);
  *database = made;
  return KV_OK;
}

void sqlite_count(kv_database *database, sqlite3 *connection) {
  int now, highest;
  pthread_mutex_lock(&database->lock);
  for (int i = 0; i < COUNTER_COUNT; i++)
    if (sqlite3_db_status(connection, COUNTERS[i].what, &now, &highest, 0) == SQLITE_OK)
      database->counters[i] += (uint64_t)now;
  pthread_mutex_unlock(&database->lock);
}

/* A checkpoint syncs log and file only if synchronous is not off. */
static int sync_and_checkpoint(const kv_database *database) {
  char before[16], sql[64];
  pragma(database->keeper, "synchronous", before, sizeof(before));
  snprintf(sql, sizeof(sql), "PRAGMA synchronous=%s", before);
  int code = sqlite3_exec(database->keeper, "PRAGMA synchronous=full", NULL, NULL, NULL);
  if (code == SQLITE_OK)
    code = sqlite3_wal_checkpoint_v2(database->keeper, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
  const int after = sqlite3_exec(database->keeper, sql, NULL, NULL, NULL);
  return code != SQLITE_OK ? code : after;
}

uint32_t sqlite_maintain(kv_database *database, uint32_t work, char *error) {
  int code;
  if (work == KV_SETTLE) return KV_OK; /* nothing runs in the background */
  pthread_mutex_lock(&database->lock);
  code = work == KV_FLUSH ? sync_and_checkpoint(database) : sqlite3_exec(database->keeper, "VACUUM", NULL, NULL, NULL);
  pthread_mutex_unlock(&database->lock);
  return code == SQLITE_OK ? KV_OK : kv_fail_call(error, KV_ERROR, "maintain: %s", sqlite3_errstr(code));
}

uint32_t sqlite_stats(kv_database *database, char *out, uint64_t size) {
  char pages[24], free_pages[24];
  uint64_t used;
  pthread_mutex_lock(&database->lock);
  pragma(database->keeper, "page_count", pages, sizeof(pages));
  pragma(database->keeper, "freelist_count", free_pages, sizeof(free_pages));
  used = (uint64_t)snprintf(out, size, "page_count=%s\nfreelist_count=%s\n", pages, free_pages);
  for (int i = 0; i < COUNTER_COUNT && used < size; i++)
    used += (uint64_t)snprintf(out + used, size - used, "%s=%llu\n", COUNTERS[i].name,
                               (unsigned long long)database->counters[i]);
  pthread_mutex_unlock(&database->lock);
  return used < size ? KV_OK : KV_SHORT;
}

uint32_t sqlite_close_all(kv_database *database, char *error) {
  const int code = sync_and_checkpoint(database);
  let_go(database);
  return code == SQLITE_OK ? KV_OK : kv_fail_call(error, KV_ERROR, "close: %s", sqlite3_errstr(code));
}
