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
    process(op, "get", false);
    return op.status;
  }
  uint32_t put(kv_op &op) { return write(op, "put"); }
  uint32_t remove(kv_op &op) { return write(op, "delete"); }
  uint32_t merge(kv_op &op) { return row::checked(op, write(op, "merge")); }
  uint32_t scan(kv_op &op);
  uint32_t group(kv_op *ops, uint32_t count, bool is_atomic);

 private:
  void process(kv_op &op, const char *what, bool is_write) {
    Processor one([&](row::Found old) { return row::act(op, old, scratch); });
    check(db.Process(kvdyno::key_of(op), &one, is_write), what);
  }
  uint32_t write(kv_op &op, const char *what) {
    process(op, what, true);
    if (op.status == KV_OK) synchronize();
    return op.status;
  }
  void synchronize() {
    if (commit != Commit::kNothing) check(db.Synchronize(commit == Commit::kSynchronizeHard), "commit");
  }
  bool move(const kv_op &op, const kv_place &place);
  bool move_down(std::string_view from);

  Database &db;
  const Commit commit;
  const std::unique_ptr<tkrzw::DBM::Iterator> iterator;
  row::Scratch scratch;
  std::vector<std::pair<std::string_view, DBM::RecordProcessor *>> keys;
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
  row::Rows rows(op, place, is_ordered);
  Rows processor(rows);
  const bool is_upward = (op.flags & KV_REVERSE) == 0;
  tkrzw::Status status;
  const bool is_there = move(op, place);
  while (is_there && !rows.is_over()) {
    status = iterator->Process(&processor, false);
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
  const row::Needs needs(ops, count, is_atomic);
  if (needs.has_scans) return KV_NOT_RUN;
  row::Ops group(ops, count, needs.is_undoable, scratch);
  Processor processor([&](row::Found old) { return group.next(old); });
  keys.clear();
  for (uint32_t i = 0; i < count; i++) keys.emplace_back(kvdyno::key_of(ops[i]), &processor);
  for (uint32_t i = count; needs.is_undoable && i > 0; i--) keys.push_back(keys[i - 1]);
  check(db.ProcessMulti(keys, needs.is_writing), "group");
  if (group.culprit() != nullptr) return row::checked(*group.culprit(), group.culprit()->status);
  if (needs.is_writing) synchronize();
  return KV_OK;
}

}  // namespace tkrzw_driver

#endif
