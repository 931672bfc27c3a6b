/* RocksDB's driver against a hand-written loop on the same rocksdb::DB. */
#include "../../engines/rocksdb/driver.cc"
#include "fidelity.h"

namespace {

using rocksdb::Slice;

struct Hand {
  rocksdb::DB *db;
  rocksdb::ColumnFamilyHandle *column;
  rocksdb::ReadOptions read_options;
  rocksdb::WriteOptions write_options;
  rocksdb::PinnableSlice pinned;
};

void *begin(kv_database *database) {
  const Rocksdb *driver = reinterpret_cast<Rocksdb *>(database);
  Hand *hand = new Hand();
  hand->db = driver->db.get();
  hand->column = hand->db->DefaultColumnFamily();
  hand->write_options = driver->write_options;
  return hand;
}

void end(void *state) { delete static_cast<Hand *>(state); }

Slice key_of(const fidelity_op *op) { return Slice(reinterpret_cast<const char *>(op->key), KEY_BYTES); }

void put(void *state, fidelity_block *block) {
  Hand &hand = *static_cast<Hand *>(state);
  FIDELITY_EACH(op, block) {
    const Slice value(reinterpret_cast<const char *>(op->value), VALUE_BYTES);
    fidelity_check(hand.db->Put(hand.write_options, hand.column, key_of(op), value).ok(), "put");
  }
}

void get(void *state, fidelity_block *block) {
  Hand &hand = *static_cast<Hand *>(state);
  FIDELITY_EACH(op, block) {
    fidelity_check(hand.db->Get(hand.read_options, hand.column, key_of(op), &hand.pinned).ok(), "get");
    fidelity_check(hand.pinned.size() <= VALUE_BYTES, "get: too long");
    memcpy(op->out, hand.pinned.data(), hand.pinned.size());
    op->length = hand.pinned.size();
    hand.pinned.Reset();
  }
}

void scan(void *state, fidelity_block *block) {
  Hand &hand = *static_cast<Hand *>(state);
  FIDELITY_EACH(op, block) {
    std::unique_ptr<rocksdb::Iterator> iterator(hand.db->NewIterator(hand.read_options, hand.column));
    iterator->Seek(key_of(op));
    for (int row = 0; iterator->Valid();) {
      const Slice key = iterator->key(), value = iterator->value();
      fidelity_row(op, key.data(), key.size(), value.data(), value.size());
      if (++row == SCAN_ROWS) break;
      iterator->Next();
    }
  }
}

}  // namespace

int main(int argc, char **argv) {
  static const fidelity_hand by_hand = {"rocksdb", KV_PROCESS, {{nullptr, nullptr}}, begin, put, get, scan, end};
  return fidelity_main(argc, argv, &by_hand);
}
