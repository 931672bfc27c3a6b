/* One thread's access to a Kyoto Cabinet database: single ops, scans with one cursor, joined groups and transactions.
 */
#ifndef KYOTOCABINET_SESSION_H
#define KYOTOCABINET_SESSION_H

#include "visit.h"

#include <kchashdb.h>

#include <cerrno>
#include <memory>
#include <mutex>

namespace kyoto {

using kyotocabinet::BasicDB;

/* The mode of writes. */
struct Writing {
  bool is_logged = false, is_synced = false; /* each is a transaction; each is synced */
  bool has_group_log = false;                /* atomic groups are transactions even if single writes are not */
  std::mutex lock;

  /* If the engine does more for a write than apply it, a write concurrent with a transaction would skip that. */
  std::unique_lock<std::mutex> guard() {
    if (is_logged || is_synced) return std::unique_lock<std::mutex>(lock);
    return {};
  }
};

/* Throws the last error of this thread. */
[[noreturn]] inline void fail(const BasicDB &db, const char *what) {
  const BasicDB::Error error = db.error();
  const bool is_full = error.code() == BasicDB::Error::SYSTEM && errno == ENOSPC;
  throw kvdyno::Failure(is_full ? KV_FULL : KV_ERROR, std::string(what) + ": " + error.name() + ": " + error.message());
}

template <class Database, bool is_ordered>
class Session {
 public:
  Session(Database &db, Writing &writing) : db(db), writing(writing), cursor(db.cursor()) {}

  uint32_t get(kv_op &op) {
    accept(op, "get", false);
    return op.status;
  }
  uint32_t put(kv_op &op) { return write(op, "put"); }
  uint32_t remove(kv_op &op) { return write(op, "delete"); }
  uint32_t merge(kv_op &op) { return row::checked(op, write(op, "merge")); }
  uint32_t scan(kv_op &op);
  uint32_t group(kv_op *ops, uint32_t count, bool is_atomic);

 private:
  static const char *key(const kv_op &op) { return op.key_length != 0 ? reinterpret_cast<const char *>(op.key) : ""; }

  void accept(kv_op &op, const char *what, bool is_write) {
    Visitor one([&](row::Found old) { return row::act(op, old, scratch); });
    if (!db.accept(key(op), op.key_length, &one, is_write)) fail(db, what);
  }
  uint32_t write(kv_op &op, const char *what) {
    const auto lock = writing.guard();
    accept(op, what, true);
    return op.status;
  }
  bool move(const kv_op &op, const kv_place &place);

  Database &db;
  Writing &writing;
  const std::unique_ptr<typename Database::Cursor> cursor;
  row::Scratch scratch;
  std::vector<std::string> keys;
};

/* Moves to the start of the scan. */
template <class Database, bool is_ordered>
bool Session<Database, is_ordered>::move(const kv_op &op, const kv_place &place) {
  const char *from = reinterpret_cast<const char *>(place.key);
  if (!is_ordered) {
    if ((op.flags & KV_RESUME) == 0) return cursor->jump();
    if (cursor->jump(key(op), op.key_length)) return true;
    throw kvdyno::Failure("scan: cannot resume: the last row read was deleted, and the rows are unordered");
  }
  if ((op.flags & KV_REVERSE) == 0) return place.length != 0 ? cursor->jump(from, place.length) : cursor->jump();
  return place.length != 0 ? cursor->jump_back(from, place.length) : cursor->jump_back();
}

template <class Database, bool is_ordered>
uint32_t Session<Database, is_ordered>::scan(kv_op &op) {
  std::string space(op.value_length, 0);
  const kv_place place = kv_scan_place(&op, reinterpret_cast<uint8_t *>(space.data()));
  row::Rows rows(op, place, is_ordered);
  Rows visitor(rows);
  const bool is_upward = (op.flags & KV_REVERSE) == 0;
  bool is_there = move(op, place);
  while (is_there && !rows.is_over())
    is_there = cursor->accept(&visitor, false, is_upward) && (is_upward || rows.is_over() || cursor->step_back());
  if (!is_there && db.error().code() != BasicDB::Error::NOREC) fail(db, "scan");
  return rows.status();
}

/* A group is one bulk call, which holds the locks of all its rows, inside a transaction if one is required. */
template <class Database, bool is_ordered>
uint32_t Session<Database, is_ordered>::group(kv_op *ops, uint32_t count, bool is_atomic) {
  const row::Needs needs(ops, count, is_atomic);
  if (needs.has_scans) return KV_NOT_RUN;
  keys.resize(needs.is_undoable ? 2 * count : count);
  for (uint32_t i = 0; i < count; i++) keys[i].assign(key(ops[i]), ops[i].key_length);
  for (size_t i = count; i < keys.size(); i++) keys[i] = keys[2 * count - 1 - i];
  row::Ops group(ops, count, needs.is_undoable, scratch);
  Visitor visitor([&](row::Found old) { return group.next(old); });
  const auto lock = needs.is_writing ? writing.guard() : std::unique_lock<std::mutex>();
  const bool is_transaction = needs.is_writing && (lock.owns_lock() || (is_atomic && writing.has_group_log));
  if (is_transaction && !db.begin_transaction(writing.is_synced)) fail(db, "begin");
  const bool is_done = db.accept_bulk(keys, &visitor, needs.is_writing);
  if (is_transaction && !db.end_transaction(is_done)) fail(db, "commit");
  if (!is_done) fail(db, "group");
  if (group.culprit() != nullptr) return row::checked(*group.culprit(), group.culprit()->status);
  return KV_OK;
}

}  // namespace kyoto

#endif
