/* The visitors that Kyoto Cabinet passes rows to, under their locks. */
#ifndef KYOTOCABINET_VISIT_H
#define KYOTOCABINET_VISIT_H

#include "row.h"

#include <kcdb.h>

namespace kyoto {

/* A visitor whose `next` gets each row and returns its change. */
template <class Change>
class Visitor final : public kyotocabinet::DB::Visitor {
 public:
  explicit Visitor(Change next) : next(next) {}

 private:
  const char *visit_full(const char *, size_t, const char *value, size_t length, size_t *size) override {
    return becomes(next(std::string_view(value, length)), size);
  }
  const char *visit_empty(const char *, size_t, size_t *size) override { return becomes(next(row::Found()), size); }

  static const char *becomes(const row::Change &change, size_t *size) {
    if (change.what == row::Change::kNone) return NOP;
    if (change.what == row::Change::kRemove) return REMOVE;
    *size = change.value.size();
    return change.value.data();
  }

  Change next;
};

/* Pushes the rows of a scan. */
class Rows final : public kyotocabinet::DB::Visitor {
 public:
  explicit Rows(row::Rows &rows) : rows(rows) {}

 private:
  const char *visit_full(const char *key, size_t key_length, const char *value, size_t length, size_t *) override {
    rows.push({key, key_length}, {value, length});
    return NOP;
  }
  const char *visit_empty(const char *, size_t, size_t *) override { return NOP; }

  row::Rows &rows;
};

}  // namespace kyoto

#endif
