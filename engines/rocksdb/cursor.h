/* An iterator of RocksDB for the kit's scans. */
#ifndef KVDYNO_ROCKSDB_CURSOR_H
#define KVDYNO_ROCKSDB_CURSOR_H

#include "../leveldb/cursor.h"
#include "database.h"

namespace engine_rocksdb {

inline rocksdb::Slice slice(std::string_view bytes) { return rocksdb::Slice(bytes.data(), bytes.size()); }
inline std::string_view view(const rocksdb::Slice &bytes) { return {bytes.data(), bytes.size()}; }

struct Cursor : IteratorCursor<rocksdb::Iterator, rocksdb::Status, check> {
  Cursor(rocksdb::DB &db, const rocksdb::ReadOptions &options, rocksdb::ColumnFamilyHandle *column)
      : IteratorCursor(db.NewIterator(options, column)) {}
  bool seek_back(std::string_view key) { return iterator->SeekForPrev(slice(key)), stands(); }
};

}  // namespace engine_rocksdb

#endif
