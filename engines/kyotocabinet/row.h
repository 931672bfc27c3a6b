/* What an op does to a row, for engines that call back with the row while they hold its lock: read, change, undo. Kyoto
 * Cabinet and Tkrzw, which are by one author, share it. */
#ifndef KVDYNO_ROW_H
#define KVDYNO_ROW_H

#include "driver.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace row {

/* A row's value, if the row exists. */
using Found = std::optional<std::string_view>;

/* What becomes of a row. */
struct Change {
  enum { kNone, kRemove, kSet } what = kNone;
  std::string_view value = {}; /* for kSet; its data are never null */
};

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

/* A merge with `old`. A callback must not throw, so it reports by a status: see `checked`. */
inline Change merge(kv_op &op, Found old, Scratch &scratch) {
  if ((op.flags & KV_APPEND) != 0) {
    scratch.joined.assign(old.value_or(""));
    return {Change::kSet, scratch.joined.append(kvdyno::value_of(op))};
  }
  uint64_t stored = 0, operand;
  if (op.value_length != sizeof(operand) || (old && old->size() != sizeof(stored))) {
    op.status = op.value_length != sizeof(operand) ? KV_TOO_LARGE : KV_ERROR;
    return {};
  }
  memcpy(&operand, op.value, sizeof(operand));
  if (old) memcpy(&stored, old->data(), sizeof(stored));
  scratch.sum = little(little(stored) + little(operand));
  return {Change::kSet, {reinterpret_cast<const char *>(&scratch.sum), sizeof(scratch.sum)}};
}

/* Applies the op to the row. */
inline Change act(kv_op &op, Found old, Scratch &scratch) {
  op.status = KV_OK;
  switch (op.kind) {
  case KV_GET:
    op.status = old ? kvdyno::deliver(op, *old) : static_cast<uint32_t>(KV_NOT_FOUND);
    return {};
  case KV_DELETE:
    if (old) return {Change::kRemove};
    op.status = KV_NOT_FOUND;
    return {};
  case KV_PUT:
    if (!old || (op.flags & KV_NEW) == 0)
      return {Change::kSet, op.value_length != 0 ? kvdyno::value_of(op) : std::string_view("", 0)};
    op.status = KV_EXISTS;
    return {};
  default:
    return merge(op, old, scratch);
  }
}

/* The status of an op that may be a merge: a failed merge needs a text. */
inline uint32_t checked(const kv_op &op, uint32_t status) {
  if (op.kind != KV_MERGE || status == KV_OK) return status;
  throw kvdyno::Failure(status, "merge: the counter and the operand must have 8 bytes");
}

/* What a group needs. */
struct Needs {
  bool is_writing = false, is_undoable = false, has_scans = false;
  Needs(const kv_op *ops, uint32_t count, bool is_atomic) {
    bool may_fail = false;
    for (uint32_t i = 0; i < count; i++) {
      has_scans |= ops[i].kind == KV_SCAN;
      is_writing |= ops[i].kind != KV_GET;
      may_fail |= ops[i].kind == KV_GET || ops[i].kind == KV_MERGE;
    }
    if (has_scans && is_atomic) throw kvdyno::Failure(KV_UNSUPPORTED, "a transaction may not have scans");
    is_undoable = is_atomic && may_fail;
  }
};

/* The ops of a group, in their order. If it is undoable, the engine gets the keys twice, the second time in reverse:
 * then the rows are restored if one op has failed, under the same locks. */
class Ops {
 public:
  Ops(kv_op *ops, uint32_t count, bool is_undoable, Scratch &scratch)
      : ops(ops), count(count), scratch(scratch), before(is_undoable ? count : 0) {}
  /* The op that failed, if one did. */
  const kv_op *culprit() const { return failed; }
  /* The change of the next key's row. */
  Change next(Found old) {
    const uint32_t at = visited++;
    if (at >= count) return undo(2 * count - 1 - at);
    if (before.empty()) return act(ops[at], old, scratch);
    if (failed != nullptr) return {};
    if (old) before[at].emplace(*old);
    const Change change = act(ops[at], old, scratch);
    if (ops[at].status > KV_EXISTS) failed = &ops[at];
    return change;
  }

 private:
  Change undo(uint32_t at) const {
    if (failed == nullptr || &ops[at] >= failed || ops[at].kind == KV_GET) return {};
    return before[at] ? Change{Change::kSet, *before[at]} : Change{Change::kRemove};
  }

  kv_op *const ops;
  const uint32_t count;
  Scratch &scratch;
  std::vector<std::optional<std::string>> before;
  uint32_t visited = 0;
  const kv_op *failed = nullptr;
};

/* Pushes the rows of a scan. In reverse, rows that another thread's delete has moved the cursor to are skipped; without
 * an order, rows that lack the prefix are. */
class Rows {
 public:
  Rows(kv_op &op, const kv_place &place, bool is_ordered)
      : op(op), rows(kv_rows_begin(&op)), last(place), is_ordered(is_ordered) {}
  bool is_over() const { return is_done; }
  uint32_t status() const { return rows.status; }
  void push(std::string_view key, std::string_view value) {
    if (!is_ordered && kv_rows_is_beyond(&op, key.data(), key.size())) return;
    const bool is_downward = (op.flags & KV_REVERSE) != 0;
    if (is_downward && (last.length != 0 || op.rows != 0)) {
      const int order = kv_compare(key.data(), key.size(), last.key, last.length);
      if (order > 0 || (order == 0 && last.is_exclusive)) return;
    }
    const uint64_t at = op.length;
    is_done = !kv_rows_push(&rows, key.data(), key.size(), value.data(), value.size());
    if (is_downward && op.length != at) last = {op.out + at + 8, static_cast<uint32_t>(key.size()), 1};
  }

 private:
  kv_op &op;
  kv_rows rows;
  kv_place last; /* reverse: rows from here on were delivered */
  const bool is_ordered;
  bool is_done = false;
};

}  // namespace row

#endif
