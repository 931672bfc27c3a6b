/* An engine in C++ that keeps the bytes that it is given and copies none of them: the kit must. A map behind a lock. */
#include "driver.hpp"

#include <map>
#include <memory>
#include <mutex>

namespace {

/* Bytes from the kit: from malloc, and the driver's to free. */
class Bytes {
 public:
  Bytes(const uint8_t *bytes, uint32_t length) : bytes_(const_cast<uint8_t *>(bytes), free), length_(length) {}
  std::string_view view() const { return {reinterpret_cast<const char *>(bytes_.get()), length_}; }

 private:
  std::unique_ptr<uint8_t, decltype(&free)> bytes_;
  uint32_t length_;
};

struct Less {
  using is_transparent = void;
  static std::string_view view(const Bytes &bytes) { return bytes.view(); }
  static std::string_view view(std::string_view text) { return text; }
  template <class One, class Other>
  bool operator()(const One &one, const Other &other) const {
    return view(one) < view(other);
  }
};

class Keeper {
 public:
  static constexpr kvdyno::Info info{
      "keeper-cpp",
      "keeps the bytes that it is given",
      "C++",
      "example",
      KV_IN_MEMORY | KV_OVERWRITE | KV_CAN_DELETE | KV_DELETE_TELLS | KV_KEEPS_KEY | KV_KEEPS_VALUE,
      1 << KV_NONE,
      0};

  explicit Keeper(kvdyno::Opening &opening) {
    opening.level(KV_NONE);
    opening.version("1");
  }

  class Session {
   public:
    explicit Session(Keeper &database) : database(database) {}

    uint32_t get(kv_op &op) {
      const std::lock_guard<std::mutex> held(database.lock);
      const auto found = database.rows.find(kvdyno::key_of(op));
      return found == database.rows.end() ? static_cast<uint32_t>(KV_NOT_FOUND)
                                          : kvdyno::deliver(op, found->second.view());
    }
    uint32_t put(kv_op &op) {
      Bytes key(op.key, op.key_length), value(op.value, op.value_length);
      const std::lock_guard<std::mutex> held(database.lock);
      const auto found = database.rows.find(key.view());
      if (found != database.rows.end())
        found->second = std::move(value);
      else
        database.rows.emplace(std::move(key), std::move(value));
      return KV_OK;
    }
    uint32_t remove(kv_op &op) {
      const Bytes key(op.key, op.key_length), value(op.value, op.value_length);
      const std::lock_guard<std::mutex> held(database.lock);
      const auto found = database.rows.find(key.view());
      if (found == database.rows.end()) return KV_NOT_FOUND;
      database.rows.erase(found);
      return KV_OK;
    }

   private:
    Keeper &database;
  };

 private:
  std::mutex lock;
  std::map<Bytes, Bytes, Less> rows;
};

}  // namespace

KVDYNO_EXPORT(Keeper)
