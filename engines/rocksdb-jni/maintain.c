/* RocksDB's maintenance and statistics. */
#include "database.h"

uint32_t maintain_database(kv_database *database, uint32_t work, char *error) {
  char *text = NULL;
  if (work == KV_COMPACT) {
    for (uint32_t i = 0; i < database->family_count; i++)
      rocksdb_compact_range_cf(database->db, database->families[i], NULL, 0, NULL, 0);
    return KV_OK;
  }
  if (work == KV_FLUSH) {
    rocksdb_flushoptions_t *options = rocksdb_flushoptions_create();
    rocksdb_flush_cfs(database->db, options, database->families, (int)database->family_count, &text);
    rocksdb_flushoptions_destroy(options);
  } else {
    rocksdb_wait_t *options = rocksdb_wait_for_compact_options_create();
    rocksdb_wait_for_compact(database->db, options, &text);
    rocksdb_wait_for_compact_options_destroy(options);
  }
  if (text == NULL) return KV_OK;
  kv_fail_call(error, KV_ERROR, "%s: %s", work == KV_FLUSH ? "flush" : "settle", text);
  rocksdb_free(text);
  return KV_ERROR;
}

/* The sum of a property over the column families. */
static uint64_t sum_of(const kv_database *database, const char *property) {
  uint64_t sum = 0, number = 0;
  for (uint32_t i = 0; i < database->family_count; i++)
    if (rocksdb_property_int_cf(database->db, database->families[i], property, &number) == 0) sum += number;
  return sum;
}

uint32_t database_stats(kv_database *database, char *out, uint64_t size) {
  static const struct {
    const char *name, *property;
  } sums[] = {
      {"memtable_bytes", "rocksdb.cur-size-all-mem-tables"},
      {"table_reader_bytes", "rocksdb.estimate-table-readers-mem"},
      {"live_file_bytes", "rocksdb.live-sst-files-size"},
      {"pending_compaction_bytes", "rocksdb.estimate-pending-compaction-bytes"},
      {"rows_estimated", "rocksdb.estimate-num-keys"},
  };
  uint64_t used = 0;
  if (size != 0) out[0] = 0;
  for (size_t i = 0; i <= sizeof(sums) / sizeof(sums[0]) && used < size; i++) {
    const int is_sum = i < sizeof(sums) / sizeof(sums[0]);
    const uint64_t number = is_sum ? sum_of(database, sums[i].property) : rocksdb_cache_get_usage(database->cache);
    used += (uint64_t)snprintf(out + used, size - used, "%s=%llu\n", is_sum ? sums[i].name : "block_cache_bytes",
                               (unsigned long long)number);
  }
  return used < size ? KV_OK : KV_SHORT;
}
