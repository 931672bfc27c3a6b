/* Opens RocksDB: options, level, column families, and the report of what is in effect. */
#include "database.h"

#include <rocksdb/cache.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/statistics.h>
#include <rocksdb/table.h>
#include <rocksdb/version.h>

#include <climits>

/* Test hooks that RocksDB compiles only without NDEBUG, that is, with its assertions. */
extern "C" void kvdyno_rocksdb_sync_point() __asm__("_ZN7rocksdb9SyncPoint11GetInstanceEv") __attribute__((weak));

namespace engine_rocksdb {

namespace {

constexpr uint64_t kShippedCacheBytes = 8 << 20;

/* The index in `names` of the option's value. */
template <size_t count>
size_t choice(kvdyno::Opening &opening, const char *option, const char *const (&names)[count]) {
  const std::string text = opening.text(option);
  for (size_t place = 0; place < count; place++)
    if (text == names[place]) return place;
  throw kvdyno::Failure(std::string("option ") + option + ": unknown choice `" + text + "`");
}

int small_number(kvdyno::Opening &opening, const char *option) {
  const uint64_t number = opening.number(option);
  if (number > INT_MAX) throw kvdyno::Failure(std::string("option ") + option + ": at most 2147483647");
  return static_cast<int>(number);
}

constexpr const char *kCompressions[] = {"none", "snappy", "zlib", "bzip2", "lz4", "lz4hc", "zstd"};
constexpr rocksdb::CompressionType kCompressionTypes[] = {rocksdb::kNoCompression,
                                                          rocksdb::kSnappyCompression,
                                                          rocksdb::kZlibCompression,
                                                          rocksdb::kBZip2Compression,
                                                          rocksdb::kLZ4Compression,
                                                          rocksdb::kLZ4HCCompression,
                                                          rocksdb::kZSTD};
constexpr const char *kCompactions[] = {"level", "universal"};
constexpr rocksdb::CompactionStyle kCompactionStyles[] = {rocksdb::kCompactionStyleLevel,
                                                          rocksdb::kCompactionStyleUniversal};

rocksdb::BlockBasedTableOptions table_options(kvdyno::Opening &opening, std::shared_ptr<rocksdb::Cache> cache) {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  table.block_size = opening.number("block_size");
  table.cache_index_and_filter_blocks = table.pin_l0_filter_and_index_blocks_in_cache = opening.flag("cache_index");
  const int bits = small_number(opening, "bloom_bits");
  if (bits != 0) table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(bits));
  opening.effective("block_size", table.block_size);
  opening.effective("cache_index", table.cache_index_and_filter_blocks ? "true" : "false");
  opening.effective("bloom_bits", static_cast<uint64_t>(bits));
  return table;
}

rocksdb::Options database_options(kvdyno::Opening &opening) {
  rocksdb::Options options;
  options.create_if_missing = options.create_missing_column_families = options.error_if_exists = opening.is_new();
  options.write_buffer_size = opening.number("write_buffer");
  options.max_write_buffer_number = small_number(opening, "write_buffers");
  options.target_file_size_base = opening.number("file_size");
  options.max_bytes_for_level_base = opening.number("level_size");
  const int files = small_number(opening, "open_files");
  options.max_open_files = files != 0 ? files : -1;
  const size_t compression = choice(opening, "compression", kCompressions);
  options.compression = kCompressionTypes[compression];
  options.compaction_style = kCompactionStyles[choice(opening, "compaction", kCompactions)];
  const int threads = small_number(opening, "background_threads");
  if (threads != 0) options.IncreaseParallelism(threads);
  options.use_fsync = opening.flag("use_fsync");
  options.use_direct_reads = opening.flag("direct_reads");
  options.use_direct_io_for_flush_and_compaction = opening.flag("direct_writes");
  options.merge_operator = merge_operator();
  opening.compression(kCompressions[compression]);
  opening.effective("write_buffer", options.write_buffer_size);
  opening.effective("write_buffers", static_cast<uint64_t>(options.max_write_buffer_number));
  opening.effective("file_size", options.target_file_size_base);
  opening.effective("level_size", options.max_bytes_for_level_base);
  opening.effective("open_files", static_cast<uint64_t>(files));
  opening.effective("compaction", opening.text("compaction"));
  opening.effective("background_threads", static_cast<uint64_t>(options.max_background_jobs));
  for (const char *flag : {"use_fsync", "direct_reads", "direct_writes"}) opening.effective(flag, opening.text(flag));
  return options;
}

}  // namespace

void fail(const rocksdb::Status &status, const char *what) {
  const uint32_t number = status.IsNoSpace() ? KV_FULL : KV_ERROR;
  throw kvdyno::Failure(number, std::string(what) + ": " + status.ToString());
}

void Rocksdb::set_level(kvdyno::Opening &opening) {
  static constexpr const char *const choices[] = {"auto", "true", "false"};
  const std::string wal = choices[choice(opening, "wal", choices)];
  uint32_t level = opening.level(wal == "false" ? KV_NONE : KV_PROCESS);
  if (wal == "false" && level != KV_NONE)
    throw kvdyno::Failure("option wal: without the log only level none is possible");
  if (wal == "true" && level == KV_NONE) opening.opened.level = level = KV_PROCESS;
  write_options.disableWAL = level == KV_NONE;
  write_options.sync = level == KV_POWER;
  opening.effective("wal", write_options.disableWAL ? "false" : "true");
  opening.effective("sync", write_options.sync ? "true" : "false");
}

Rocksdb::Rocksdb(kvdyno::Opening &opening) {
  set_level(opening);
  const uint64_t cache_bytes = opening.config.cache_bytes != 0 ? opening.config.cache_bytes : kShippedCacheBytes;
  cache = rocksdb::NewLRUCache(cache_bytes);
  rocksdb::Options options = database_options(opening);
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table_options(opening, cache)));
  if (opening.flag("statistics")) options.statistics = statistics = rocksdb::CreateDBStatistics();
  std::vector<rocksdb::ColumnFamilyDescriptor> families = {{rocksdb::kDefaultColumnFamilyName, options}};
  for (uint32_t keyspace = 1; keyspace < opening.config.keyspaces; keyspace++)
    families.emplace_back("k" + std::to_string(keyspace), options);
  /* RocksDB opens LevelDB's databases and converts them: never without a request. */
  rocksdb::Env *env = rocksdb::Env::Default();
  if (env->FileExists(opening.path("CURRENT")).ok() && env->FileExists(opening.path("IDENTITY")).IsNotFound())
    throw kvdyno::Failure("the database was created by LevelDB");
  rocksdb::DB *opened = nullptr;
  const bool is_read_only = (opening.config.flags & KV_READ_ONLY) != 0;
  check(is_read_only ? rocksdb::DB::OpenForReadOnly(options, opening.config.path, families, &columns, &opened)
                     : rocksdb::DB::Open(options, opening.config.path, families, &columns, &opened),
        "open");
  db.reset(opened);
  opening.version(rocksdb::GetRocksVersionAsString());
  opening.cache_bytes(cache_bytes);
  opening.effective("statistics", statistics != nullptr ? "true" : "false");
  opening.effective("assertions", &kvdyno_rocksdb_sync_point != nullptr ? "on" : "off");
}

void Rocksdb::close() {
  /* Without a log, Close writes out the memtables, but ignores that it could not. */
  if (write_options.disableWAL) {
    const rocksdb::Status flushed = db->Flush(rocksdb::FlushOptions(), columns);
    if (!flushed.IsNotSupported()) check(flushed, "close"); /* open for reads only */
  }
  for (rocksdb::ColumnFamilyHandle *column : columns) db->DestroyColumnFamilyHandle(column);
  columns.clear();
  check(db->Close(), "close");
}

Rocksdb::~Rocksdb() {
  for (rocksdb::ColumnFamilyHandle *column : columns) db->DestroyColumnFamilyHandle(column);
}

}  // namespace engine_rocksdb
