/* RocksDB's maintenance: flush, compaction, waiting for its threads, and its statistics. */
#include "database.h"

#include <rocksdb/cache.h>
#include <rocksdb/statistics.h>

#include <chrono>
#include <map>
#include <thread>

namespace engine_rocksdb {

namespace {

using Properties = rocksdb::DB::Properties;

/* Whether a flush or a compaction runs or is pending. */
bool is_busy(rocksdb::DB &db, const std::vector<rocksdb::ColumnFamilyHandle *> &columns) {
  for (rocksdb::ColumnFamilyHandle *column : columns)
    for (const std::string *property : {&Properties::kMemTableFlushPending, &Properties::kNumRunningFlushes,
                                        &Properties::kCompactionPending, &Properties::kNumRunningCompactions}) {
      uint64_t number = 0;
      if (db.GetIntProperty(column, *property, &number) && number != 0) return true;
    }
  return false;
}

/* A number of the engine's statistics and its name in a record. */
struct Count {
  const char *name;
  uint32_t ticker;
};

constexpr Count kCounts[] = {
    {"block_cache_hits", rocksdb::BLOCK_CACHE_HIT},
    {"block_cache_misses", rocksdb::BLOCK_CACHE_MISS},
    {"memtable_hits", rocksdb::MEMTABLE_HIT},
    {"memtable_misses", rocksdb::MEMTABLE_MISS},
    {"bloom_filter_useful", rocksdb::BLOOM_FILTER_USEFUL},
    {"flush_write_bytes", rocksdb::FLUSH_WRITE_BYTES},
    {"compaction_read_bytes", rocksdb::COMPACT_READ_BYTES},
    {"compaction_write_bytes", rocksdb::COMPACT_WRITE_BYTES},
    {"log_bytes", rocksdb::WAL_FILE_BYTES},
    {"log_syncs", rocksdb::WAL_FILE_SYNCED},
    {"stall_us", rocksdb::STALL_MICROS},
};

/* A number of a level or of the sum, from the text map of a column family's statistics. */
uint64_t number_in(const std::map<std::string, std::string> &map, const std::string &name) {
  const auto found = map.find("compaction." + name);
  return found == map.end() ? 0 : static_cast<uint64_t>(std::stod(found->second));
}

}  // namespace

bool Rocksdb::maintain(uint32_t work) {
  if (work == KV_FLUSH) {
    check(db->Flush(rocksdb::FlushOptions(), columns), "flush");
  } else if (work == KV_COMPACT) {
    for (rocksdb::ColumnFamilyHandle *column : columns)
      check(db->CompactRange(rocksdb::CompactRangeOptions(), column, nullptr, nullptr), "compact");
  } else { /* idle twice in a row: one job may start the next */
    for (int calm = 0; calm < 2;) {
      calm = is_busy(*db, columns) ? 0 : calm + 1;
      uint64_t errors = 0;
      if (db->GetIntProperty(Properties::kBackgroundErrors, &errors) && errors != 0)
        throw kvdyno::Failure("settle: a flush or compaction has failed");
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
  return true;
}

void Rocksdb::stats(kvdyno::Stats &stats) {
  static const std::pair<const char *, const std::string *> sums[] = {
      {"memtable_bytes", &Properties::kCurSizeAllMemTables},
      {"table_reader_bytes", &Properties::kEstimateTableReadersMem},
      {"live_file_bytes", &Properties::kLiveSstFilesSize},
      {"pending_compaction_bytes", &Properties::kEstimatePendingCompactionBytes},
      {"rows_estimated", &Properties::kEstimateNumKeys},
  };
  uint64_t number = 0;
  for (const auto &[name, property] : sums)
    if (db->GetAggregatedIntProperty(*property, &number)) stats.add(name, number);
  stats.add("block_cache_bytes", cache->GetUsage());
  stats.add("block_cache_pinned_bytes", cache->GetPinnedUsage());
  std::map<std::string, uint64_t> levels;
  uint64_t compactions = 0;
  for (rocksdb::ColumnFamilyHandle *column : columns) {
    std::map<std::string, std::string> map;
    if (!db->GetMapProperty(column, Properties::kCFStats, &map)) continue;
    compactions += number_in(map, "Sum.CompCount");
    for (int level = 0; level < db->NumberLevels(column); level++) {
      const std::string key = "L" + std::to_string(level), name = "level_" + std::to_string(level);
      levels[name + "_files"] += number_in(map, key + ".NumFiles");
      levels[name + "_bytes"] += number_in(map, key + ".SizeBytes");
    }
  }
  stats.add("flushes_and_compactions", compactions);
  for (const auto &[name, value] : levels) stats.add(name, value);
  for (const Count &count : kCounts)
    if (statistics != nullptr) stats.add(count.name, statistics->getTickerCount(count.ticker));
}

}  // namespace engine_rocksdb
