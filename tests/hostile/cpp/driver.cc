/* A correct engine, an ordered map with a lock, and one fault, selected by HOSTILE_FAULT: the faults that a driver in
 * C++ can have through the kit: exceptions, exits, prints, words of the op, wrong answers. */
#include "driver.hpp"

#include <unistd.h>
#include <cstdlib>
#include <iostream>
#include <map>
#include <mutex>
#include <thread>

namespace {

/* The selected fault; "none" by default. */
std::string_view fault() {
  static const char *const chosen = getenv("HOSTILE_FAULT");
  return chosen != nullptr ? chosen : "none";
}

/* Whether `name` is the selected fault, and this is its twentieth occasion or every seventh after. */
bool strikes(std::string_view name) {
  static uint64_t occasions = 0;
  if (fault() != name) return false;
  const uint64_t seen = occasions++;
  return seen >= 20 && (seen - 20) % 7 == 0;
}

/* Faults that any call can have: `CALL/HOW`. */
void at(const std::string &call) {
  const std::string_view chosen = fault();
  const auto is = [&](const char *how) { return chosen == call + "/" + how; };
  if (is("throw")) throw std::runtime_error("the page is torn");
  if (is("throw-number")) throw 77;
  if (is("throw-memory")) throw std::bad_alloc();
  if (is("throw-full")) throw kvdyno::Failure(KV_FULL, "no space left on device");
  if (is("throw-mute")) throw kvdyno::Failure("");
  if (is("throw-ok")) throw kvdyno::Failure(KV_OK, "all is well");
  if (is("throw-escapes")) throw std::runtime_error("\x1b[31mred\x1b[0m \x07 \r\n and on");
  if (is("throw-long")) throw std::runtime_error(std::string(1 << 20, 'x'));
  if (is("throw-in-noexcept")) []() noexcept { throw std::runtime_error("the page is torn"); }();
  if (is("thread-throws")) std::thread([] { throw std::runtime_error("the page is torn"); }).join();
  if (is("exit")) std::exit(0);
  if (is("abort")) std::abort();
  if (is("null")) *static_cast<volatile int *>(nullptr) = 1;
  if (is("sleep")) std::this_thread::sleep_for(std::chrono::hours(1));
  if (is("print")) std::cout << "\x1b[2J\x1b]0;owned\afrom the driver" << std::endl;
  if (is("print-error")) std::cerr << "\x1b[2J\x1b]0;owned\afrom the driver\n";
  if (is("print-part")) (void)!write(STDOUT_FILENO, "no end of line", 14);
}

using Rows = std::map<std::string, std::string, std::less<>>;

/* Walks over rows in key order. */
struct Cursor {
  const Rows &rows;
  Rows::const_iterator at;
  bool first() { return at = rows.begin(), at != rows.end(); }
  bool last() { return at = rows.end(), previous(); }
  bool seek(std::string_view key) { return at = rows.lower_bound(key), at != rows.end(); }
  bool next() {
    if (strikes("scan-twice")) return true;
    if (++at != rows.end() && strikes("scan-gap")) ++at;
    return at != rows.end();
  }
  bool previous() { return at != rows.begin() && (--at, true); }
  std::string_view key() const { return at->first; }
  std::string_view value() const { return at->second; }
};

class Hostile {
 public:
  static constexpr kvdyno::Info info{"hostile-cpp",
                                     "an ordered map with a fault, for the tests of kvdyno",
                                     "C++",
                                     "example",
                                     KV_ORDERED | KV_CAN_REVERSE | KV_CAN_PREFIX | KV_CAN_DELETE | KV_DELETE_TELLS |
                                         KV_OVERWRITE | KV_CAN_NEW | KV_TRANSACTION | KV_IN_MEMORY,
                                     1 << KV_NONE,
                                     0};

  explicit Hostile(kvdyno::Opening &opening) {
    at("open");
    opening.level(KV_NONE);
    opening.version("1");
    if (fault() == "level-not-declared") opening.opened.level = KV_POWER;
    if (fault() == "level-unknown") opening.opened.level = 77;
    if (fault() == "capability-gained") opening.opened.capabilities |= KV_MERGE_ADD;
    if (fault() == "version-endless") memset(opening.opened.version, '9', sizeof(opening.opened.version));
  }
  void close() {
    at("close");
    if (fault() == "close-fails") throw kvdyno::Failure("the last page cannot be written");
  }
  bool maintain(uint32_t work) {
    at("maintain");
    return work != KV_COMPACT;
  }
  void stats(kvdyno::Stats &stats) {
    at("stats");
    stats.add("rows", rows.size());
  }

  class Session {
   public:
    explicit Session(Hostile &database) : database(database) { at("session"); }
    ~Session() noexcept(false) { at("end"); }

    uint32_t get(kv_op &op) {
      at("get");
      if (fault() == "get-exists") return KV_EXISTS;
      if (fault() == "get-unsupported") return KV_UNSUPPORTED;
      if (fault() == "get-unknown") return 77;
      if (fault() == "get-not-run") return KV_NOT_RUN;
      if (fault() == "get-failed") return KV_ERROR;
      const std::lock_guard<std::mutex> held(database.lock);
      return read(op);
    }
    uint32_t put(kv_op &op) {
      at("put");
      const std::lock_guard<std::mutex> held(database.lock);
      return change(op);
    }
    uint32_t remove(kv_op &op) {
      at("delete");
      const std::lock_guard<std::mutex> held(database.lock);
      return change(op);
    }
    uint32_t scan(kv_op &op) {
      at("scan");
      const std::lock_guard<std::mutex> held(database.lock);
      Cursor cursor{database.rows, database.rows.end()};
      const uint32_t status = kvdyno::scan_over(cursor, op);
      if (strikes("scan-more-rows")) op.rows = op.limit + 1;
      return status;
    }
    uint32_t group(kv_op *ops, uint32_t count, bool is_atomic) {
      at("group");
      if (!is_atomic) return KV_NOT_RUN;
      if (fault() == "group-unanswered") return KV_OK;
      const std::lock_guard<std::mutex> held(database.lock);
      const Rows before = database.rows;
      for (uint32_t i = 0; i < count; i++) {
        if (ops[i].kind != KV_PUT && ops[i].kind != KV_DELETE) {
          if (fault() != "group-half-kept") database.rows = before;
          throw kvdyno::Failure(KV_UNSUPPORTED, "a transaction may have only puts and deletes");
        }
        ops[i].status = change(ops[i]);
      }
      return KV_OK;
    }

   private:
    uint32_t read(kv_op &op) {
      const auto found = database.rows.find(kvdyno::key_of(op));
      if (found == database.rows.end()) return KV_NOT_FOUND;
      if (strikes("get-missing")) return KV_NOT_FOUND;
      std::string value = found->second;
      if (strikes("get-half")) value.resize(value.size() / 2);
      if (strikes("get-nothing-delivered")) return KV_OK;
      const uint32_t status = kvdyno::deliver(op, value);
      if (fault() == "raw-kind") op.kind = KV_DROP;
      if (fault() == "raw-length") op.length = UINT64_MAX;
      if (fault() == "raw-key-bytes" && op.key_length > 0) const_cast<uint8_t *>(op.key)[0] ^= 1;
      if (fault() == "raw-out-past") op.out[op.out_size] = 0;
      return status;
    }
    uint32_t change(const kv_op &op) {
      Rows &rows = database.rows;
      const auto found = rows.find(kvdyno::key_of(op));
      if (op.kind == KV_DELETE) {
        if (found == rows.end()) return KV_NOT_FOUND;
        if (!strikes("delete-ignored")) rows.erase(found);
        return KV_OK;
      }
      if (found != rows.end() && (op.flags & KV_NEW) != 0 && fault() != "new-overwrites") return KV_EXISTS;
      if (strikes("put-lost") || (found != rows.end() && strikes("put-stale"))) return KV_OK;
      rows.insert_or_assign(std::string(kvdyno::key_of(op)), std::string(kvdyno::value_of(op)));
      return KV_OK;
    }

    Hostile &database;
  };

 private:
  std::mutex lock;
  Rows rows;
};

}  // namespace

KVDYNO_EXPORT(Hostile)
