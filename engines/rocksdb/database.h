/* RocksDB's driver class: the open database and its options. */
#ifndef KVDYNO_ROCKSDB_DATABASE_H
#define KVDYNO_ROCKSDB_DATABASE_H

#include "driver.hpp"

#include <rocksdb/db.h>

#include <memory>
#include <vector>

namespace engine_rocksdb {

/* Throws an error with the boundary's status for it. */
[[noreturn]] void fail(const rocksdb::Status &status, const char *what);

inline void check(const rocksdb::Status &status, const char *what) {
  if (__builtin_expect(!status.ok(), 0)) fail(status, what);
}

/* Operands begin with a byte that distinguishes additions from appended bytes, so one operator serves both. */
constexpr char kAdd = '+';
constexpr char kAppend = '.';
std::shared_ptr<rocksdb::MergeOperator> merge_operator();

class Rocksdb {
 public:
  static constexpr kv_option options[] = {
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
      {"statistics", "flag", "false", "counts the engine's internal events, for the record; costs some speed"},
  };
  static constexpr kvdyno::Info info{"rocksdb",
                                     "Meta's log-structured merge tree, derived from LevelDB",
                                     "C++",
                                     "lsm",
                                     KV_ORDERED | KV_CAN_REVERSE | KV_CAN_PREFIX | KV_MULTI_GET | KV_TRANSACTION |
                                         KV_TRANSACTION_READS | KV_MERGE_ADD | KV_MERGE_APPEND | KV_CAN_DELETE |
                                         KV_OVERWRITE | KV_KEYSPACES | KV_CAN_TOUCH | KV_CAN_HOLD | KV_LIVE_STATS,
                                     1 << KV_NONE | 1 << KV_PROCESS | 1 << KV_POWER,
                                     0,
                                     options};

  explicit Rocksdb(kvdyno::Opening &opening);
  ~Rocksdb();
  void close();
  bool maintain(uint32_t work);
  void stats(kvdyno::Stats &stats);

  class Session;

  std::unique_ptr<rocksdb::DB> db;
  std::vector<rocksdb::ColumnFamilyHandle *> columns; /* by keyspace */
  rocksdb::WriteOptions write_options;
  std::shared_ptr<rocksdb::Cache> cache;
  std::shared_ptr<rocksdb::Statistics> statistics; /* null if off */

 private:
  void set_level(kvdyno::Opening &opening);
};

}  // namespace engine_rocksdb

#endif
