/* LevelDB's driver against a hand-written loop on the same leveldb::DB. */
#include "../../engines/leveldb/driver.cc"
#include "fidelity.h"

namespace {

struct Hand {
  leveldb::DB *db;
  leveldb::ReadOptions read_options;
  leveldb::WriteOptions write_options;
  std::string found;
};

void *begin(kv_database *database) {
  Hand *hand = new Hand();
  hand->db = reinterpret_cast<Leveldb *>(database)->db.get();
  return hand;
}

void end(void *state) { delete static_cast<Hand *>(state); }

Slice key_of(const fidelity_op *op) { return Slice(reinterpret_cast<const char *>(op->key), KEY_BYTES); }

void put(void *state, fidelity_block *block) {
  Hand &hand = *static_cast<Hand *>(state);
  FIDELITY_EACH(op, block) {
    const Slice value(reinterpret_cast<const char *>(op->value), VALUE_BYTES);
    fidelity_check(hand.db->Put(hand.write_options, key_of(op), value).ok(), "put");
  }
}

void get(void *state, fidelity_block *block) {
  Hand &hand = *static_cast<Hand *>(state);
  FIDELITY_EACH(op, block) {
    fidelity_check(hand.db->Get(hand.read_options, key_of(op), &hand.found).ok(), "get");
    fidelity_check(hand.found.size() <= VALUE_BYTES, "get: too long");
    memcpy(op->out, hand.found.data(), hand.found.size());
    op->length = hand.found.size();
  }
}

void scan(void *state, fidelity_block *block) {
  Hand &hand = *static_cast<Hand *>(state);
  FIDELITY_EACH(op, block) {
    std::unique_ptr<leveldb::Iterator> iterator(hand.db->NewIterator(hand.read_options));
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
  static const fidelity_hand by_hand = {"leveldb", KV_PROCESS, {{nullptr, nullptr}}, begin, put, get, scan, end};
  return fidelity_main(argc, argv, &by_hand);
}
