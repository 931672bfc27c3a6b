/* What an op does to a row while Kyoto Cabinet passes the row to a visitor, under its lock: read, change, undo. */
#ifndef KYOTOCABINET_VISIT_H
#define KYOTOCABINET_VISIT_H

#include "driver.hpp"

#include <kcdb.h>

#include <optional>
#include <vector>

namespace kyoto {

using Visitor = kyotocabinet::DB::Visitor;

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

/* The result of a merge with `old` (null if absent); a visitor must not throw, so it reports by a status. */
inline const char *merge(kv_op &op, const char *old, size_t old_size, size_t *size, Scratch &scratch) {
  if ((op.flags & KV_APPEND) != 0) {
    scratch.joined.assign(old != nullptr ? old : "", old_size);
    scratch.joined.append(kvdyno::value_of(op));
    *size = scratch.joined.size();
    return scratch.joined.data();
  }
  uint64_t stored = 0, operand;
  if (op.value_length != sizeof(operand) || (old != nullptr && old_size != sizeof(stored))) {
    op.status = op.value_length != sizeof(operand) ? KV_TOO_LARGE : KV_ERROR;
    return Visitor::NOP;
  }
  memcpy(&operand, op.value, sizeof(operand));
  if (old != nullptr) memcpy(&stored, old, sizeof(stored));
  scratch.sum = little(little(stored) + little(operand));
  *size = sizeof(scratch.sum);
  return reinterpret_cast<const char *>(&scratch.sum);
}

/* Applies the op to the row whose value is `old` (null if absent); returns what a visitor returns, the row's new state.
 */
inline const char *act(kv_op &op, const char *old, size_t old_size, size_t *size, Scratch &scratch) {
  op.status = KV_OK;
  switch (op.kind) {
  case KV_GET:
    op.status = old != nullptr ? kv_deliver(&op, old, old_size) : static_cast<uint32_t>(KV_NOT_FOUND);
    return Visitor::NOP;
  case KV_DELETE:
    if (old != nullptr) return Visitor::REMOVE;
    op.status = KV_NOT_FOUND;
    return Visitor::NOP;
  case KV_PUT:
    if (old != nullptr && (op.flags & KV_NEW) != 0) {
      op.status = KV_EXISTS;
      return Visitor::NOP;
    }
    *size = op.value_length;
    return op.value != nullptr ? reinterpret_cast<const char *>(op.value) : "";
  default:
    return merge(op, old, old_size, size, scratch);
  }
}

/* One op. */
class One final : public Visitor {
 public:
  One(kv_op &op, Scratch &scratch) : op(op), scratch(scratch) {}

 private:
  const char *visit_full(const char *, size_t, const char *value, size_t length, size_t *size) override {
    return act(op, value, length, size, scratch);
  }
  const char *visit_empty(const char *, size_t, size_t *size) override { return act(op, nullptr, 0, size, scratch); }

  kv_op &op;
  Scratch &scratch;
};

/* The ops of a group, in their order. If some may fail and it is all or nothing, the engine gets the keys twice,
 * the second time in reverse: then the rows are restored if one has failed, under the same locks. */
class Group final : public Visitor {
 public:
  Group(kv_op *ops, uint32_t count, bool is_undoable, Scratch &scratch)
      : ops(ops), count(count), scratch(scratch), before(is_undoable ? count : 0) {}
  /* The op that failed, if one did. */
  const kv_op *culprit() const { return failed; }

 private:
  const char *visit_full(const char *, size_t, const char *value, size_t length, size_t *size) override {
    return visit(value, length, size);
  }
  const char *visit_empty(const char *, size_t, size_t *size) override { return visit(nullptr, 0, size); }

  const char *visit(const char *old, size_t old_size, size_t *size) {
    const uint32_t at = visited++;
    if (at >= count) return undo(2 * count - 1 - at, size);
    if (before.empty()) return act(ops[at], old, old_size, size, scratch);
    if (failed != nullptr) return NOP;
    if (old != nullptr) before[at].emplace(old, old_size);
    const char *becomes = act(ops[at], old, old_size, size, scratch);
    if (ops[at].status > KV_EXISTS) failed = &ops[at];
    changed = failed != nullptr ? changed : at + 1;
    return becomes;
  }
  const char *undo(uint32_t at, size_t *size) {
    if (failed == nullptr || at >= changed || ops[at].kind == KV_GET) return NOP;
    if (!before[at]) return REMOVE;
    *size = before[at]->size();
    return before[at]->data();
  }

  kv_op *const ops;
  const uint32_t count;
  Scratch &scratch;
  std::vector<std::optional<std::string>> before;
  uint32_t visited = 0, changed = 0; /* ops visited; ops done before one failed */
  const kv_op *failed = nullptr;
};

/* Pushes rows of a scan. In reverse, rows that another thread's delete has moved the cursor to are skipped; without an
 * order, rows that lack the prefix are. */
class Rows final : public Visitor {
 public:
  Rows(kv_op &op, const kv_place &place, bool is_ordered)
      : op(op), rows(kv_rows_begin(&op)), last(place), is_ordered(is_ordered) {}
  bool is_over() const { return is_done; }
  uint32_t status() const { return rows.status; }

 private:
  const char *visit_full(const char *key, size_t key_length, const char *value, size_t length, size_t *) override {
    if (!is_ordered && kv_rows_is_beyond(&op, key, key_length)) return NOP;
    const bool is_downward = (op.flags & KV_REVERSE) != 0;
    if (is_downward && (last.length != 0 || op.rows != 0)) {
      const int order = kv_compare(key, key_length, last.key, last.length);
      if (order > 0 || (order == 0 && last.is_exclusive)) return NOP;
    }
    const uint64_t at = op.length;
    is_done = !kv_rows_push(&rows, key, key_length, value, length);
    if (is_downward && op.length != at) last = {op.out + at + 8, static_cast<uint32_t>(key_length), 1};
    return NOP;
  }
  const char *visit_empty(const char *, size_t, size_t *) override { return NOP; }

  kv_op &op;
  kv_rows rows;
  kv_place last; /* reverse: rows from here on were delivered */
  const bool is_ordered;
  bool is_done = false;
};

}  // namespace kyoto

#endif
