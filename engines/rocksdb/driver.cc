/* RocksDB through its C++ interface: a log-structured merge tree with column families and background threads. */
#include "cursor.h"
#include "database.h"

#include <rocksdb/snapshot.h>
#include <rocksdb/utilities/write_batch_with_index.h>
#include <rocksdb/write_batch.h>

namespace engine_rocksdb {

using rocksdb::PinnableSlice;
using rocksdb::Slice;

class Rocksdb::Session {
 public:
  explicit Session(Rocksdb &database)
      : db(*database.db), columns(database.columns), write_options(database.write_options) {}

  uint32_t get(kv_op &op) {
    const rocksdb::Status status = db.Get(read_options, column_of(op), slice(kvdyno::key_of(op)), &pinned);
    return found(op, status, pinned);
  }

  uint32_t put(kv_op &op) {
    held.let_go();
    check(db.Put(write_options, column_of(op), slice(kvdyno::key_of(op)), slice(kvdyno::value_of(op))), "put");
    return KV_OK;
  }

  uint32_t remove(kv_op &op) {
    held.let_go();
    check(db.Delete(write_options, column_of(op), slice(kvdyno::key_of(op))), "delete");
    return KV_OK;
  }

  uint32_t merge(kv_op &op) {
    held.let_go();
    check(db.Merge(write_options, column_of(op), slice(kvdyno::key_of(op)), operand(op)), "merge");
    return KV_OK;
  }

  uint32_t scan(kv_op &op) {
    if (!held.goes_on(op)) {
      bound(op);
      held.begin(db, scan_options, column_of(op));
    }
    return held.scan(op);
  }

  /* KV_DROP: there are no transactions over several calls. */
  uint32_t control(kv_op &) { return held.let_go(), KV_OK; }

  /* Joined gets are one MultiGet, joined writes one atomic batch: the transaction. */
  uint32_t group(kv_op *ops, uint32_t count, bool is_atomic) {
    uint32_t gets = 0;
    held.let_go();
    for (uint32_t i = 0; i < count; i++) {
      gets += ops[i].kind == KV_GET;
      if (ops[i].kind != KV_SCAN) continue;
      if (is_atomic) throw kvdyno::Failure(KV_UNSUPPORTED, "a transaction may not have scans");
      return KV_NOT_RUN;
    }
    if (gets == count) return get_all(ops, count);
    if (gets != 0) return is_atomic ? read_and_write(ops, count) : static_cast<uint32_t>(KV_NOT_RUN);
    batch.Clear();
    for (uint32_t i = 0; i < count; i++) add(batch, ops[i]);
    check(db.Write(write_options, &batch), "write");
    for (uint32_t i = 0; i < count; i++) ops[i].status = KV_OK;
    return KV_OK;
  }

 private:
  rocksdb::ColumnFamilyHandle *column_of(const kv_op &op) const {
    if (op.keyspace < columns.size()) return columns[op.keyspace];
    throw kvdyno::Failure(KV_UNSUPPORTED, "there is no keyspace " + std::to_string(op.keyspace));
  }

  /* Delivers the value that a get found, and releases it. */
  uint32_t found(kv_op &op, const rocksdb::Status &status, PinnableSlice &value) {
    if (status.IsNotFound()) return KV_NOT_FOUND;
    check(status, "get");
    const uint32_t delivered = kvdyno::deliver(op, view(value));
    value.Reset();
    return delivered;
  }

  /* The operand of a merge in the operator's form. */
  Slice operand(const kv_op &op) {
    const bool is_append = (op.flags & KV_APPEND) != 0;
    if (!is_append && op.value_length != 8) throw kvdyno::Failure("merge: the operand must have 8 bytes");
    tagged.assign(1, is_append ? kAppend : kAdd);
    tagged.append(kvdyno::value_of(op));
    return tagged;
  }

  void add(rocksdb::WriteBatchBase &writes, const kv_op &op) {
    rocksdb::ColumnFamilyHandle *column = column_of(op);
    const Slice key = slice(kvdyno::key_of(op));
    if (op.kind == KV_PUT) {
      check(writes.Put(column, key, slice(kvdyno::value_of(op))), "put");
    } else if (op.kind == KV_DELETE) {
      check(writes.Delete(column, key), "delete");
    } else {
      check(writes.Merge(column, key, operand(op)), "merge");
    }
  }

  /* Tells RocksDB where the scan ends, so that it reads no block past it. */
  void bound(const kv_op &op) {
    const bool is_reverse = (op.flags & KV_REVERSE) != 0;
    scan_options.iterate_lower_bound = scan_options.iterate_upper_bound = nullptr;
    end.assign(kvdyno::value_of(op));
    if ((op.flags & KV_PREFIX) != 0 && !is_reverse) { /* the smallest key above all keys with the prefix */
      while (!end.empty() && end.back() == '\xff') end.pop_back();
      if (!end.empty()) end.back()++;
    }
    if (end.empty()) return;
    end_slice = end;
    (is_reverse ? scan_options.iterate_lower_bound : scan_options.iterate_upper_bound) = &end_slice;
  }

  uint32_t get_all(kv_op *ops, uint32_t count) {
    if (many.size() < count) many = std::vector<PinnableSlice>(count);
    keys.clear();
    families.clear();
    statuses.assign(count, rocksdb::Status());
    for (uint32_t i = 0; i < count; i++) {
      keys.push_back(slice(kvdyno::key_of(ops[i])));
      families.push_back(column_of(ops[i]));
    }
    db.MultiGet(read_options, count, families.data(), keys.data(), many.data(), statuses.data());
    for (uint32_t i = 0; i < count; i++) ops[i].status = found(ops[i], statuses[i], many[i]);
    return KV_OK;
  }

  /* A transaction with gets: they read one snapshot, overlaid with the transaction's own writes so far. */
  uint32_t read_and_write(kv_op *ops, uint32_t count) {
    rocksdb::ManagedSnapshot snapshot(&db);
    rocksdb::ReadOptions options;
    options.snapshot = snapshot.snapshot();
    indexed.Clear();
    for (uint32_t i = 0; i < count; i++) {
      ops[i].status = KV_OK;
      if (ops[i].kind != KV_GET) {
        add(indexed, ops[i]);
        continue;
      }
      const Slice key = slice(kvdyno::key_of(ops[i]));
      const auto status = indexed.GetFromBatchAndDB(&db, options, column_of(ops[i]), key, &pinned);
      ops[i].status = found(ops[i], status, pinned);
      if (ops[i].status != KV_SHORT) continue;
      for (uint32_t other = 0; other < count; other++)
        if (other != i) ops[other].status = KV_ABORTED;
      return KV_OK;
    }
    check(db.Write(write_options, indexed.GetWriteBatch()), "write");
    return KV_OK;
  }

  rocksdb::DB &db;
  const std::vector<rocksdb::ColumnFamilyHandle *> &columns;
  const rocksdb::WriteOptions write_options;
  const rocksdb::ReadOptions read_options;
  rocksdb::ReadOptions scan_options;
  kvdyno::Held<Cursor> held; /* it reads up to `end` */
  PinnableSlice pinned;
  rocksdb::WriteBatch batch;
  rocksdb::WriteBatchWithIndex indexed;
  std::string tagged, end; /* they keep their capacity from op to op */
  Slice end_slice;
  std::vector<PinnableSlice> many;
  std::vector<Slice> keys;
  std::vector<rocksdb::ColumnFamilyHandle *> families;
  std::vector<rocksdb::Status> statuses;
};

}  // namespace engine_rocksdb

using engine_rocksdb::Rocksdb;
KVDYNO_EXPORT(Rocksdb)
