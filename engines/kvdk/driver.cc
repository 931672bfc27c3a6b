/* KVDK through its C++ interface: an engine for persistent memory, as strings, hashes and sorted collections. */
#include "database.h"

namespace kvdyno_kvdk {
namespace {

template <Kind kind>
uint32_t get(kv_session *session, kv_op *op, kv_batch *batch) {
  return guarded(
      [&]() -> uint32_t {
        Target target;
        const uint32_t status = target_of(session, op, batch, &target);
        if (status != KV_OK) return status;
        kvdk::Engine &engine = session->engine;
        const Status said = kind == strings  ? engine.Get(target.key, &session->value)
                            : kind == hashes ? engine.HashGet(target.collection, target.key, &session->value)
                                             : engine.SortedGet(target.collection, target.key, &session->value);
        if (said != Status::Ok) return status_of(said, op, batch, "get");
        return kv_deliver(op, session->value.data(), session->value.size());
      },
      [&](const char *text) { return kv_fail(batch, op, KV_ERROR, "get: %s", text); });
}

kvdk::WriteOptions options_of(const kv_op *op) {
  return kvdk::WriteOptions(op->limit == 0 ? kvdk::kPersistTTL : int64_t{op->limit} * 1000);
}

/* The effect of a put with KV_NEW or of a merge on the existing row. */
kvdk::ModifyOperation modified(const std::string *old_value, std::string *new_value, void *given) {
  const kv_op *op = static_cast<const kv_op *>(given);
  const char *bytes = reinterpret_cast<const char *>(op->value);
  if (op->kind == KV_PUT) {
    if (old_value != nullptr) return kvdk::ModifyOperation::Abort;
    new_value->assign(bytes, op->value_length);
  } else if ((op->flags & KV_APPEND) != 0) {
    if (old_value != nullptr) new_value->assign(*old_value);
    new_value->append(bytes, op->value_length);
  } else {
    uint64_t sum = 0, more = 0;
    if (old_value != nullptr) memcpy(&sum, old_value->data(), old_value->size() < 8 ? old_value->size() : 8);
    memcpy(&more, bytes, op->value_length < 8 ? op->value_length : 8);
    sum += more;
    new_value->assign(reinterpret_cast<const char *>(&sum), 8);
  }
  return kvdk::ModifyOperation::Write;
}

/* One write of a row whose location is known. */
template <Kind kind>
Status write(kv_session *session, kv_op *op, const Target &target) {
  kvdk::Engine &engine = session->engine;
  if (op->kind == KV_DELETE)
    return kind == strings  ? engine.Delete(target.key)
           : kind == hashes ? engine.HashDelete(target.collection, target.key)
                            : engine.SortedDelete(target.collection, target.key);
  if (op->kind == KV_MERGE || (op->flags & KV_NEW) != 0)
    return kind == strings ? engine.Modify(target.key, modified, op, options_of(op))
                           : engine.HashModify(target.collection, target.key, modified, op);
  return kind == strings  ? engine.Put(target.key, target.value, options_of(op))
         : kind == hashes ? engine.HashPut(target.collection, target.key, target.value)
                          : engine.SortedPut(target.collection, target.key, target.value);
}

template <Kind kind>
uint32_t write_one(kv_session *session, kv_op *op, kv_batch *batch) {
  return guarded(
      [&]() -> uint32_t {
        Target target;
        const uint32_t status = target_of(session, op, batch, &target);
        if (status != KV_OK) return status;
        Status said = write<kind>(session, op, target);
        if (said == Status::NotFound && op->split != 0 && op->kind != KV_DELETE) { /* the first row of a collection */
          said = make_collection(session->database, kind, target.collection);
          if (said == Status::Ok) said = write<kind>(session, op, target);
        }
        if (said == Status::Abort && (op->flags & KV_NEW) != 0) return KV_EXISTS;
        if (said == Status::NotFound && op->kind == KV_DELETE) return KV_OK; /* the collection does not exist */
        return status_of(said, op, batch, "write");
      },
      [&](const char *text) { return kv_fail(batch, op, KV_ERROR, "write: %s", text); });
}

uint32_t begin_session(kv_database *database, const kv_arena *, kv_session **session, char *error) {
  return guarded([&]() -> uint32_t { return *session = new kv_session(*database), KV_OK; },
                 [&](const char *text) { return kv_fail_call(error, KV_ERROR, "%s", text); });
}

uint32_t end_session(kv_session *session, char *error) {
  return guarded([&]() -> uint32_t { return delete session, KV_OK; },
                 [&](const char *text) { return kv_fail_call(error, KV_ERROR, "%s", text); });
}

uint32_t close_database(kv_database *database, char *error) {
  return guarded([&]() -> uint32_t { return delete database, KV_OK; },
                 [&](const char *text) { return kv_fail_call(error, KV_ERROR, "%s", text); });
}

constexpr uint64_t common = KV_TRANSACTION | KV_TRANSACTION_READS | KV_CAN_DELETE | KV_OVERWRITE;
constexpr uint64_t of_strings = common | KV_CAN_NEW | KV_MERGE_ADD | KV_MERGE_APPEND | KV_TIME_TO_LIVE | KV_LISTS;
constexpr uint64_t of_hashes =
    common | KV_CAN_NEW | KV_MERGE_ADD | KV_MERGE_APPEND | KV_CAN_PREFIX | KV_KEYSPACES | KV_COLLECTIONS;
constexpr uint64_t of_sorted = common | KV_ORDERED | KV_CAN_REVERSE | KV_CAN_PREFIX | KV_KEYSPACES | KV_COLLECTIONS;

template <Kind kind>
struct Table {
  static constexpr uint64_t capabilities = kind == strings ? of_strings : kind == hashes ? of_hashes : of_sorted;
  static const kv_driver table;

  static uint32_t execute(kv_session *session, kv_batch *batch) {
    static constexpr kv_calls calls = {capabilities,
                                       get<kind>,
                                       write_one<kind>,
                                       write_one<kind>,
                                       kind == sorted   ? scan
                                       : kind == hashes ? scan_hash
                                                        : nullptr,
                                       write_one<kind>,
                                       nullptr,
                                       group<kind>,
                                       kind == strings ? push : nullptr,
                                       kind == strings ? pop : nullptr};
    return kv_run(session, batch, &calls);
  }

  static uint32_t open(const kv_config *config, kv_opened *opened, kv_database **database) {
    return open_database(&table, kind, config, opened, database);
  }
};

template <Kind kind>
const kv_driver Table<kind>::table = {
    KV_ABI,
    sizeof(kv_driver),
    kind == strings  ? "kvdk-string"
    : kind == hashes ? "kvdk-hash"
                     : "kvdk-sorted",
    kind == strings  ? "KVDK's strings, and lists: a hash table in memory over rows in a map"
    : kind == hashes ? "KVDK's hashes: linked rows in a map, a hash table in memory"
                     : "KVDK's sorted collections: linked rows in a map, a skip list and a hash table in memory",
    "C++",
    kind == sorted ? "skiplist" : "hash",
    capabilities,
    1u << KV_PROCESS,
    kind == strings ? 65535u : uint32_t{element_key_bytes_max},
    kind == sorted ? sorted_option_count : option_count,
    options,
    open,
    begin_session,
    execute,
    end_session,
    kv_no_maintain,
    kv_no_stats,
    close_database,
    nullptr};

}  // namespace
}  // namespace kvdyno_kvdk

extern "C" {
KV_EXPORT(&kvdyno_kvdk::Table<kvdyno_kvdk::strings>::table, &kvdyno_kvdk::Table<kvdyno_kvdk::hashes>::table,
          &kvdyno_kvdk::Table<kvdyno_kvdk::sorted>::table)
}
