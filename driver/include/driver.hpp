/* The kit for kvdyno drivers in C++: makes the table of calls from your class, with kit.h's timed loop inlined.
 *
 * A driver is a class, here named Mine:
 *
 *     class Mine {
 *      public:
 *       static constexpr kv_option options[] = {{"block_size", "bytes", "4096", "bytes of a block"}};
 *       static constexpr kvdyno::Info info{"mine", "what it is", "C++", "lsm", KV_ORDERED | ...,
 *                                          1 << KV_PROCESS, 0, options};
 *       explicit Mine(kvdyno::Opening &opening);  // opens; throws on failure
 *       ~Mine();                                  // closes; an optional `void close()` runs before it and may throw
 *       class Session {
 *        public:
 *         explicit Session(Mine &database);
 *         uint32_t get(kv_op &op);                // and put, remove, scan, merge, push, pop ...
 *         uint32_t group(kv_op *ops, uint32_t count, bool is_atomic);
 *       };
 *       bool maintain(uint32_t work);             // optional; false: the engine has no such work
 *       void stats(kvdyno::Stats &stats);         // optional
 *     };
 *     KVDYNO_EXPORT(Mine)
 *
 * A call returns an enum kv_status. An exception becomes a status with a text: a Failure has its own status, any other
 * exception is KV_ERROR. driver/README.md is the guide for authors. C++17 with the GNU builtins of gcc and clang.
 */
#ifndef KVDYNO_DRIVER_HPP
#define KVDYNO_DRIVER_HPP

#include "kit.h"

#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace kvdyno {

/* What a driver throws when an op, an open or another call fails; `status` is an enum kv_status. */
class Failure : public std::runtime_error {
 public:
  Failure(uint32_t status, const std::string &text) : std::runtime_error(text), status_(status) {}
  explicit Failure(const std::string &text) : Failure(KV_ERROR, text) {}
  uint32_t status() const { return status_; }

 private:
  uint32_t status_;
};

/* The constants of a driver's table. */
struct Info {
  const char *name, *engine, *language, *family;
  uint64_t capabilities, levels; /* levels: 1 << enum kv_level for each that the engine itself has */
  uint32_t key_size_max;         /* bytes; 0 = at least 65536 */
  const kv_option *options;
  uint32_t option_count;

  constexpr Info(const char *name, const char *engine, const char *language, const char *family, uint64_t capabilities,
                 uint64_t levels, uint32_t key_size_max)
      : name(name),
        engine(engine),
        language(language),
        family(family),
        capabilities(capabilities),
        levels(levels),
        key_size_max(key_size_max),
        options(nullptr),
        option_count(0) {}
  template <uint32_t count>
  constexpr Info(const char *name, const char *engine, const char *language, const char *family, uint64_t capabilities,
                 uint64_t levels, uint32_t key_size_max, const kv_option (&options)[count])
      : name(name),
        engine(engine),
        language(language),
        family(family),
        capabilities(capabilities),
        levels(levels),
        key_size_max(key_size_max),
        options(options),
        option_count(count) {}
};

/* ---- Views of ops ------------------------------------------------------------------------------------------- */

inline std::string_view key_of(const kv_op &op) { return {reinterpret_cast<const char *>(op.key), op.key_length}; }
inline std::string_view value_of(const kv_op &op) {
  return {reinterpret_cast<const char *>(op.value), op.value_length};
}
inline uint32_t deliver(kv_op &op, std::string_view value) { return kv_deliver(&op, value.data(), value.size()); }

/* Whether a cursor has seek_back. */
template <class Cursor, class = void>
struct has_seek_back : std::false_type {};
template <class Cursor>
struct has_seek_back<Cursor, std::void_t<decltype(&Cursor::seek_back)>> : std::true_type {};

/* Moves a cursor to the last key <= `from`. */
template <class Cursor>
inline bool seek_back(Cursor &cursor, std::string_view from) {
  if constexpr (has_seek_back<Cursor>::value) {
    return cursor.seek_back(from);
  } else {
    if (!cursor.seek(from)) return cursor.last();
    return cursor.key() == from || cursor.previous();
  }
}

/* Offers the rows of the scan, starting at the cursor's row. */
template <class Cursor>
inline void push_rows(Cursor &cursor, kv_rows &rows, bool is_there) {
  const kv_op &op = *rows.op;
  const bool is_reverse = (op.flags & KV_REVERSE) != 0;
  while (is_there) {
    const std::string_view key = cursor.key();
    const std::string_view value = (op.flags & KV_KEYS) != 0 ? std::string_view() : cursor.value();
    if (!kv_rows_push(&rows, key.data(), key.size(), value.data(), value.size())) break;
    is_there = is_reverse ? cursor.previous() : cursor.next();
  }
}

/* Moves a cursor to the first row of the scan `op`; whether there is one. */
template <class Cursor>
inline bool stand(Cursor &cursor, const kv_op &op) {
  std::string space(op.value_length, 0);
  const kv_place place = kv_scan_place(&op, reinterpret_cast<uint8_t *>(space.data()));
  const std::string_view from(reinterpret_cast<const char *>(place.key), place.length);
  const bool is_reverse = (op.flags & KV_REVERSE) != 0;
  if (from.empty()) return is_reverse ? cursor.last() : cursor.first();
  if (!is_reverse) return cursor.seek(from);
  const bool is_there = seek_back(cursor, from);
  return is_there && place.is_exclusive && cursor.key() == from ? cursor.previous() : is_there;
}

/* Runs the scan `op` over a cursor, whose methods are: bool first(), last(), seek(key) (to the first key >= `key`),
 * next(), previous(), each of which returns whether it is at a row; std::string_view key(), value() of that row; and,
 * if the engine has it, bool seek_back(key) (to the last key <= `key`). The cursor throws errors. */
template <class Cursor>
inline uint32_t scan_over(Cursor &cursor, kv_op &op) {
  kv_rows rows = kv_rows_begin(&op);
  push_rows(cursor, rows, stand(cursor, op));
  return rows.status;
}

/* The cursor of a session's scans, which stays open from call to call if an op requests it (KV_HOLD):
 *
 *     if (!held.goes_on(op)) held.begin(the cursor's arguments);
 *     return held.scan(op);
 *
 * and `held.let_go()` before every write, and in `control` for KV_DROP. */
template <class Cursor>
class Held {
 public:
  bool goes_on(const kv_op &op) const {
    if (!held_.is_held) return false;
    const std::string_view key = cursor_->key();
    return kv_goes_on(&held_, &op, key.data(), key.size());
  }
  template <class... Arguments>
  void begin(Arguments &&...arguments) {
    held_.is_held = 0;
    cursor_.emplace(std::forward<Arguments>(arguments)...);
  }
  uint32_t scan(kv_op &op) {
    const bool goes_on = held_.is_held != 0;
    kv_rows rows = kv_rows_begin(&op);
    held_.is_held = 0; /* in case the engine throws */
    if (!goes_on)
      push_rows(*cursor_, rows, stand(*cursor_, op));
    else if (!rows.is_full)
      push_rows(*cursor_, rows, (op.flags & KV_REVERSE) != 0 ? cursor_->previous() : cursor_->next());
    if (!kv_keep(&held_, &rows)) cursor_.reset();
    return rows.status;
  }
  void let_go() {
    held_.is_held = 0;
    cursor_.reset();
  }

 private:
  kv_held held_ = {};
  std::optional<Cursor> cursor_;
};

/* ---- Open and stats ----------------------------------------------------------------------------------------- */

/* The request at open, and the report of what is in effect. */
class Opening {
 public:
  Opening(const kv_driver &driver, const kv_config &config, kv_opened &opened)
      : config(config), opened(opened), driver_(driver) {}

  const kv_config &config;
  kv_opened &opened;

  bool is_new() const { return (config.flags & KV_CREATE) != 0; }
  /* The path of a file or folder with this name in the trial's folder. */
  std::string path(const std::string &name) const { return std::string(config.path) + "/" + name; }
  /* Picks the weakest level at or above the requested one, reports it and returns it; `authors` is what KV_DEFAULT
   * means.
   */
  uint32_t level(uint32_t authors) {
    const uint32_t status = kv_pick_level(&driver_, &config, authors, &opened);
    if (status != KV_OK) throw Failure(status, opened.error);
    return opened.level;
  }
  /* Options: the given value, otherwise the default. Throws if the text is not a number or flag. */
  std::string text(const char *name) const { return kv_setting_text(&driver_, &config, name); }
  uint64_t number(const char *name) {
    uint64_t number = 0;
    const uint32_t status = kv_setting_number(&driver_, &config, name, &number, &opened);
    if (status != KV_OK) throw Failure(status, opened.error);
    return number;
  }
  bool flag(const char *name) {
    int flag = 0;
    const uint32_t status = kv_setting_flag(&driver_, &config, name, &flag, &opened);
    if (status != KV_OK) throw Failure(status, opened.error);
    return flag != 0;
  }
  /* The reports. */
  void version(const std::string &version) { put(opened.version, version); }
  void compression(const std::string &compression) { put(opened.compression, compression); }
  void cache_bytes(uint64_t bytes) { opened.cache_bytes = bytes; }
  void without(uint64_t capabilities) { opened.capabilities &= ~capabilities; }
  void effective(const char *name, const std::string &value) { kv_opened_setting(&opened, name, "%s", value.c_str()); }
  void effective(const char *name, uint64_t value) { effective(name, std::to_string(value)); }

 private:
  template <size_t size>
  static void put(char (&field)[size], const std::string &text) {
    snprintf(field, size, "%s", text.c_str());
  }

  const kv_driver &driver_;
};

/* Collects `name=value` lines. */
class Stats {
 public:
  Stats(char *out, uint64_t size) : out_(out), room_(size) {
    if (room_ != 0) out_[0] = 0;
  }
  void add(const std::string &name, const std::string &value) {
    const std::string line = name + "=" + value + "\n";
    is_short_ |= line.size() >= room_;
    if (is_short_) return;
    memcpy(out_, line.c_str(), line.size() + 1);
    out_ += line.size();
    room_ -= line.size();
  }
  void add(const std::string &name, uint64_t value) { add(name, std::to_string(value)); }
  uint32_t status() const { return is_short_ ? KV_SHORT : KV_OK; }

 private:
  char *out_;
  uint64_t room_;
  bool is_short_ = false;
};

/* ---- The table ---------------------------------------------------------------------------------------------- */

/* Runs `call`; passes what it throws to `report` as a status and a text. */
template <class Call, class Report>
inline uint32_t guarded(Call &&call, Report &&report) noexcept {
  try {
    return call();
  } catch (const Failure &failure) {
    return report(failure.status(), failure.what());
  } catch (const std::bad_alloc &) {
    return report(KV_ERROR, "out of memory");
  } catch (const std::exception &error) {
    return report(KV_ERROR, error.what());
  } catch (...) {
    return report(KV_ERROR, "an exception of an unknown type");
  }
}

/* KVDYNO_HAS(name): whether a class has a method of that name. */
#define KVDYNO_HAS(method)                  \
  template <class T, class = void>          \
  struct has_##method : std::false_type {}; \
  template <class T>                        \
  struct has_##method<T, std::void_t<decltype(&T::method)>> : std::true_type {};
KVDYNO_HAS(get)
KVDYNO_HAS(put)
KVDYNO_HAS(remove)
KVDYNO_HAS(scan)
KVDYNO_HAS(merge)
KVDYNO_HAS(control)
KVDYNO_HAS(group)
KVDYNO_HAS(push)
KVDYNO_HAS(pop)
KVDYNO_HAS(maintain)
KVDYNO_HAS(stats)
KVDYNO_HAS(close)
#undef KVDYNO_HAS

/* The table of the driver class `Driver`. */
template <class Driver>
struct Table {
  using Session = typename Driver::Session;

/* One call of the session if it has one, otherwise null, which the kit treats as KV_UNSUPPORTED. */
#define KVDYNO_CALL(method)                                                                                        \
  static constexpr kv_call *method##_call() {                                                                      \
    if constexpr (has_##method<Session>::value)                                                                    \
      return [](kv_session *session, kv_op *op, kv_batch *batch) -> uint32_t {                                     \
        return guarded([&] { return reinterpret_cast<Session *>(session)->method(*op); },                          \
                       [&](uint32_t status, const char *text) { return kv_fail(batch, op, status, "%s", text); }); \
      };                                                                                                           \
    else                                                                                                           \
      return nullptr;                                                                                              \
  }
  KVDYNO_CALL(get)
  KVDYNO_CALL(put)
  KVDYNO_CALL(remove)
  KVDYNO_CALL(scan)
  KVDYNO_CALL(merge)
  KVDYNO_CALL(control)
  KVDYNO_CALL(push)
  KVDYNO_CALL(pop)
#undef KVDYNO_CALL

  static constexpr kv_group_call *group_call() {
    if constexpr (has_group<Session>::value)
      return [](kv_session *session, kv_op *ops, uint32_t count, int is_atomic, kv_batch *batch) -> uint32_t {
        return guarded([&] { return reinterpret_cast<Session *>(session)->group(ops, count, is_atomic != 0); },
                       [&](uint32_t status, const char *text) { return kv_fail(batch, ops, status, "%s", text); });
      };
    else
      return nullptr;
  }

  static uint32_t open(const kv_config *config, kv_opened *opened, kv_database **database) {
    const uint32_t status = kv_open_begin(&table, config, opened);
    if (status != KV_OK) return status;
    return guarded(
        [&] {
          Opening opening(table, *config, *opened);
          *database = reinterpret_cast<kv_database *>(new Driver(opening));
          return static_cast<uint32_t>(KV_OK);
        },
        [&](uint32_t failed, const char *text) {
          const std::string copy(text); /* it may be in the field that it is written to */
          return kv_fail_open(opened, failed, "%s", copy.c_str());
        });
  }

  static uint32_t session(kv_database *database, const kv_arena *, kv_session **session, char *error) {
    return guarded(
        [&] {
          *session = reinterpret_cast<kv_session *>(new Session(*reinterpret_cast<Driver *>(database)));
          return static_cast<uint32_t>(KV_OK);
        },
        [&](uint32_t status, const char *text) { return kv_fail_call(error, status, "%s", text); });
  }

  static uint32_t execute(kv_session *session, kv_batch *batch) {
    static constexpr kv_calls calls = {Driver::info.capabilities,
                                       get_call(),
                                       put_call(),
                                       remove_call(),
                                       scan_call(),
                                       merge_call(),
                                       control_call(),
                                       group_call(),
                                       push_call(),
                                       pop_call()};
    return kv_run(session, batch, &calls);
  }

  static uint32_t session_end(kv_session *session, char *error) {
    return guarded(
        [&] {
          delete reinterpret_cast<Session *>(session);
          return static_cast<uint32_t>(KV_OK);
        },
        [&](uint32_t status, const char *text) { return kv_fail_call(error, status, "%s", text); });
  }

  static uint32_t maintain(kv_database *database, uint32_t work, char *error) {
    if constexpr (has_maintain<Driver>::value)
      return guarded(
          [&] {
            return static_cast<uint32_t>(reinterpret_cast<Driver *>(database)->maintain(work) ? KV_OK : KV_UNSUPPORTED);
          },
          [&](uint32_t status, const char *text) { return kv_fail_call(error, status, "%s", text); });
    else
      return kv_no_maintain(database, work, error);
  }

  static uint32_t stats(kv_database *database, char *out, uint64_t size) {
    if constexpr (has_stats<Driver>::value)
      return guarded(
          [&] {
            Stats stats(out, size);
            reinterpret_cast<Driver *>(database)->stats(stats);
            return stats.status();
          },
          [&](uint32_t status, const char *) { return status; });
    else
      return kv_no_stats(database, out, size);
  }

  static uint32_t close(kv_database *database, char *error) {
    Driver *driver = reinterpret_cast<Driver *>(database);
    auto report = [&](uint32_t status, const char *text) { return kv_fail_call(error, status, "%s", text); };
    uint32_t status = KV_OK;
    if constexpr (has_close<Driver>::value)
      status = guarded([&] { return driver->close(), static_cast<uint32_t>(KV_OK); }, report);
    const uint32_t ended = guarded([&] { return delete driver, static_cast<uint32_t>(KV_OK); }, report);
    return status != KV_OK ? status : ended;
  }

  static constexpr kv_driver table = {KV_ABI,
                                      sizeof(kv_driver),
                                      Driver::info.name,
                                      Driver::info.engine,
                                      Driver::info.language,
                                      Driver::info.family,
                                      Driver::info.capabilities,
                                      Driver::info.levels,
                                      Driver::info.key_size_max,
                                      Driver::info.option_count,
                                      Driver::info.options,
                                      open,
                                      session,
                                      execute,
                                      session_end,
                                      maintain,
                                      stats,
                                      close,
                                      nullptr};
};

/* The list of a plug-in's tables. */
template <class... Drivers>
const kv_drivers *drivers() {
  static constexpr const kv_driver *tables[] = {&Table<Drivers>::table...};
  static constexpr kv_drivers list = {KV_ABI, sizeof...(Drivers), tables};
  return &list;
}

}  // namespace kvdyno

/* Exports a plug-in's drivers: KVDYNO_EXPORT(One, Other) at the end of a file. */
#define KVDYNO_EXPORT(...)                                                              \
  extern "C" __attribute__((visibility("default"))) const kv_drivers *kv_plugin(void) { \
    return kvdyno::drivers<__VA_ARGS__>();                                              \
  }

#endif
