/* KVDK's lists, whose names are separate from those of strings, and scans of its hashes. */
#include "database.h"

namespace kvdyno_kvdk {
namespace {

/* The position after the last delivered row: at its iterator if that is still there, otherwise searched from the start.
 */
bool resume(kv_session *session, const kv_op *op, const Target &target, const std::string &name) {
  HashPlace &place = session->place;
  const std::string key(reinterpret_cast<const char *>(op->key), op->key_length);
  if (place.is_behind(target.collection, key)) return true;
  for (place.begin(target.collection); place.stands(); place.iterator->Next())
    if (name + place.iterator->Key() == key) return true; /* the row writer skips this one */
  return false;
}

}  // namespace

uint32_t scan_hash(kv_session *session, kv_op *op, kv_batch *batch) {
  return guarded(
      [&]() -> uint32_t {
        Target target;
        const uint32_t status = target_of(session, op, batch, &target);
        if (status != KV_OK) return status;
        HashPlace &place = session->place;
        const char *key_bytes = reinterpret_cast<const char *>(op->key);
        const std::string name(key_bytes, target.key.data() - key_bytes);
        if ((op->flags & KV_RESUME) == 0) {
          place.begin(target.collection);
        } else if (!resume(session, op, target, name)) {
          return kv_fail(batch, op, KV_ERROR, "scan: cannot resume: the last row read was deleted");
        }
        kv_rows rows = kv_rows_begin(op);
        for (; place.stands(); place.iterator->Next()) {
          const std::string key = name + place.iterator->Key();
          if (kv_rows_is_beyond(op, key.data(), key.size())) continue; /* unordered: others may follow */
          const std::string value = (op->flags & KV_KEYS) != 0 ? std::string() : place.iterator->Value();
          const uint32_t before = op->rows;
          const bool goes_on = kv_rows_push(&rows, key.data(), key.size(), value.data(), value.size()) != 0;
          if (op->rows != before) place.last = key;
          if (!goes_on) break;
        }
        if (!place.stands()) place.leave(); /* otherwise it may be resumed after the buffer or the limit */
        return rows.status;
      },
      [&](const char *text) { return kv_fail(batch, op, KV_ERROR, "scan: %s", text); });
}

uint32_t push(kv_session *session, kv_op *op, kv_batch *batch) {
  return guarded(
      [&]() -> uint32_t {
        Target target;
        const uint32_t status = target_of(session, op, batch, &target);
        if (status != KV_OK) return status;
        Status said = session->engine.ListPushBack(target.key, target.value);
        if (said == Status::NotFound) { /* the first element of a list */
          said = session->engine.ListCreate(target.key);
          if (said == Status::Ok || said == Status::Existed)
            said = session->engine.ListPushBack(target.key, target.value);
        }
        return status_of(said, op, batch, "push");
      },
      [&](const char *text) { return kv_fail(batch, op, KV_ERROR, "push: %s", text); });
}

uint32_t pop(kv_session *session, kv_op *op, kv_batch *batch) {
  return guarded(
      [&]() -> uint32_t {
        Target target;
        const uint32_t status = target_of(session, op, batch, &target);
        if (status != KV_OK) return status;
        Status said = session->engine.ListPopFront(target.key, &session->value);
        if (said != Status::Ok) return status_of(said, op, batch, "pop");
        const uint32_t delivered = kv_deliver(op, session->value.data(), session->value.size());
        if (delivered == KV_OK) return KV_OK;
        said = session->engine.ListPushFront(target.key, session->value); /* too large for the buffer: put it back */
        return said == Status::Ok ? delivered : status_of(said, op, batch, "pop");
      },
      [&](const char *text) { return kv_fail(batch, op, KV_ERROR, "pop: %s", text); });
}

}  // namespace kvdyno_kvdk
