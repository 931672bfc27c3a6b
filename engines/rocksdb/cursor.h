/* An iterator of RocksDB for the kit's scans. */
#ifndef KVDYNO_ROCKSDB_CURSOR_H
#define KVDYNO_ROCKSDB_CURSOR_H

#include "database.h"

namespace engine_rocksdb {

inline rocksdb::Slice slice(std::string_view bytes) { return rocksdb::Slice(bytes.data(), bytes.size()); }
inline std::string_view view(const rocksdb::Slice &bytes) { return {bytes.data(), bytes.size()}; }

/* Walks in key order; the kit's scan_over drives it. */
class Cursor {
 public:
  Cursor(rocksdb::DB &db, const rocksdb::ReadOptions &options, rocksdb::ColumnFamilyHandle *column)
      : iterator(db.NewIterator(options, column)) {}
  bool first() { return iterator->SeekToFirst(), stands(); }
  bool last() { return iterator->SeekToLast(), stands(); }
  bool seek(std::string_view key) { return iterator->Seek(slice(key)), stands(); }
  bool seek_back(std::string_view key) { return iterator->SeekForPrev(slice(key)), stands(); }
  bool next() { return iterator->Next(), stands(); }
  bool previous() { return iterator->Prev(), stands(); }
  std::string_view key() const { return view(iterator->key()); }
  std::string_view value() const { return view(iterator->value()); }

 private:
  bool stands() {
    if (iterator->Valid()) return true;
    check(iterator->status(), "scan");
    return false;
  }

  std::unique_ptr<rocksdb::Iterator> iterator;
};

}  // namespace engine_rocksdb

#endif
