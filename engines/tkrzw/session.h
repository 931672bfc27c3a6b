/* One thread's access to a Tkrzw database: single ops, scans with one iterator, joined groups and transactions. */
#ifndef TKRZW_SESSION_H
#define TKRZW_SESSION_H

#include "last.h"
#include "process.h"

#include <memory>
#include <utility>

namespace tkrzw_driver {

/* The action after each commit. */
enum class Commit { kNothing, kSynchronize, kSynchronizeHard };

template <class Database, bool is_ordered>
class Session {
 public:
  Session(Database &db, Commit commit) : db(db), commit(commit), iterator(db.MakeIterator()) {}

  uint32_t get(kv_op &op) {
    One one(op, scratch);
    check(db.Process(kvdyno::key_of(op), &one, false), "get");
    return op.status;
  }
  uint32_t put(kv_op &op) { return write(op, "put"); }
  uint32_t remove(kv_op &op) { return write(op, "delete"); }
  uint32_t merge(kv_op &op) { return told(op, write(op, "merge")); }
  uint32_t scan(kv_op &op);
  uint32_t group(kv_op *ops, uint32_t count, bool is_atomic);

 private:
  uint32_t write(kv_op &op, const char *what) {
    One one(op, scratch);
    check(db.Process(kvdyno::key_of(op), &one, true), what);
    if (op.status == KV_OK) synchronize();
    return op.status;
  }
  void synchronize() {
    if (commit != Commit::kNothing) check(db.Synchronize(commit == Commit::kSynchronizeHard), "commit");
  }
  /* The status of an op that may be a merge: a failed merge needs a text. */
  static uint32_t told(const kv_op &op, uint32_t status) {
    if (op.kind != KV_MERGE || status == KV_OK) return status;
    throw kvdyno::Failure(status, "merge: the counter and the operand must have 8 bytes");
  }
  bool move(const kv_op &op, const kv_place &place);
  bool move_down(std::string_view from);

  Database &db;
  const Commit commit;
  const std::unique_ptr<tkrzw::DBM::Iterator> iterator;
  Scratch scratch;
  std::vector<std::pair<std::string_view, Processor *>> keys;
};

/* Moves to the start of the scan, or to the row above; whether there is a row. */
template <class Database, bool is_ordered>
bool Session<Database, is_ordered>::move(const kv_op &op, const kv_place &place) {
  const std::string_view from(reinterpret_cast<const char *>(place.key), place.length);
  if (is_ordered && (op.flags & KV_REVERSE) != 0) return move_down(from);
  if (is_ordered && !from.empty()) return check(iterator->Jump(from), "scan"), true;
  if ((op.flags & KV_RESUME) == 0) return check(iterator->First(), "scan"), true;
  if (iterator->Jump(kvdyno::key_of(op)) == tkrzw::Status::SUCCESS) return true;
  throw kvdyno::Failure("scan: cannot resume: the last row read was deleted, and the rows are unordered");
}

/* A reverse scan skips the row above its start. */
template <class Database, bool is_ordered>
bool Session<Database, is_ordered>::move_down(std::string_view from) {
  if (from.empty()) return move_to_last(*iterator);
  check(iterator->Jump(from), "scan");
  Standing standing;
  return stands(*iterator, standing) || move_to_last(*iterator);
}

template <class Database, bool is_ordered>
uint32_t Session<Database, is_ordered>::scan(kv_op &op) {
  std::string space(op.value_length, 0);
  const kv_place place = kv_scan_place(&op, reinterpret_cast<uint8_t *>(space.data()));
  Rows rows(op, place, is_ordered);
  const bool is_upward = (op.flags & KV_REVERSE) == 0;
  tkrzw::Status status;
  const bool is_there = move(op, place);
  while (is_there && !rows.is_over()) {
    status = iterator->Process(&rows, false);
    if (status == tkrzw::Status::SUCCESS && !rows.is_over())
      status = is_upward ? iterator->Next() : iterator->Previous();
    if (status != tkrzw::Status::SUCCESS) break;
  }
  if (status != tkrzw::Status::NOT_FOUND_ERROR) check(status, "scan");
  return rows.status();
}

/* A group is one ProcessMulti, which holds the locks of all its rows, and one commit. */
template <class Database, bool is_ordered>
uint32_t Session<Database, is_ordered>::group(kv_op *ops, uint32_t count, bool is_atomic) {
  bool is_writing = false, may_fail = false;
  for (uint32_t i = 0; i < count; i++) {
    if (ops[i].kind == KV_SCAN && is_atomic) throw kvdyno::Failure(KV_UNSUPPORTED, "a transaction may not have scans");
    if (ops[i].kind == KV_SCAN) return KV_NOT_RUN;
    is_writing |= ops[i].kind != KV_GET;
    may_fail |= ops[i].kind == KV_GET || ops[i].kind == KV_MERGE;
  }
  const bool is_undoable = is_atomic && may_fail;
  Group group(ops, count, is_undoable, scratch);
  keys.clear();
  for (uint32_t i = 0; i < count; i++) keys.emplace_back(kvdyno::key_of(ops[i]), &group);
  for (uint32_t i = count; is_undoable && i > 0; i--) keys.push_back(keys[i - 1]);
  check(db.ProcessMulti(keys, is_writing), "group");
  if (group.culprit() != nullptr) return told(*group.culprit(), group.culprit()->status);
  if (is_writing) synchronize();
  return KV_OK;
}

}  // namespace tkrzw_driver

#endif
