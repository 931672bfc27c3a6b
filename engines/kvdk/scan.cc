/* Scans of KVDK's sorted collections. */
#include "database.h"

namespace kvdyno_kvdk {
namespace {

/* An iterator with the full names of its rows: an element's key is preceded by the bytes that name the collection. */
class Cursor {
 public:
  Cursor(kvdk::Engine &engine, const Target &target, std::string name)
      : engine(engine), name(std::move(name)), iterator(engine.SortedIteratorCreate(target.collection)) {}
  ~Cursor() {
    if (iterator != nullptr) engine.SortedIteratorRelease(iterator);
  }
  Cursor(const Cursor &) = delete;

  /* Moves to the start of the scan. */
  void begin(const kv_place &place, bool is_reverse) {
    const std::string from(reinterpret_cast<const char *>(place.key), place.length);
    if (iterator == nullptr) return;
    if (from.compare(0, name.size(), name) < 0)
      return is_reverse && !from.empty() ? leave() : first_or_last(is_reverse);
    if (from.compare(0, name.size(), name) > 0) return is_reverse ? iterator->SeekToLast() : leave();
    if (from.size() == name.size() && (from.empty() || !is_reverse)) return first_or_last(is_reverse);
    iterator->Seek(from.substr(name.size()));
    if (!is_reverse) return;
    if (!iterator->Valid()) return iterator->SeekToLast();
    const int order = key().compare(from);
    if (order > 0 || (order == 0 && place.is_exclusive)) iterator->Prev();
  }
  bool stands() const { return iterator != nullptr && !has_left && iterator->Valid(); }
  void step(bool is_reverse) { is_reverse ? iterator->Prev() : iterator->Next(); }
  std::string key() const { return name + iterator->Key(); }
  std::string value() const { return iterator->Value(); }

 private:
  void first_or_last(bool is_reverse) { is_reverse ? iterator->SeekToLast() : iterator->SeekToFirst(); }
  void leave() { has_left = true; }

  kvdk::Engine &engine;
  const std::string name;
  kvdk::SortedIterator *const iterator; /* null: the collection does not exist */
  bool has_left = false;
};

}  // namespace

uint32_t scan(kv_session *session, kv_op *op, kv_batch *batch) {
  return guarded(
      [&]() -> uint32_t {
        Target target;
        const uint32_t status = target_of(session, op, batch, &target);
        if (status != KV_OK) return status;
        const bool is_reverse = (op->flags & KV_REVERSE) != 0;
        std::string space(op->value_length, 0);
        const kv_place place = kv_scan_place(op, reinterpret_cast<uint8_t *>(&space[0]));
        kv_rows rows = kv_rows_begin(op);
        const char *key_bytes = reinterpret_cast<const char *>(op->key);
        Cursor cursor(session->engine, target, std::string(key_bytes, target.key.data() - key_bytes));
        for (cursor.begin(place, is_reverse); cursor.stands(); cursor.step(is_reverse)) {
          const std::string key = cursor.key();
          const std::string value = (op->flags & KV_KEYS) != 0 ? std::string() : cursor.value();
          if (!kv_rows_push(&rows, key.data(), key.size(), value.data(), value.size())) break;
        }
        return rows.status;
      },
      [&](const char *text) { return kv_fail(batch, op, KV_ERROR, "scan: %s", text); });
}

}  // namespace kvdyno_kvdk
