/* The options of WiredTiger's two drivers, and the configuration strings made from them. */
#include <dlfcn.h>

#include "database.h"

/* Names are WiredTiger's own where it has one; so are the defaults, unless a help text gives another. */
const kv_option wiredtiger_options[BTREE_OPTIONS + LSM_OPTIONS] = {
    {"leaf_page_max", "bytes", "32768", "largest leaf page on disk"},
    {"internal_page_max", "bytes", "4096", "largest internal page on disk"},
    {"allocation_size", "bytes", "4096", "every page on disk is a multiple of this"},
    {"memory_page_max", "bytes", "5242880", "size in the cache at which a page is split or written"},
    {"leaf_value_max", "bytes", "0", "larger values go to overflow pages; 0 = half a leaf page"},
    {"prefix_compression", "flag", "false", "omit the bytes that a key shares with the previous key"},
    {"compression", "choice:none|snappy|zlib|lz4|zstd", "none", "compression of pages; needs an installed extension"},
    {"log", "flag", "false", "at level none: keep a log, written in the background"},
    {"log_file_max", "bytes", "10485760", "size of a log file in bytes (WiredTiger's own default is 100 MB)"},
    {"log_prealloc", "flag", "false", "preallocate log files (WiredTiger's own default is true)"},
    {"sync_method", "choice:fsync|dsync", "fsync", "at level power: how the log is synced"},
    {"checkpoint_seconds", "count", "60", "interval of checkpoints (WiredTiger's own default is 0 = none)"},
    {"checkpoint_log_bytes", "bytes", "0", "bytes of log that trigger a checkpoint; 0 = never"},
    {"eviction_threads_max", "count", "8", "threads that may evict pages"},
    {"direct_io", "flag", "false", "reads and writes of data files bypass the page cache"},
    {"mmap", "flag", "true", "map files that are only read"},
    {"statistics", "flag", "true", "count events (WiredTiger's own default is none)"},
    {"lsm_chunk_size", "bytes", "0", "size of the tree in memory; 0 = 10 MiB, or an eighth of the cache"},
    {"lsm_merge_min", "count", "0", "minimum number of chunks to merge; 0 = WiredTiger decides"},
    {"lsm_merge_max", "count", "15", "maximum number of chunks to merge"},
    {"lsm_bloom", "flag", "true", "Bloom filters of merged chunks"},
    {"lsm_bloom_bit_count", "count", "16", "bits per row of a Bloom filter"},
    {"lsm_auto_throttle", "flag", "true", "slow down puts when chunks are not written fast enough"},
    {"lsm_threads_max", "count", "4", "threads that write and merge chunks"},
};

/* Parts of the configuration strings. */
enum { TABLE, LSM, CONNECTION, CHECKPOINT, EVICTION, LSM_MANAGER, LOG, OURS, PARTS };
enum { CHUNK_BYTES = 10 << 20, CHUNK_BYTES_MIN = 512 << 10, SESSIONS_MIN = 100, PART_SIZE = 256 };
static const uint64_t CACHE_BYTES = 100 << 20, CACHE_BYTES_MIN = 1 << 20; /* WiredTiger's own */

/* The index of each option, in the order above. */
static const struct {
  const char *key;
  int part;
} PLACES[BTREE_OPTIONS + LSM_OPTIONS] = {
    {"leaf_page_max", TABLE},
    {"internal_page_max", TABLE},
    {"allocation_size", TABLE},
    {"memory_page_max", TABLE},
    {"leaf_value_max", TABLE},
    {"prefix_compression", TABLE},
    {"block_compressor", TABLE},
    {NULL, OURS},
    {"file_max", LOG},
    {"prealloc", LOG},
    {NULL, OURS},
    {"wait", CHECKPOINT},
    {"log_size", CHECKPOINT},
    {"threads_max", EVICTION},
    {NULL, OURS},
    {"mmap", CONNECTION},
    {NULL, OURS},
    {NULL, OURS},
    {"merge_min", LSM},
    {"merge_max", LSM},
    {"bloom", LSM},
    {"bloom_bit_count", LSM},
    {"auto_throttle", LSM},
    {"worker_thread_max", LSM_MANAGER},
};

static KV_PRINTF(3, 4) void append(char *text, size_t size, const char *format, ...) {
  const size_t used = strlen(text);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text + used, size - used, format, arguments);
  va_end(arguments);
}

/* Whether `text` is one of the words of a "choice:a|b|c". */
static int is_choice(const char *type, const char *text) {
  const size_t length = strlen(text);
  for (const char *word = strchr(type, ':'); word != NULL && length != 0; word = strchr(word + 1, '|'))
    if (strncmp(word + 1, text, length) == 0 && (word[1 + length] == '|' || word[1 + length] == 0)) return 1;
  return 0;
}

/* Whether the effective value may differ from the requested one. */
static int is_computed(const char *option) {
  return strcmp(option, "log") == 0 || strcmp(option, "sync_method") == 0 || strcmp(option, "lsm_chunk_size") == 0;
}

/* Checks every option, reports it, and adds it to its part. WiredTiger itself checks the ranges. */
static uint32_t read_options(const kv_driver *driver, const kv_config *config, char parts[PARTS][PART_SIZE],
                             kv_opened *opened) {
  for (uint32_t i = 0; i < driver->option_count; i++) {
    const kv_option *option = &driver->options[i];
    const char *text = kv_setting_text(driver, config, option->name);
    uint32_t status = KV_OK;
    uint64_t number;
    int flag;
    if (strcmp(option->type, "flag") == 0) {
      status = kv_setting_flag(driver, config, option->name, &flag, opened);
    } else if (strncmp(option->type, "choice:", 7) != 0) {
      status = kv_setting_number(driver, config, option->name, &number, opened);
    } else if (!is_choice(option->type, text)) {
      status = kv_fail_open(opened, KV_ERROR, "option %s: expected %s, got `%s`", option->name, option->type + 7, text);
    }
    if (status != KV_OK) return status;
    if (PLACES[i].key != NULL) append(parts[PLACES[i].part], PART_SIZE, ",%s=%s", PLACES[i].key, text);
    if (!is_computed(option->name)) kv_opened_setting(opened, option->name, "%s", text);
  }
  return KV_OK;
}

static int is_set(const kv_driver *driver, const kv_config *config, const char *flag) {
  return strcmp(kv_setting_text(driver, config, flag), "true") == 0;
}

/* Debian has compressors as extensions, other builds have them in the library. */
static void load_compressor(const char *compression, wiredtiger_texts *texts) {
  char file[64];
  snprintf(file, sizeof(file), "libwiredtiger_%s.so", compression);
  void *extension = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (extension == NULL) return;
  dlclose(extension);
  append(texts->connection, sizeof(texts->connection), ",extensions=[%s]", file);
}

static void configure_table(const kv_driver *driver, const kv_config *config, char parts[PARTS][PART_SIZE],
                            wiredtiger_texts *texts, kv_opened *opened) {
  append(texts->table, sizeof(texts->table), "key_format=u,value_format=u%s", parts[TABLE]);
  append(texts->pages, sizeof(texts->pages), "%s", parts[TABLE]);
  if (driver != &wiredtiger_lsm) return;
  uint64_t chunk_bytes = strtoull(kv_setting_text(driver, config, "lsm_chunk_size"), NULL, 10);
  if (chunk_bytes == 0) {
    chunk_bytes = opened->cache_bytes / 8 < CHUNK_BYTES ? opened->cache_bytes / 8 : CHUNK_BYTES;
    if (chunk_bytes < CHUNK_BYTES_MIN) chunk_bytes = CHUNK_BYTES_MIN;
  }
  /* A put of a value as large as the cache waits for room that never comes. */
  kv_opened_setting(opened, "value_size_max", "%llu", (unsigned long long)(opened->cache_bytes / 2));
  kv_opened_setting(opened, "lsm_chunk_size", "%llu", (unsigned long long)chunk_bytes);
  append(texts->table, sizeof(texts->table), ",type=lsm,lsm=(chunk_size=%llu%s)", (unsigned long long)chunk_bytes,
         parts[LSM]);
}

uint32_t wiredtiger_configure(const kv_driver *driver, const kv_config *config, wiredtiger_texts *texts,
                              kv_opened *opened) {
  char parts[PARTS][PART_SIZE] = {""};
  const uint32_t status = read_options(driver, config, parts, opened);
  if (status != KV_OK) return status;
  const char *compression = kv_setting_text(driver, config, "compression");
  const int is_committed = opened->level != KV_NONE, is_synced = opened->level == KV_POWER;
  const int is_logged = is_committed || is_set(driver, config, "log");
  const char *sync = is_synced ? kv_setting_text(driver, config, "sync_method") : "none";
  const unsigned sessions = 2 * config->threads + 50;
  opened->cache_bytes = config->cache_bytes != 0 ? config->cache_bytes : CACHE_BYTES;
  if (opened->cache_bytes < CACHE_BYTES_MIN) opened->cache_bytes = CACHE_BYTES_MIN;
  /* Settings from the environment, or from an earlier open, would not be in the record. */
  append(texts->connection, sizeof(texts->connection),
         "use_environment=false,config_base=false,cache_size=%llu,session_max=%u,statistics=(%s),direct_io=[%s]%s",
         (unsigned long long)opened->cache_bytes, sessions > SESSIONS_MIN ? sessions : SESSIONS_MIN,
         is_set(driver, config, "statistics") ? "fast" : "none", is_set(driver, config, "direct_io") ? "data" : "",
         parts[CONNECTION]);
  append(texts->connection, sizeof(texts->connection), ",checkpoint=(%s),eviction=(%s),lsm_manager=(%s)",
         parts[CHECKPOINT] + 1, parts[EVICTION] + 1, parts[LSM_MANAGER] + (parts[LSM_MANAGER][0] == ','));
  append(texts->connection, sizeof(texts->connection), ",log=(enabled=%s%s),transaction_sync=(enabled=%s,method=%s)",
         is_logged ? "true" : "false", parts[LOG], is_committed ? "true" : "false", sync);
  kv_opened_setting(opened, "log", "%s", is_logged ? "true" : "false");
  kv_opened_setting(opened, "sync_method", "%s", sync);
  if ((config->flags & KV_CREATE) != 0) append(texts->connection, sizeof(texts->connection), ",create");
  if (strcmp(compression, "none") != 0) load_compressor(compression, texts);
  configure_table(driver, config, parts, texts, opened);
  snprintf(opened->compression, sizeof(opened->compression), "%s", compression);
  return KV_OK;
}
