/* The iterator of LevelDB, and of engines derived from it, for the kit's scans. */
#ifndef KVDYNO_LEVELDB_CURSOR_H
#define KVDYNO_LEVELDB_CURSOR_H

#include <memory>
#include <string_view>

/* Walks in key order; the kit's scan_over drives it. `check` throws if a status is an error. */
template <class Iterator, class Status, void (*check)(const Status &, const char *)>
class IteratorCursor {
 public:
  explicit IteratorCursor(Iterator *iterator) : iterator(iterator) {}
  bool first() { return iterator->SeekToFirst(), stands(); }
  bool last() { return iterator->SeekToLast(), stands(); }
  bool seek(std::string_view key) { return iterator->Seek({key.data(), key.size()}), stands(); }
  bool next() { return iterator->Next(), stands(); }
  bool previous() { return iterator->Prev(), stands(); }
  std::string_view key() const { return view(iterator->key()); }
  std::string_view value() const { return view(iterator->value()); }

 protected:
  bool stands() {
    if (iterator->Valid()) return true;
    check(iterator->status(), "scan");
    return false;
  }

  std::unique_ptr<Iterator> iterator;

 private:
  template <class Slice>
  static std::string_view view(const Slice &bytes) {
    return {bytes.data(), bytes.size()};
  }
};

#endif
