/* Opens and closes RocksDB, and reads its options. */
#include "database.h"

#include <limits.h>

/* Test hooks that RocksDB compiles only without NDEBUG, that is, with its assertions. */
extern void rocksdb_sync_point(void) __asm__("_ZN7rocksdb9SyncPoint11GetInstanceEv") __attribute__((weak));

const kv_option database_options[] = {
    {"write_buffer", "bytes", "67108864", "size of a memtable in bytes, before it becomes a file"},
    {"write_buffers", "count", "2", "maximum number of memtables, including the active one"},
    {"block_size", "bytes", "4096", "size of a block in bytes, before compression"},
    {"file_size", "bytes", "67108864", "size of a file of level 1 in bytes"},
    {"level_size", "bytes", "268435456", "size of level 1 in bytes; each further level has ten times as much"},
    {"open_files", "count", "0", "files that may be open at the same time; 0 = no limit, as shipped"},
    {"bloom_bits", "count", "0", "bits per key of a Bloom filter; 0 = no filter, as shipped"},
    {"cache_index", "flag", "false", "index and filter blocks also in the block cache, those of level 0 pinned"},
    {"compression", "choice:snappy|none|lz4|lz4hc|zlib|bzip2|zstd", "snappy", "compression of blocks"},
    {"compaction", "choice:level|universal", "level", "compaction style"},
    {"background_threads", "count", "0", "threads for flushes and compactions; 0 = as shipped: two jobs"},
    {"wal", "choice:auto|true|false", "auto", "the write-ahead log; auto: on unless the level is none"},
    {"use_fsync", "flag", "false", "fsync instead of fdatasync"},
    {"direct_reads", "flag", "false", "reads bypass the page cache"},
    {"direct_writes", "flag", "false", "flushes and compactions bypass the page cache"},
};

/* The arguments of open, and its first failure. */
typedef struct opening {
  const kv_driver *driver;
  const kv_config *config;
  kv_opened *opened;
  uint32_t status;
} opening;

/* A number of at most `most`, reported as effective. */
static uint64_t number(opening *opening, const char *name, uint64_t most) {
  uint64_t number = 0;
  if (opening->status != KV_OK) return 0;
  opening->status = kv_setting_number(opening->driver, opening->config, name, &number, opening->opened);
  if (opening->status == KV_OK && number > most)
    opening->status =
        kv_fail_open(opening->opened, KV_ERROR, "option %s: at most %llu", name, (unsigned long long)most);
  kv_opened_setting(opening->opened, name, "%llu", (unsigned long long)number);
  return number;
}

static int flag(opening *opening, const char *name) {
  int flag = 0;
  if (opening->status != KV_OK) return 0;
  opening->status = kv_setting_flag(opening->driver, opening->config, name, &flag, opening->opened);
  kv_opened_setting(opening->opened, name, "%s", flag ? "true" : "false");
  return flag;
}

/* The index among `choices` of the option's value. */
static int choice(opening *opening, const char *name, const char *const *choices, int count) {
  const char *text = kv_setting_text(opening->driver, opening->config, name);
  for (int i = 0; i < count; i++)
    if (strcmp(text, choices[i]) == 0) return i;
  if (opening->status == KV_OK)
    opening->status = kv_fail_open(opening->opened, KV_ERROR, "option %s: unknown choice `%s`", name, text);
  return 0;
}

static const char *const compressions[] = {"none", "snappy", "zlib", "bzip2", "lz4", "lz4hc", "xpress", "zstd"};

static void set_table(opening *opening, kv_database *made) {
  rocksdb_table_t *table = rocksdb_block_based_options_create();
  const int bits = (int)number(opening, "bloom_bits", 1000);
  const int cache_index = flag(opening, "cache_index");
  rocksdb_block_based_options_set_block_cache(table, made->cache);
  rocksdb_block_based_options_set_block_size(table, number(opening, "block_size", UINT32_MAX));
  if (bits != 0) rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_bloom_full(bits));
  rocksdb_block_based_options_set_cache_index_and_filter_blocks(table, (unsigned char)cache_index);
  rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(table, (unsigned char)cache_index);
  rocksdb_options_set_block_based_table_factory(made->options, table);
  rocksdb_block_based_options_destroy(table);
}

static void set_options(opening *opening, kv_database *made) {
  static const char *const compactions[] = {"level", "universal"};
  rocksdb_options_t *options = made->options;
  const unsigned char is_new = (opening->config->flags & KV_CREATE) != 0;
  rocksdb_options_set_create_if_missing(options, is_new);
  rocksdb_options_set_create_missing_column_families(options, is_new);
  rocksdb_options_set_error_if_exists(options, is_new);
  rocksdb_options_set_write_buffer_size(options, number(opening, "write_buffer", SIZE_MAX));
  rocksdb_options_set_max_write_buffer_number(options, (int)number(opening, "write_buffers", INT_MAX));
  rocksdb_options_set_target_file_size_base(options, number(opening, "file_size", UINT64_MAX));
  rocksdb_options_set_max_bytes_for_level_base(options, number(opening, "level_size", UINT64_MAX));
  const int files = (int)number(opening, "open_files", INT_MAX);
  rocksdb_options_set_max_open_files(options, files != 0 ? files : -1);
  const int compression = choice(opening, "compression", compressions, 8);
  rocksdb_options_set_compression(options, compression);
  snprintf(opening->opened->compression, sizeof(opening->opened->compression), "%s", compressions[compression]);
  const int compaction = choice(opening, "compaction", compactions, 2);
  rocksdb_options_set_compaction_style(options, compaction);
  kv_opened_setting(opening->opened, "compaction", "%s", compactions[compaction]);
  const int threads = (int)number(opening, "background_threads", INT_MAX);
  if (threads != 0) rocksdb_options_increase_parallelism(options, threads);
  rocksdb_options_set_use_fsync(options, flag(opening, "use_fsync"));
  rocksdb_options_set_use_direct_reads(options, (unsigned char)flag(opening, "direct_reads"));
  rocksdb_options_set_use_direct_io_for_flush_and_compaction(options, (unsigned char)flag(opening, "direct_writes"));
  rocksdb_options_set_merge_operator(options, new_merge_operator());
}

/* The weakest level at or above the requested one, if the option `wal` allows it. */
static void set_level(opening *opening, kv_database *made) {
  static const char *const choices[] = {"auto", "true", "false"};
  kv_opened *opened = opening->opened;
  const int wal = choice(opening, "wal", choices, 3);
  if (opening->status == KV_OK)
    opening->status = kv_pick_level(opening->driver, opening->config, wal == 2 ? KV_NONE : KV_PROCESS, opened);
  if (opening->status != KV_OK) return;
  if (wal == 2 && opened->level != KV_NONE)
    opening->status = kv_fail_open(opened, KV_ERROR, "option wal: without the log only level none is possible");
  if (wal == 1 && opened->level == KV_NONE) opened->level = KV_PROCESS;
  made->has_log = opened->level != KV_NONE;
  rocksdb_writeoptions_disable_WAL(made->write_options, !made->has_log);
  rocksdb_writeoptions_set_sync(made->write_options, opened->level == KV_POWER);
  kv_opened_setting(opened, "wal", "%s", made->has_log ? "true" : "false");
  kv_opened_setting(opened, "sync", "%s", opened->level == KV_POWER ? "true" : "false");
}

/* The version, which the C interface does not report, from the first line of the library's new log file. */
static void read_version(const char *folder, kv_opened *opened) {
  static const char before[] = "RocksDB version: ";
  char path[4096], line[256];
  snprintf(path, sizeof(path), "%s/LOG", folder);
  FILE *file = fopen(path, "r");
  if (file == NULL) return;
  if (fgets(line, sizeof(line), file) != NULL) {
    const char *at = strstr(line, before);
    if (at != NULL) snprintf(opened->version, sizeof(opened->version), "%.20s", at + strlen(before));
    opened->version[strcspn(opened->version, "\n")] = 0;
  }
  fclose(file);
}

static uint32_t open_families(const kv_config *config, kv_opened *opened, kv_database *made) {
  const uint32_t count = config->keyspaces;
  const char **names = calloc(count, sizeof(*names));
  const rocksdb_options_t **options = calloc(count, sizeof(*options));
  char(*texts)[16] = calloc(count, sizeof(*texts));
  char *error = NULL;
  uint32_t status = KV_OK;
  made->families = calloc(count, sizeof(*made->families));
  if (names == NULL || options == NULL || texts == NULL || made->families == NULL) {
    status = kv_fail_open(opened, KV_ERROR, "out of memory");
  } else {
    for (uint32_t i = 0; i < count; i++) {
      snprintf(texts[i], sizeof(texts[i]), "k%u", (unsigned)i);
      names[i] = i == 0 ? "default" : texts[i];
      options[i] = made->options;
    }
    made->db =
        rocksdb_open_column_families(made->options, config->path, (int)count, names, options, made->families, &error);
    if (error != NULL)
      status = kv_fail_open(opened, KV_ERROR, "open: %s", error);
    else
      made->family_count = count;
    rocksdb_free(error);
  }
  free(names);
  free(options);
  free(texts);
  return status;
}

uint32_t open_with(const kv_driver *driver, const kv_config *config, kv_opened *opened, kv_database **database) {
  opening opening = {driver, config, opened, kv_open_begin(driver, config, opened)};
  kv_database *made = calloc(1, sizeof(kv_database));
  if (made == NULL) return kv_fail_open(opened, KV_ERROR, "out of memory");
  opened->cache_bytes = config->cache_bytes != 0 ? config->cache_bytes : 32 << 20;
  made->options = rocksdb_options_create();
  made->write_options = rocksdb_writeoptions_create();
  made->cache = rocksdb_cache_create_lru(opened->cache_bytes);
  set_level(&opening, made);
  set_options(&opening, made);
  set_table(&opening, made);
  if (opening.status == KV_OK) opening.status = open_families(config, opened, made);
  if (opening.status != KV_OK) {
    close_database(made, NULL);
    return opening.status;
  }
  read_version(config->path, opened);
  kv_opened_setting(opened, "assertions", "%s", rocksdb_sync_point != NULL ? "on" : "off");
  *database = made;
  return KV_OK;
}

uint32_t close_database(kv_database *database, char *error) {
  /* Without a log, RocksDB writes out the memtables, but ignores that it could not. */
  const uint32_t status =
      database->db != NULL && !database->has_log ? maintain_database(database, KV_FLUSH, error) : KV_OK;
  for (uint32_t i = 0; i < database->family_count; i++) rocksdb_column_family_handle_destroy(database->families[i]);
  if (database->db != NULL) rocksdb_close(database->db);
  rocksdb_writeoptions_destroy(database->write_options);
  rocksdb_options_destroy(database->options);
  rocksdb_cache_destroy(database->cache);
  free(database->families);
  free(database);
  return status;
}
