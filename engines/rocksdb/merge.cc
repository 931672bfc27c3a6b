/* RocksDB's merge operator of this driver: adds little-endian numbers of 64 bits, and appends bytes. */
#include "database.h"

#include <rocksdb/merge_operator.h>

namespace engine_rocksdb {

namespace {

using rocksdb::Slice;

/* A value that is not eight bytes long counts as 0, as with RocksDB's own operator for numbers: when the operator sees
 * a value, the merge was acknowledged long before. */
uint64_t number_of(const Slice &bytes) {
  uint64_t number = 0;
  if (bytes.size() != sizeof(number)) return 0;
  memcpy(&number, bytes.data(), sizeof(number));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  number = __builtin_bswap64(number);
#endif
  return number;
}

void write_number(uint64_t number, std::string *bytes) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  number = __builtin_bswap64(number);
#endif
  bytes->append(reinterpret_cast<const char *>(&number), sizeof(number));
}

Slice operand_of(const Slice &tagged) { return Slice(tagged.data() + 1, tagged.size() - 1); }

class AddOrAppend : public rocksdb::MergeOperator {
 public:
  const char *Name() const override { return "kvdyno.add-or-append"; }

  bool FullMergeV2(const MergeOperationInput &in, MergeOperationOutput *out) const override {
    std::string &value = out->new_value; /* which is not always empty */
    value.clear();
    if (in.existing_value != nullptr) value.assign(in.existing_value->data(), in.existing_value->size());
    for (const Slice &tagged : in.operand_list) {
      if (tagged.empty()) return false;
      const Slice operand = operand_of(tagged);
      if (tagged[0] == kAppend) {
        value.append(operand.data(), operand.size());
      } else {
        const uint64_t sum = number_of(value) + number_of(operand);
        value.clear();
        write_number(sum, &value);
      }
    }
    return true;
  }

  bool PartialMerge(const Slice &, const Slice &left, const Slice &right, std::string *merged,
                    rocksdb::Logger *) const override {
    if (left.empty() || right.empty() || left[0] != right[0]) return false;
    if (left[0] == kAppend) {
      merged->assign(left.data(), left.size());
      merged->append(right.data() + 1, right.size() - 1);
    } else {
      merged->assign(1, kAdd);
      write_number(number_of(operand_of(left)) + number_of(operand_of(right)), merged);
    }
    return true;
  }
};

}  // namespace

std::shared_ptr<rocksdb::MergeOperator> merge_operator() { return std::make_shared<AddOrAppend>(); }

}  // namespace engine_rocksdb
