/* Berkeley DB's checkpoints, made by a thread that ends before close; flush, compaction and statistics. */
#include "berkeleydb.h"

enum { LOOK_MS = 200 }; /* how often the length of the log is checked */

/* Writes out dirty pages if this much log was written since the last time (0: any amount; DB_FORCE: always). */
int checkpoint(kv_database *database, uint32_t kilobytes, uint32_t flags) {
  int code;
  pthread_mutex_lock(&database->checkpoint_lock);
  code = database->environment->txn_checkpoint(database->environment, kilobytes, 0, flags);
  pthread_mutex_unlock(&database->checkpoint_lock);
  return code;
}

static uint64_t now_ms(void) {
  struct timespec moment;
  clock_gettime(CLOCK_MONOTONIC, &moment);
  return (uint64_t)moment.tv_sec * 1000 + (uint64_t)moment.tv_nsec / 1000000;
}

static void *make_checkpoints(void *given) {
  kv_database *database = given;
  DB_ENV *environment = database->environment;
  const uint64_t period_ms = database->checkpoint_seconds * 1000;
  const uint32_t kilobytes = (uint32_t)((database->checkpoint_log + 1023) / 1024);
  uint64_t last = now_ms();
  int code = 0;
  pthread_mutex_lock(&database->checkpoint_lock);
  while (!database->is_closing && code == 0) {
    const uint64_t wake = now_ms() + LOOK_MS;
    const struct timespec moment = {(time_t)(wake / 1000), (long)(wake % 1000 * 1000000)};
    pthread_cond_timedwait(&database->checkpoint_wake, &database->checkpoint_lock, &moment);
    if (database->is_closing) break;
    if (period_ms != 0 && now_ms() - last >= period_ms) {
      code = environment->txn_checkpoint(environment, 0, 0, 0);
      last = now_ms();
    } else if (kilobytes != 0) {
      code = environment->txn_checkpoint(environment, kilobytes, 0, 0);
    }
  }
  database->checkpoint_code = code;
  pthread_mutex_unlock(&database->checkpoint_lock);
  return NULL;
}

int start_checkpoints(kv_database *database) {
  pthread_condattr_t attributes;
  database->is_open = 1;
  if (database->checkpoint_seconds == 0 && database->checkpoint_log == 0) return 0;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&database->checkpoint_wake, &attributes);
  pthread_condattr_destroy(&attributes);
  database->is_checkpointing = pthread_create(&database->checkpointer, NULL, make_checkpoints, database) == 0;
  if (!database->is_checkpointing) pthread_cond_destroy(&database->checkpoint_wake);
  return database->is_checkpointing ? 0 : EAGAIN;
}

void stop_checkpoints(kv_database *database) {
  if (!database->is_checkpointing) return;
  pthread_mutex_lock(&database->checkpoint_lock);
  database->is_closing = 1;
  pthread_cond_signal(&database->checkpoint_wake);
  pthread_mutex_unlock(&database->checkpoint_lock);
  pthread_join(database->checkpointer, NULL);
  pthread_cond_destroy(&database->checkpoint_wake);
}

/* Frees empty pages, file by file. */
static int compact(kv_database *database) {
  int code = 0;
  for (uint32_t i = 0; i < database->keyspace_count && code == 0; i++) {
    DB_COMPACT facts;
    DB *db = database->keyspaces[i].db;
    memset(&facts, 0, sizeof(facts));
    code = db->compact(db, NULL, NULL, NULL, &facts, DB_FREE_SPACE, NULL);
  }
  return code;
}

uint32_t maintain_store(kv_database *database, uint32_t work, char *error) {
  const int has_log = database->variant->product == TRANSACTIONAL;
  int code = 0;
  if (work == KV_COMPACT && database->is_single) return KV_UNSUPPORTED; /* it would wait for the single transaction */
  if (work == KV_COMPACT) code = compact(database);
  if (work == KV_FLUSH && has_log) code = checkpoint(database, 0, DB_FORCE);
  if (work == KV_SETTLE && has_log) code = checkpoint(database, 0, 0); /* so that none follows soon */
  for (uint32_t i = 0; i < database->keyspace_count && work == KV_FLUSH && !has_log && code == 0; i++)
    code = database->keyspaces[i].db->sync(database->keyspaces[i].db, 0);
  return code == 0 ? KV_OK : kv_fail_call(error, KV_ERROR, "maintain: %s", explain(code));
}

static KV_PRINTF(4, 5) void add(char *out, uint64_t size, uint64_t *used, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(*used < size ? out + *used : NULL, *used < size ? size - *used : 0, format, arguments);
  va_end(arguments);
  if (length > 0) *used += (uint64_t)length;
}

static void add_cache(DB_ENV *environment, char *out, uint64_t size, uint64_t *used) {
  DB_MPOOL_STAT *cache;
  if (environment->memp_stat(environment, &cache, NULL, 0) != 0) return;
  add(out, size, used, "cache_hits=%ju\ncache_misses=%ju\n", (uintmax_t)cache->st_cache_hit,
      (uintmax_t)cache->st_cache_miss);
  add(out, size, used, "pages_read=%ju\npages_written=%ju\n", (uintmax_t)cache->st_page_in,
      (uintmax_t)cache->st_page_out);
  add(out, size, used, "pages_in_cache=%ju\npages_dirty=%ju\n", (uintmax_t)cache->st_pages,
      (uintmax_t)cache->st_page_dirty);
  add(out, size, used, "pages_evicted_clean=%ju\npages_evicted_dirty=%ju\n", (uintmax_t)cache->st_ro_evict,
      (uintmax_t)cache->st_rw_evict);
  free(cache);
}

static void add_transactions(DB_ENV *environment, char *out, uint64_t size, uint64_t *used) {
  DB_TXN_STAT *transactions;
  DB_LOCK_STAT *locks;
  DB_LOG_STAT *log;
  if (environment->txn_stat(environment, &transactions, 0) == 0) {
    add(out, size, used, "commits=%ju\naborts=%ju\n", (uintmax_t)transactions->st_ncommits,
        (uintmax_t)transactions->st_naborts);
    free(transactions);
  }
  if (environment->lock_stat(environment, &locks, 0) == 0) {
    add(out, size, used, "deadlocks=%ju\nlocks_most=%ju\nlock_waits=%ju\n", (uintmax_t)locks->st_ndeadlocks,
        (uintmax_t)locks->st_maxnlocks, (uintmax_t)locks->st_lock_wait);
    free(locks);
  }
  if (environment->log_stat(environment, &log, 0) == 0) {
    add(out, size, used, "log_written_bytes=%ju\nlog_syncs=%ju\n",
        (uintmax_t)log->st_w_mbytes * 1048576 + log->st_w_bytes, (uintmax_t)log->st_scount);
    add(out, size, used, "log_since_checkpoint_bytes=%ju\nlog_file=%ju\n",
        (uintmax_t)log->st_wc_mbytes * 1048576 + log->st_wc_bytes, (uintmax_t)log->st_cur_file);
    free(log);
  }
}

uint32_t store_stats(kv_database *database, char *out, uint64_t size) {
  uint64_t used = 0;
  for (uint32_t i = 0; i < database->keyspace_count; i++) {
    DB *db = database->keyspaces[i].db;
    db_pgno_t pages = 0;
    if (db->mpf->get_last_pgno(db->mpf, &pages) == 0) add(out, size, &used, "pages_of_keyspace_%u=%u\n", i, pages + 1);
    if (database->environment == NULL && i == 0) add_cache(db->get_env(db), out, size, &used);
    if (i == 15) break; /* enough for the record */
  }
  if (database->environment != NULL) add_cache(database->environment, out, size, &used);
  if (database->variant->product == TRANSACTIONAL) add_transactions(database->environment, out, size, &used);
  return used < size ? KV_OK : KV_SHORT;
}
