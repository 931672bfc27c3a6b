/* What an op does to a row while Tkrzw passes the row to a processor, under its lock: read, change, undo. */
#ifndef TKRZW_PROCESS_H
#define TKRZW_PROCESS_H

#include "driver.hpp"

#include <tkrzw_dbm.h>

#include <cerrno>
#include <optional>
#include <vector>

namespace tkrzw_driver {

using Processor = tkrzw::DBM::RecordProcessor;

inline void check(const tkrzw::Status &status, const char *what) {
  if (status == tkrzw::Status::SUCCESS) return;
  const std::string text = tkrzw::ToString(status);
  const bool is_full = text.find(strerror(ENOSPC)) != std::string::npos;
  throw kvdyno::Failure(is_full ? KV_FULL : KV_ERROR, std::string(what) + ": " + text);
}

/* A row's value, if the row exists. */
using Found = std::optional<std::string_view>;

/* Memory that ops keep from call to call. */
struct Scratch {
  std::string joined; /* a value and the appended bytes */
  uint64_t sum;       /* little-endian */
};

inline uint64_t little(uint64_t number) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  return __builtin_bswap64(number);
#else
  return number;
#endif
}

/* The result of a merge with `old`; a processor must not throw, so it reports by a status. */
inline std::string_view merge(kv_op &op, Found old, Scratch &scratch) {
  if ((op.flags & KV_APPEND) != 0) {
    scratch.joined.assign(old.value_or(""));
    return scratch.joined.append(kvdyno::value_of(op));
  }
  uint64_t stored = 0, operand;
  if (op.value_length != sizeof(operand) || (old && old->size() != sizeof(stored))) {
    op.status = op.value_length != sizeof(operand) ? KV_TOO_LARGE : KV_ERROR;
    return Processor::NOOP;
  }
  memcpy(&operand, op.value, sizeof(operand));
  if (old) memcpy(&stored, old->data(), sizeof(stored));
  scratch.sum = little(little(stored) + little(operand));
  return {reinterpret_cast<const char *>(&scratch.sum), sizeof(scratch.sum)};
}

/* Applies the op to the row; returns what a processor returns, the row's new state. */
inline std::string_view act(kv_op &op, Found old, Scratch &scratch) {
  op.status = KV_OK;
  switch (op.kind) {
  case KV_GET:
    op.status = old ? kvdyno::deliver(op, *old) : static_cast<uint32_t>(KV_NOT_FOUND);
    return Processor::NOOP;
  case KV_DELETE:
    if (old) return Processor::REMOVE;
    op.status = KV_NOT_FOUND;
    return Processor::NOOP;
  case KV_PUT:
    if (!old || (op.flags & KV_NEW) == 0) return op.value_length != 0 ? kvdyno::value_of(op) : std::string_view("", 0);
    op.status = KV_EXISTS;
    return Processor::NOOP;
  default:
    return merge(op, old, scratch);
  }
}

/* One op. */
class One final : public Processor {
 public:
  One(kv_op &op, Scratch &scratch) : op(op), scratch(scratch) {}
  std::string_view ProcessFull(std::string_view, std::string_view value) override { return act(op, value, scratch); }
  std::string_view ProcessEmpty(std::string_view) override { return act(op, {}, scratch); }

 private:
  kv_op &op;
  Scratch &scratch;
};

/* The ops of a group, in their order. If some may fail and it is all or nothing, the engine gets the keys twice,
 * the second time in reverse: then the rows are restored if one has failed, under the same locks. */
class Group final : public Processor {
 public:
  Group(kv_op *ops, uint32_t count, bool is_undoable, Scratch &scratch)
      : ops(ops), count(count), scratch(scratch), before(is_undoable ? count : 0) {}
  std::string_view ProcessFull(std::string_view, std::string_view value) override { return process(value); }
  std::string_view ProcessEmpty(std::string_view) override { return process({}); }
  /* The op that failed, if one did. */
  const kv_op *culprit() const { return failed; }

 private:
  std::string_view process(Found old) {
    const uint32_t at = processed++;
    if (at >= count) return undo(2 * count - 1 - at);
    if (before.empty()) return act(ops[at], old, scratch);
    if (failed != nullptr) return NOOP;
    if (old) before[at].emplace(*old);
    const std::string_view becomes = act(ops[at], old, scratch);
    if (ops[at].status > KV_EXISTS) failed = &ops[at];
    return becomes;
  }
  std::string_view undo(uint32_t at) {
    if (failed == nullptr || &ops[at] >= failed || ops[at].kind == KV_GET) return NOOP;
    return before[at] ? std::string_view(*before[at]) : REMOVE;
  }

  kv_op *const ops;
  const uint32_t count;
  Scratch &scratch;
  std::vector<std::optional<std::string>> before;
  uint32_t processed = 0;
  const kv_op *failed = nullptr;
};

/* Pushes rows of a scan. In reverse, rows that another thread's delete has moved the iterator to are skipped;
 * without an order, rows that lack the prefix are. */
class Rows final : public Processor {
 public:
  Rows(kv_op &op, const kv_place &place, bool is_ordered)
      : op(op), rows(kv_rows_begin(&op)), last(place), is_ordered(is_ordered) {}
  bool is_over() const { return is_done; }
  uint32_t status() const { return rows.status; }
  std::string_view ProcessFull(std::string_view key, std::string_view value) override {
    if (!is_ordered && kv_rows_is_beyond(&op, key.data(), key.size())) return NOOP;
    const bool is_downward = (op.flags & KV_REVERSE) != 0;
    if (is_downward && (last.length != 0 || op.rows != 0)) {
      const int order = kv_compare(key.data(), key.size(), last.key, last.length);
      if (order > 0 || (order == 0 && last.is_exclusive)) return NOOP;
    }
    const uint64_t at = op.length;
    is_done = !kv_rows_push(&rows, key.data(), key.size(), value.data(), value.size());
    if (is_downward && op.length != at) last = {op.out + at + 8, static_cast<uint32_t>(key.size()), 1};
    return NOOP;
  }

 private:
  kv_op &op;
  kv_rows rows;
  kv_place last; /* reverse: rows from here on were delivered */
  const bool is_ordered;
  bool is_done = false;
};

}  // namespace tkrzw_driver

#endif
