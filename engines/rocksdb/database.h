/* RocksDB's driver class: what is open, and the options that it was opened with. */
#ifndef KVDYNO_ROCKSDB_DATABASE_H
#define KVDYNO_ROCKSDB_DATABASE_H

#include "driver.hpp"

#include <rocksdb/db.h>

#include <memory>
#include <vector>

namespace engine_rocksdb {

/* Throws what went wrong, with the status that the boundary has for it. */
[[noreturn]] void fail(const rocksdb::Status &status, const char *what);

inline void check(const rocksdb::Status &status, const char *what) {
  if (__builtin_expect(!status.ok(), 0)) fail(status, what);
}

/* Operands begin with a byte that tells additions from appended bytes, so one operator serves both. */
constexpr char kAdd = '+';
constexpr char kAppend = '.';
std::shared_ptr<rocksdb::MergeOperator> merge_operator();

class Rocksdb {
 public:
  static constexpr kv_option options[] = {
      {"write_buffer", "bytes", "67108864", "bytes of a memtable, before it becomes a file"},
      {"write_buffers", "count", "2", "memtables at most, the one written to among them"},
      {"block_size", "bytes", "4096", "bytes of a block of a file, before compression"},
      {"file_size", "bytes", "67108864", "bytes of a file of level 1"},
      {"level_size", "bytes", "268435456", "bytes of level 1, each further one has ten times as many"},
      {"open_files", "count", "0", "files that may be open at once; 0 = no limit, as shipped"},
      {"bloom_bits", "count", "0", "bits per key of a Bloom filter; 0 = no filter, as shipped"},
      {"cache_index", "flag", "false", "index and filter blocks in the block cache too, those of level 0 pinned"},
      {"compression", "choice:snappy|none|lz4|lz4hc|zlib|bzip2|zstd", "snappy", "of blocks"},
      {"compaction", "choice:level|universal", "level", "style of compaction"},
      {"background_threads", "count", "0", "for flushes and compactions; 0 = as shipped: two jobs"},
      {"wal", "choice:auto|true|false", "auto", "the write-ahead log; auto: unless the level is none"},
      {"use_fsync", "flag", "false", "fsync where fdatasync would do"},
      {"direct_reads", "flag", "false", "reads past the page cache"},
      {"direct_writes", "flag", "false", "flushes and compactions past the page cache"},
      {"statistics", "flag", "false", "counts what happens inside, for the record; it costs some of the speed"},
  };
  static constexpr kvdyno::Info info{"rocksdb",
                                     "log-structured merge tree of Meta, from LevelDB",
                                     "C++",
                                     "lsm",
                                     KV_ORDERED | KV_CAN_REVERSE | KV_CAN_PREFIX | KV_MULTI_GET | KV_TRANSACTION |
                                         KV_TRANSACTION_READS | KV_MERGE_ADD | KV_MERGE_APPEND | KV_CAN_DELETE |
                                         KV_OVERWRITE | KV_KEYSPACES | KV_CAN_TOUCH | KV_CAN_HOLD,
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
