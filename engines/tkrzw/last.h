/* Finds the last row of a Tkrzw tree without the engine's own Last, which is wrong after a file was closed. */
#ifndef TKRZW_LAST_H
#define TKRZW_LAST_H

#include "process.h"

namespace tkrzw_driver {

/* Keeps the key that an iterator is at. */
struct Standing final : DBM::RecordProcessor {
  std::string key;
  std::string_view ProcessFull(std::string_view at, std::string_view) override { return key.assign(at), NOOP; }
};

/* Whether the iterator is at a row. */
inline bool stands(tkrzw::DBM::Iterator &iterator, Standing &standing) {
  const tkrzw::Status status = iterator.Process(&standing, false);
  if (status != tkrzw::Status::NOT_FOUND_ERROR) check(status, "scan");
  return status == tkrzw::Status::SUCCESS;
}

/* Moves the iterator to the last row; whether there is one. When a tree is opened, the engine uses the number of the
 * first leaf as that of the last (ParseMetadata in tkrzw_dbm_tree.cc, 1.0.25), so that Last, and JumpLower from a key
 * above all others, stop in the first leaf. This bisects the last key's bytes with Jump, until no row follows. */
inline bool move_to_last(tkrzw::DBM::Iterator &iterator) {
  std::string common; /* prefix of the last key */
  Standing greatest, next;
  const auto has_next = [&] { return iterator.Next() == tkrzw::Status::SUCCESS && stands(iterator, next); };
  check(iterator.Jump(""), "scan");
  if (!stands(iterator, greatest)) return false;
  bool is_last = !has_next();
  while (!is_last) {
    const size_t place = common.size();
    int low = greatest.key.size() > place ? static_cast<unsigned char>(greatest.key[place]) : -1, high = 255;
    while (low < high && !is_last) {
      const int middle = (low + high + 1) / 2;
      check(iterator.Jump(common + static_cast<char>(middle)), "scan");
      if (stands(iterator, greatest)) {
        if (greatest.key.compare(0, place, common) != 0)
          return move_to_last(iterator); /* a new row, above all others */
        low = static_cast<unsigned char>(greatest.key[place]);
        is_last = !has_next();
      } else {
        high = middle - 1;
      }
    }
    if (low < 0) break; /* no key is longer */
    common.push_back(static_cast<char>(low));
  }
  check(iterator.Jump(greatest.key), "scan");
  return true;
}

}  // namespace tkrzw_driver

#endif
