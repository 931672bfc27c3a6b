/* A complete driver in C++: std's ordered map behind a mutex. Copy it to start a driver. */
#include "driver.hpp"

#include <map>
#include <mutex>
#include <vector>

namespace {

/* std::less<> finds by string_view; strings compare like memcmp, the order that scans must have. */
using Rows = std::map<std::string, std::string, std::less<>>;

class Example {
 public:
  static constexpr kv_option options[] = {
      {"limit_bytes", "bytes", "0", "maximum bytes of keys and values stored; 0 = no limit"},
  };
  static constexpr kvdyno::Info info{
      "example-cpp",
      "an ordered map behind a mutex; the C++ driver to copy",
      "C++",
      "example", /* excludes it from comparisons of all engines; yours is lsm, b+tree ... */
      KV_ORDERED | KV_CAN_REVERSE | KV_CAN_PREFIX | KV_CAN_DELETE | KV_DELETE_TELLS | KV_OVERWRITE | KV_CAN_NEW |
          KV_TRANSACTION | KV_IN_MEMORY,
      1 << KV_NONE,
      0,
      options};

  explicit Example(kvdyno::Opening &opening);
  bool maintain(uint32_t work);
  void stats(kvdyno::Stats &stats);

  class Session;

 private:
  std::mutex lock;
  Rows rows;
  uint64_t stored_bytes = 0;
  uint64_t limit_bytes;
};

/* Walks in key order; the kit's scan_over drives it. */
class Cursor {
 public:
  explicit Cursor(const Rows &rows) : rows(rows), at(rows.end()) {}
  bool first() { return at = rows.begin(), at != rows.end(); }
  bool last() { return at = rows.end(), previous(); }
  bool seek(std::string_view key) { return at = rows.lower_bound(key), at != rows.end(); }
  bool next() { return ++at != rows.end(); }
  bool previous() { return at != rows.begin() && (--at, true); }
  std::string_view key() const { return at->first; }
  std::string_view value() const { return at->second; }

 private:
  const Rows &rows;
  Rows::const_iterator at;
};

/* One thread's session: cursors, transactions and reusable buffers belong here. */
class Example::Session {
 public:
  explicit Session(Example &database) : database(database) {}

  uint32_t get(kv_op &op) {
    const std::lock_guard<std::mutex> held(database.lock);
    const auto found = database.rows.find(kvdyno::key_of(op));
    return found == database.rows.end() ? static_cast<uint32_t>(KV_NOT_FOUND) : kvdyno::deliver(op, found->second);
  }

  /* A single put or delete is a group of one. */
  uint32_t put(kv_op &op) { return group(&op, 1, true), op.status; }
  uint32_t remove(kv_op &op) { return group(&op, 1, true), op.status; }

  uint32_t scan(kv_op &op) {
    const std::lock_guard<std::mutex> held(database.lock);
    Cursor cursor(database.rows);
    return kvdyno::scan_over(cursor, op);
  }

  /* Writes all of a group, or, if it throws, nothing: everything that may fail is done before the first row changes. */
  uint32_t group(kv_op *ops, uint32_t count, bool is_atomic) {
    if (!is_atomic) return KV_NOT_RUN; /* no special call for joined ops: the kit runs them one by one */
    fresh.clear();
    uint64_t more_bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
      if (ops[i].kind != KV_PUT && ops[i].kind != KV_DELETE)
        throw kvdyno::Failure(KV_UNSUPPORTED, "a transaction may have only puts and deletes");
      Rows made;
      if (ops[i].kind == KV_PUT) {
        made.emplace(kvdyno::key_of(ops[i]), kvdyno::value_of(ops[i]));
        more_bytes += ops[i].key_length + ops[i].value_length;
      }
      fresh.push_back(made.empty() ? Rows::node_type() : made.extract(made.begin()));
    }
    const std::lock_guard<std::mutex> held(database.lock);
    if (database.limit_bytes != 0 && database.stored_bytes + more_bytes > database.limit_bytes)
      throw kvdyno::Failure(KV_FULL, "exceeds limit_bytes=" + std::to_string(database.limit_bytes));
    for (uint32_t i = 0; i < count; i++) ops[i].status = apply(ops[i], fresh[i]);
    return KV_OK;
  }

 private:
  /* Puts the node, or deletes if the node is empty. Allocates nothing, so it cannot fail. */
  uint32_t apply(const kv_op &op, Rows::node_type &node) {
    Rows &rows = database.rows;
    const auto found = rows.find(kvdyno::key_of(op));
    const bool is_there = found != rows.end();
    if (is_there && (op.flags & KV_NEW) != 0) return KV_EXISTS;
    if (is_there) database.stored_bytes -= found->first.size() + found->second.size();
    if (!node.empty()) database.stored_bytes += op.key_length + op.value_length;
    if (node.empty() && !is_there) return KV_NOT_FOUND;
    if (node.empty()) {
      rows.erase(found);
    } else if (is_there) {
      found->second.swap(node.mapped());
    } else {
      rows.insert(std::move(node));
    }
    return KV_OK;
  }

  Example &database;
  std::vector<Rows::node_type> fresh; /* keeps its capacity from group to group */
};

Example::Example(kvdyno::Opening &opening) : limit_bytes(opening.number("limit_bytes")) {
  opening.level(KV_NONE);
  opening.version("1");
  opening.compression("none");
  opening.effective("limit_bytes", limit_bytes);
}

bool Example::maintain(uint32_t work) {
  return work != KV_COMPACT; /* nothing is buffered, nothing runs in the background */
}

void Example::stats(kvdyno::Stats &stats) {
  const std::lock_guard<std::mutex> held(lock);
  stats.add("rows", rows.size());
  stats.add("stored_bytes", stored_bytes);
}

}  // namespace

KVDYNO_EXPORT(Example)
