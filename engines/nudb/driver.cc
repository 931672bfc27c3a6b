/* NuDB through its header-only C++ interface: an insert-only hash table in files, for keys of one size. */
#include "spaces.h"

namespace {

using kvdyno_nudb::check;
using kvdyno_nudb::Code;
using kvdyno_nudb::Plan;
using kvdyno_nudb::Spaces;

class Nudb {
 public:
  static constexpr kv_option options[] = {
      {"block_size", "bytes", "4096", "size of a block of the key file in bytes, one bucket each; for a new database"},
      {"load_factor", "text", "0.5", "average fill of buckets, between 0 and 1; for a new database"},
      {"burst", "bytes", "4194304", "bytes that wait for the commit before writers are slowed down"},
  };
  static constexpr kvdyno::Info info{
      "nudb",
      "insert-only hash table in files",
      "C++",
      "hash",
      KV_FIXED_KEY_SIZE | KV_CAN_NEW | KV_KEYSPACES | KV_CAN_TOUCH | KV_SINGLE_WRITER | KV_NO_EMPTY_VALUES,
      1 << KV_NONE | 1 << KV_POWER,
      65535,
      options};

  explicit Nudb(kvdyno::Opening &opening);
  void close() { spaces->close(); }
  bool maintain(uint32_t work);
  void stats(kvdyno::Stats &stats) { spaces->stats(stats); }

  class Session;

 private:
  std::unique_ptr<Spaces> spaces;
  size_t key_size;
};

class Nudb::Session {
 public:
  explicit Session(Nudb &database) : spaces(*database.spaces), key_size(database.key_size) {}

  uint32_t get(kv_op &op) {
    uint32_t status = KV_OK;
    Code code;
    store_of(op).fetch(
        op.key, [&](const void *value, size_t length) { status = kv_deliver(&op, value, length); }, code);
    if (code == nudb::error::key_not_found) return KV_NOT_FOUND;
    check(code, "get");
    return status;
  }

  uint32_t put(kv_op &op) {
    const uint32_t status = insert(op);
    if (spaces.is_durable && status == KV_OK) commit(op);
    return status;
  }

  /* Joined puts share a commit, if there is one. */
  uint32_t group(kv_op *ops, uint32_t count, bool) {
    kv_op *last = nullptr;
    if (!spaces.is_durable) return KV_NOT_RUN;
    for (uint32_t i = 0; i < count; i++)
      if (ops[i].kind != KV_PUT || !is_fine(ops[i])) return KV_NOT_RUN;
    for (uint32_t i = 0; i < count; i++) {
      ops[i].status = insert(ops[i]);
      if (ops[i].status == KV_OK) last = &ops[i];
    }
    if (last != nullptr) commit(*last);
    return KV_OK;
  }

 private:
  bool is_fine(const kv_op &op) const {
    return op.keyspace < spaces.count() && op.key_length == key_size && op.value_length != 0;
  }

  /* Every put inserts a new key; the library has no other kind. */
  uint32_t insert(kv_op &op) {
    if (op.value_length == 0) throw kvdyno::Failure(KV_TOO_LARGE, "a value must have at least 1 byte");
    Code code;
    store_of(op).insert(op.key, op.value, op.value_length, code);
    if (code == nudb::error::key_exists) return KV_EXISTS;
    check(code, "put");
    return KV_OK;
  }

  /* Only the next op reports whether a commit failed, so a cheap op follows; five syncs cost far more. */
  void commit(kv_op &op) {
    Code code;
    spaces.commit();
    store_of(op).fetch(
        op.key, [](const void *, size_t) {}, code);
    check(code, "commit");
  }

  nudb::store &store_of(const kv_op &op) {
    if (op.keyspace >= spaces.count())
      throw kvdyno::Failure(KV_UNSUPPORTED, "there is no keyspace " + std::to_string(op.keyspace));
    if (op.key_length != key_size)
      throw kvdyno::Failure(KV_TOO_LARGE, "every key must have " + std::to_string(key_size) + " bytes here");
    return spaces.store(op.keyspace);
  }

  Spaces &spaces;
  const size_t key_size;
};

/* A fraction from an option's text. */
float fraction(const char *name, const std::string &text) {
  char *end = nullptr;
  const float number = strtof(text.c_str(), &end);
  if (text.empty() || *end != 0 || !(number > 0.f && number < 1.f))
    throw kvdyno::Failure(std::string("option ") + name + ": expected a number between 0 and 1, got `" + text + "`");
  return number;
}

Nudb::Nudb(kvdyno::Opening &opening) : key_size(opening.config.key_size_fixed) {
  const bool is_durable = opening.level(KV_NONE) == KV_POWER;
  const uint64_t block_size = opening.number("block_size");
  const float load_factor = fraction("load_factor", opening.text("load_factor"));
  const uint64_t burst = opening.number("burst");
  char load[16];
  if (block_size < 64 || block_size > 65535)
    throw kvdyno::Failure("option block_size: expected 64 to 65535, got " + std::to_string(block_size));
  if (key_size == 0 || key_size > 65535)
    throw kvdyno::Failure(
        "NuDB needs keys of equal size, 1 to 65535 bytes: use the same size for all keys of the workload");
  const Plan plan = {static_cast<uint32_t>(key_size), static_cast<uint32_t>(block_size), load_factor, burst,
                     opening.is_new()};
  spaces = std::make_unique<Spaces>(opening.path("nudb"), opening.config.keyspaces, plan, is_durable);
  snprintf(load, sizeof(load), "%.4g", spaces->load_factor());
  opening.version(NUDB_VERSION_STRING);
  opening.compression("none");
  opening.effective("key_size", key_size);
  opening.effective("block_size", spaces->store(0).block_size());
  opening.effective("load_factor", load);
  opening.effective("burst", burst);
  opening.effective("commit", is_durable ? "by each writer" : "by a thread, every second");
}

bool Nudb::maintain(uint32_t work) {
  if (work == KV_COMPACT) return false;
  return spaces->commit(), true; /* settle: afterwards the thread has nothing left to do */
}

}  // namespace

KVDYNO_EXPORT(Nudb)
