/* The declarations shared by the files of this driver: a database, its sessions, and the meaning of KVDK's statuses. */
#ifndef KVDYNO_KVDK_DATABASE_H
#define KVDYNO_KVDK_DATABASE_H

#include <exception>
#include <kvdk/engine.hpp>
#include <memory>
#include <string>
#include <vector>

#include "kit.h"

using kvdk::Status;
using kvdk::StringView;

struct kv_database {
  std::unique_ptr<kvdk::Engine> engine;
  std::vector<std::string> collections; /* the collection of each keyspace; empty for strings */
  size_t row_bytes_max = 0;             /* a key and its value must be smaller */
  kvdk::SortedCollectionConfigs sorted;
};

/* A scan of a hash that may be resumed: KVDK's iterators of hashes cannot seek to a key. */
class HashPlace {
 public:
  explicit HashPlace(kvdk::Engine &engine) : engine(engine) {}
  ~HashPlace() { leave(); }
  HashPlace(const HashPlace &) = delete;

  /* Moves to the first element; an absent hash has none. */
  void begin(const StringView &hash) {
    leave();
    collection.assign(hash.data(), hash.size());
    iterator = engine.HashIteratorCreate(hash);
    if (iterator != nullptr) iterator->SeekToFirst();
  }
  /* Releases the iterator, and the old versions that it keeps. */
  void leave() {
    if (iterator != nullptr) engine.HashIteratorRelease(iterator);
    iterator = nullptr;
  }
  bool is_behind(const StringView &hash, const std::string &key) const {
    return iterator != nullptr && key == last &&
           collection.compare(0, std::string::npos, hash.data(), hash.size()) == 0;
  }
  bool stands() const { return iterator != nullptr && iterator->Valid(); }

  kvdk::HashIterator *iterator = nullptr;
  std::string last; /* the key of the last row delivered */

 private:
  kvdk::Engine &engine;
  std::string collection;
};

struct kv_session {
  explicit kv_session(kv_database &database)
      : database(database),
        engine(*database.engine),
        batch(engine.WriteBatchCreate()),
        transaction(engine.TransactionCreate()),
        place(engine) {}

  kv_database &database;
  kvdk::Engine &engine;
  std::unique_ptr<kvdk::WriteBatch> batch;
  std::unique_ptr<kvdk::Transaction> transaction;
  std::string value; /* keeps its capacity from get to get */
  std::string name;  /* the collection named by a key's first bytes */
  HashPlace place;
};

namespace kvdyno_kvdk {

/* Strings: one space of keys, and separate lists. Hashes and sorted: a collection for each keyspace, and one for
 * each name. */
enum Kind { strings, hashes, sorted };

/* For a key in a collection: eight bytes before it identify the collection, and the limit for both is 65535. */
constexpr size_t element_key_bytes_max = 65527;

/* The name of a status of KVDK. */
inline const char *name_of(Status status) { return KVDKStatusStrings[status]; }

/* The boundary's status for a status of KVDK. */
inline uint32_t status_of(Status status, kv_op *op, kv_batch *batch, const char *what) {
  if (status == Status::Ok) return KV_OK;
  if (status == Status::NotFound || status == Status::Outdated) return KV_NOT_FOUND;
  uint32_t said = KV_ERROR;
  if (status == Status::PmemOverflow || status == Status::MemoryOverflow) said = KV_FULL;
  if (status == Status::InvalidDataSize || status == Status::InvalidBatchSize) said = KV_TOO_LARGE;
  if (status == Status::Timeout) said = KV_CONFLICT;
  return kv_fail(batch, op, said, "%s: KVDK returned %s", what, name_of(status));
}

/* The target of an op: the collection, the key within it, the value. */
struct Target {
  StringView collection, key, value;
};

/* Finds the target. Any status other than KV_OK: there is no such keyspace, or the row is too large. */
inline uint32_t target_of(kv_session *session, kv_op *op, kv_batch *batch, Target *target) {
  const kv_database &database = session->database;
  const bool has_collections = !database.collections.empty();
  const char *key = reinterpret_cast<const char *>(op->key);
  const size_t split = has_collections && op->split <= op->key_length ? op->split : 0;
  const size_t key_bytes_max = has_collections ? element_key_bytes_max : 65535;
  if (op->keyspace != 0 && op->keyspace >= database.collections.size())
    return kv_fail(batch, op, KV_UNSUPPORTED, "there is no keyspace %u", op->keyspace);
  if (op->key_length - split > key_bytes_max || split > 65000) /* KVDK's batches would cut the lengths to 16 bits */
    return kv_fail(batch, op, KV_TOO_LARGE, "a key has at most %zu bytes", key_bytes_max);
  if ((op->kind == KV_PUT || op->kind == KV_PUSH) &&
      size_t{op->key_length} + op->value_length >= database.row_bytes_max)
    return kv_fail(batch, op, KV_TOO_LARGE, "a key and its value must be smaller than a segment: %zu bytes together",
                   database.row_bytes_max);
  if (split != 0) {
    session->name.assign(database.collections[op->keyspace]).append("/").append(key, split);
    target->collection = StringView(session->name.data(), session->name.size());
  } else if (has_collections) {
    const std::string &name = database.collections[op->keyspace];
    target->collection = StringView(name.data(), name.size());
  }
  target->key = StringView(key + split, op->key_length - split);
  target->value = StringView(reinterpret_cast<const char *>(op->value), op->value_length);
  return KV_OK;
}

/* Creates a collection; an existing one is fine. */
Status make_collection(kv_database &database, Kind kind, StringView name);

/* kv_group_call for each kind. */
template <Kind kind>
uint32_t group(kv_session *session, kv_op *ops, uint32_t count, int is_atomic, kv_batch *batch);

/* kv_calls for sorted collections, hashes and lists. */
uint32_t scan(kv_session *session, kv_op *op, kv_batch *batch);
uint32_t scan_hash(kv_session *session, kv_op *op, kv_batch *batch);
uint32_t push(kv_session *session, kv_op *op, kv_batch *batch);
uint32_t pop(kv_session *session, kv_op *op, kv_batch *batch);

/* The options; the first of them apply to all kinds. */
extern const kv_option options[];
constexpr uint32_t option_count = 10;
constexpr uint32_t sorted_option_count = 12;

/* kv_driver's open. */
uint32_t open_database(const kv_driver *driver, Kind kind, const kv_config *config, kv_opened *opened,
                       kv_database **database);

/* Runs `call`; an exception becomes a text and KV_ERROR. */
template <class Call, class Report>
uint32_t guarded(Call call, Report report) noexcept {
  try {
    return call();
  } catch (const std::exception &error) {
    return report(error.what());
  } catch (...) {
    return report("an exception of an unknown type");
  }
}

}  // namespace kvdyno_kvdk

#endif
