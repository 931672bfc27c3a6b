/* LevelDB through its C++ interface: a log-structured merge tree with one background thread. */
#include "driver.hpp"
#include "cursor.h"
#include "rest.h"

#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/env.h>
#include <leveldb/filter_policy.h>
#include <leveldb/write_batch.h>

#include <memory>

namespace {

using leveldb::Slice;

Slice slice(std::string_view bytes) { return Slice(bytes.data(), bytes.size()); }

void check(const leveldb::Status &status, const char *what) {
  if (status.ok()) return;
  const std::string text = status.ToString();
  const bool is_full = text.find("No space left") != std::string::npos;
  throw kvdyno::Failure(is_full ? KV_FULL : KV_ERROR, std::string(what) + ": " + text);
}

class Leveldb {
 public:
  static constexpr kv_option options[] = {
      {"write_buffer", "bytes", "4194304", "size of the memtable in bytes, before it becomes a file"},
      {"block_size", "bytes", "4096", "size of a block in bytes, before compression"},
      {"file_size", "bytes", "2097152", "size of a file in bytes at which the next one starts"},
      {"open_files", "count", "1000", "files that may be open at the same time"},
      {"bloom_bits", "count", "0", "bits per key of a Bloom filter; 0 = no filter, as shipped"},
      {"compression", "choice:snappy|none", "snappy", "compression of blocks"},
  };
  static constexpr kvdyno::Info info{"leveldb",
                                     "Google's log-structured merge tree",
                                     "C++",
                                     "lsm",
                                     KV_ORDERED | KV_CAN_REVERSE | KV_CAN_PREFIX | KV_TRANSACTION | KV_CAN_DELETE |
                                         KV_OVERWRITE | KV_CAN_TOUCH | KV_CAN_HOLD | KV_LIVE_STATS,
                                     1 << KV_PROCESS | 1 << KV_POWER,
                                     0,
                                     options};

  explicit Leveldb(kvdyno::Opening &opening);
  bool maintain(uint32_t work);
  void stats(kvdyno::Stats &stats);

  class Session;

  std::unique_ptr<const leveldb::FilterPolicy> filter;
  std::unique_ptr<leveldb::Cache> cache;
  std::unique_ptr<leveldb::DB> db; /* closed before the objects it uses */
  leveldb::WriteOptions write_options;
};

struct Cursor : IteratorCursor<leveldb::Iterator, leveldb::Status, check> {
  explicit Cursor(leveldb::DB &db) : IteratorCursor(db.NewIterator(leveldb::ReadOptions())) {}
};

class Leveldb::Session {
 public:
  explicit Session(Leveldb &database) : db(*database.db), write_options(database.write_options) {}

  uint32_t get(kv_op &op) {
    const leveldb::Status status = db.Get(read_options, slice(kvdyno::key_of(op)), &found);
    if (status.IsNotFound()) return KV_NOT_FOUND;
    check(status, "get");
    return kvdyno::deliver(op, found);
  }

  uint32_t put(kv_op &op) {
    held.let_go();
    check(db.Put(write_options, slice(kvdyno::key_of(op)), slice(kvdyno::value_of(op))), "put");
    return KV_OK;
  }

  uint32_t remove(kv_op &op) {
    held.let_go();
    check(db.Delete(write_options, slice(kvdyno::key_of(op))), "delete");
    return KV_OK;
  }

  uint32_t scan(kv_op &op) {
    if (!held.goes_on(op)) held.begin(db);
    return held.scan(op);
  }

  /* KV_DROP: there are no transactions over several calls. */
  uint32_t control(kv_op &) { return held.let_go(), KV_OK; }

  /* Joined writes are one atomic batch; there is no call for joined gets. */
  uint32_t group(kv_op *ops, uint32_t count, bool is_atomic) {
    held.let_go();
    batch.Clear();
    for (uint32_t i = 0; i < count; i++) {
      const kv_op &op = ops[i];
      if (op.kind == KV_PUT) {
        batch.Put(slice(kvdyno::key_of(op)), slice(kvdyno::value_of(op)));
      } else if (op.kind == KV_DELETE) {
        batch.Delete(slice(kvdyno::key_of(op)));
      } else if (is_atomic) {
        throw kvdyno::Failure(KV_UNSUPPORTED, "a transaction may have only puts and deletes");
      } else {
        return KV_NOT_RUN;
      }
    }
    check(db.Write(write_options, &batch), "write");
    for (uint32_t i = 0; i < count; i++) ops[i].status = KV_OK;
    return KV_OK;
  }

 private:
  leveldb::DB &db;
  const leveldb::WriteOptions write_options;
  const leveldb::ReadOptions read_options;
  leveldb::WriteBatch batch;
  std::string found; /* keeps its capacity from get to get */
  kvdyno::Held<Cursor> held;
};

Leveldb::Leveldb(kvdyno::Opening &opening) {
  write_options.sync = opening.level(KV_PROCESS) == KV_POWER;
  leveldb::Options options;
  options.create_if_missing = options.error_if_exists = opening.is_new();
  options.write_buffer_size = opening.number("write_buffer");
  options.block_size = opening.number("block_size");
  options.max_file_size = opening.number("file_size");
  options.max_open_files = static_cast<int>(opening.number("open_files"));
  const uint64_t bits = opening.number("bloom_bits");
  const std::string compression = opening.text("compression");
  if (compression != "snappy" && compression != "none")
    throw kvdyno::Failure("option compression: expected snappy or none, got `" + compression + "`");
  options.compression = compression == "none" ? leveldb::kNoCompression : leveldb::kSnappyCompression;
  const uint64_t cache_bytes = opening.config.cache_bytes != 0 ? opening.config.cache_bytes : 8 << 20;
  cache.reset(leveldb::NewLRUCache(cache_bytes));
  options.block_cache = cache.get();
  if (bits != 0) filter.reset(leveldb::NewBloomFilterPolicy(static_cast<int>(bits)));
  options.filter_policy = filter.get();
  /* RocksDB's file; LevelDB would read such a database as long as it has no table. */
  if (leveldb::Env::Default()->FileExists(opening.path("IDENTITY")))
    throw kvdyno::Failure("the database was created by RocksDB");
  leveldb::DB *opened = nullptr;
  check(leveldb::DB::Open(options, opening.config.path, &opened), "open");
  db.reset(opened);
  opening.version(std::to_string(leveldb::kMajorVersion) + "." + std::to_string(leveldb::kMinorVersion));
  opening.compression(compression);
  opening.cache_bytes(cache_bytes);
  opening.effective("write_buffer", options.write_buffer_size);
  opening.effective("block_size", options.block_size);
  opening.effective("file_size", options.max_file_size);
  opening.effective("open_files", options.max_open_files);
  opening.effective("bloom_bits", bits);
  opening.effective("sync", write_options.sync ? "true" : "false");
}

bool Leveldb::maintain(uint32_t work) {
  if (work == KV_FLUSH) return check(flush(*db), "flush"), true;
  if (work == KV_COMPACT) return check(compact(*db), "compact"), true;
  return check(settle(*db), "settle"), true;
}

void Leveldb::stats(kvdyno::Stats &stats) {
  std::string value;
  if (db->GetProperty("leveldb.approximate-memory-usage", &value)) stats.add("memory_bytes", value);
  for (int level = 0; level < 7; level++) {
    const std::string name = "leveldb.num-files-at-level" + std::to_string(level);
    if (db->GetProperty(name, &value)) stats.add("files_at_level_" + std::to_string(level), value);
  }
}

}  // namespace

KVDYNO_EXPORT(Leveldb)
