/* The processors that Tkrzw passes rows to, under their locks. */
#ifndef TKRZW_PROCESS_H
#define TKRZW_PROCESS_H

#include "../kyotocabinet/row.h"

#include <tkrzw_dbm.h>

#include <cerrno>

namespace tkrzw_driver {

using tkrzw::DBM;

inline void check(const tkrzw::Status &status, const char *what) {
  if (status == tkrzw::Status::SUCCESS) return;
  const std::string text = tkrzw::ToString(status);
  const bool is_full = text.find(strerror(ENOSPC)) != std::string::npos;
  throw kvdyno::Failure(is_full ? KV_FULL : KV_ERROR, std::string(what) + ": " + text);
}

/* A processor whose `next` gets each row and returns its change. */
template <class Change>
class Processor final : public DBM::RecordProcessor {
 public:
  explicit Processor(Change next) : next(next) {}
  std::string_view ProcessFull(std::string_view, std::string_view value) override { return becomes(next(value)); }
  std::string_view ProcessEmpty(std::string_view) override { return becomes(next(row::Found())); }

 private:
  static std::string_view becomes(const row::Change &change) {
    if (change.what == row::Change::kNone) return NOOP;
    return change.what == row::Change::kRemove ? REMOVE : change.value;
  }

  Change next;
};

/* Pushes the rows of a scan. */
class Rows final : public DBM::RecordProcessor {
 public:
  explicit Rows(row::Rows &rows) : rows(rows) {}
  std::string_view ProcessFull(std::string_view key, std::string_view value) override {
    rows.push(key, value);
    return NOOP;
  }

 private:
  row::Rows &rows;
};

}  // namespace tkrzw_driver

#endif
