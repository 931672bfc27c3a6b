/* TokuKV's reports: effective settings, a selection of its engine status, and its estimate of rows. */
#include "options.h"

/* From partitioned_counter.h, which is installed with tokudb.h: reads a per-thread counter. */
uint64_t read_partitioned_counter(struct partitioned_counter *counter);

/* The engine's name of a number, and its name in a record. */
static const char *const names[][2] = {
    {"CT_MISS", "cache_misses"},
    {"CT_MISSTIME", "cache_misses_us"},
    {"CT_PREFETCHES", "cache_prefetches"},
    {"CT_EVICTIONS", "cache_evictions"},
    {"CT_SIZE_CURRENT", "cache_used_bytes"},
    {"CT_SIZE_LIMIT", "cache_limit_bytes"},
    {"CT_WAIT_PRESSURE_COUNT", "cache_pressure_waits"},
    {"CT_CLEANER_EXECUTIONS", "cleaner_runs"},
    {"CP_CHECKPOINT_COUNT", "checkpoints"},
    {"CP_TIME_CHECKPOINT_DURATION", "checkpoints_s"},
    {"FT_NUM_BASEMENTS_FETCHED_NORMAL", "basements_fetched"},
    {"FT_BYTES_BASEMENTS_FETCHED_NORMAL", "basements_fetched_bytes"},
    {"FT_NUM_BASEMENTS_DECOMPRESSED_NORMAL", "basements_decompressed"},
    {"FT_DISK_FLUSH_LEAF", "leaves_evicted_to_disk"},
    {"FT_DISK_FLUSH_LEAF_FOR_CHECKPOINT", "leaves_checkpointed"},
    {"FT_DISK_FLUSH_LEAF_BYTES_FOR_CHECKPOINT", "leaves_checkpointed_bytes"},
    {"FT_DISK_FLUSH_LEAF_UNCOMPRESSED_BYTES_FOR_CHECKPOINT", "leaves_checkpointed_uncompressed_bytes"},
    {"FT_MSG_NUM", "messages"},
    {"FT_MSG_BYTES_CURR", "messages_buffered_bytes"},
    {"FT_FLUSHER_FLUSH_TOTAL", "buffer_flushes"},
    {"FT_FLUSHER_SPLIT_LEAF", "leaf_splits"},
    {"FT_FLUSHER_MERGE_LEAF", "leaf_merges"},
    {"TXN_BEGIN", "transactions"},
    {"TXN_READ_BEGIN", "read_transactions"},
    {"TXN_COMMIT", "commits"},
    {"TXN_ABORT", "aborts"},
    {"LTM_WAIT_COUNT", "lock_waits"},
    {"LTM_TIMEOUT_COUNT", "lock_timeouts"},
    {"LTM_ESCALATION_COUNT", "lock_escalations"},
    {"LTM_SIZE_CURRENT", "locks_bytes"},
    {"LOGGER_NUM_WRITES", "log_writes"},
    {"LOGGER_BYTES_WRITTEN", "log_written_bytes"},
    {"FS_FSYNC_COUNT", "syncs_of_files"},
    {"FS_FSYNC_TIME", "syncs_of_files_us"},
};

typedef struct page {
  char *out;
  uint64_t size, used;
} page;

static void write_line(page *page, const char *name, uint64_t number) {
  const size_t room = page->used < page->size ? page->size - page->used : 0;
  page->used += (uint64_t)snprintf(room != 0 ? page->out + page->used : NULL, room, "%s=%llu\n", name,
                                   (unsigned long long)number);
}

static void write_status(page *page, const TOKU_ENGINE_STATUS_ROW_S *row) {
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    if (strcmp(row->keyname, names[i][0]) != 0) continue;
    write_line(page, names[i][1],
               row->type == PARCOUNT ? read_partitioned_counter(row->value.parcount) : row->value.num);
  }
}

static void write_tables(page *page, const kv_database *database) {
  DB_BTREE_STAT64 sum = {0};
  for (uint32_t i = 0; i < database->space_count; i++) {
    DB *dictionary = database->spaces[i].dictionaries[0];
    DB_BTREE_STAT64 one;
    if (dictionary->stat64(dictionary, NULL, &one) != 0) return;
    sum.bt_ndata += one.bt_ndata;
    sum.bt_dsize += one.bt_dsize;
    sum.bt_fsize += one.bt_fsize;
  }
  write_line(page, "rows_estimated", sum.bt_ndata);
  write_line(page, "rows_estimated_bytes", sum.bt_dsize);
  write_line(page, "files_bytes", sum.bt_fsize);
}

uint32_t tokukv_stats(kv_database *database, char *out, uint64_t size) {
  DB_ENV *env = database->env;
  page page = {out, size, 0};
  fs_redzone_state zone;
  uint64_t room, count = 0, panic;
  char text[KV_TEXT];
  if (size != 0) out[0] = 0;
  if (env->get_engine_status_num_rows(env, &room) != 0) return KV_ERROR;
  TOKU_ENGINE_STATUS_ROW_S *rows = calloc(room, sizeof(*rows));
  if (rows == NULL) return KV_ERROR;
  if (env->get_engine_status(env, rows, room, &count, &zone, &panic, text, sizeof(text), TOKU_ENGINE_STATUS) != 0)
    count = 0;
  for (uint64_t i = 0; i < count; i++) write_status(&page, &rows[i]);
  free(rows);
  write_tables(&page, database);
  return page.used < size ? KV_OK : KV_SHORT;
}

void tokukv_report(const kv_database *database, const tokukv_wishes *wanted, kv_opened *opened) {
  DB *dictionary = database->spaces[0].dictionaries[0];
  DB_ENV *env = database->env;
  TOKU_COMPRESSION_METHOD method = TOKU_NO_COMPRESSION;
  uint32_t gigabytes = 0, bytes = 0, node = 0, basement = 0, fanout = 0, checkpoint_s = 0, cleaner_s = 0,
           iterations = 0;
  int parts = 0;
  snprintf(opened->version, sizeof(opened->version), "%s", db_version(NULL, NULL, NULL));
  env->get_cachesize(env, &gigabytes, &bytes, &parts);
  opened->cache_bytes = ((uint64_t)gigabytes << 30) + bytes;
  dictionary->get_compression_method(dictionary, &method);
  dictionary->get_pagesize(dictionary, &node);
  dictionary->get_readpagesize(dictionary, &basement);
  dictionary->get_fanout(dictionary, &fanout);
  env->checkpointing_get_period(env, &checkpoint_s);
  env->cleaner_get_period(env, &cleaner_s);
  env->cleaner_get_iterations(env, &iterations);
  snprintf(opened->compression, sizeof(opened->compression), "%s", tokukv_compression(method));
  kv_opened_setting(opened, "value_size_max", "%d", VALUE_SIZE_MAX);
  kv_opened_setting(opened, "node_size", "%u", node);
  kv_opened_setting(opened, "basement_size", "%u", basement);
  kv_opened_setting(opened, "fanout", "%u", fanout);
  kv_opened_setting(opened, "checkpoint_period_s", "%u", checkpoint_s);
  kv_opened_setting(opened, "cleaner_period_s", "%u", cleaner_s);
  kv_opened_setting(opened, "cleaner_iterations", "%u", iterations);
  kv_opened_setting(opened, "direct_io", "%s", wanted->direct_io ? "true" : "false");
  if (!wanted->transactions) return;
  kv_opened_setting(opened, "log_sync_period_ms", "%llu", (unsigned long long)wanted->log_sync_period_ms);
  uint64_t timeout_ms = 0, memory = 0;
  env->get_lock_timeout(env, &timeout_ms);
  env->get_lk_max_memory(env, &memory);
  kv_opened_setting(opened, "lock_timeout_ms", "%llu", (unsigned long long)timeout_ms);
  kv_opened_setting(opened, "lock_memory", "%llu", (unsigned long long)memory);
  kv_opened_setting(opened, "prelock", "%s", wanted->prelock ? "true" : "false");
  kv_opened_setting(opened, "single_transaction", "%s", wanted->single_transaction ? "true" : "false");
  kv_opened_setting(opened, "child_transactions", "%s", wanted->child_transactions ? "true" : "false");
}
