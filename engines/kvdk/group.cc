/* Transactions of KVDK: writes alone as one batch, with reads as KVDK's transaction. */
#include <unistd.h>

#include "database.h"

namespace kvdyno_kvdk {
namespace {

/* The number of retries of a transaction that conflicts with another. */
constexpr uint32_t tries = 16;

template <Kind kind>
void put_into(kvdk::WriteBatch &batch, const Target &at) {
  if (kind == strings) batch.StringPut(at.key, at.value);
  if (kind == hashes) batch.HashPut(at.collection, at.key, at.value);
  if (kind == sorted) batch.SortedPut(at.collection, at.key, at.value);
}

template <Kind kind>
void delete_in(kvdk::WriteBatch &batch, const Target &at) {
  if (kind == strings) batch.StringDelete(at.key);
  if (kind == hashes) batch.HashDelete(at.collection, at.key);
  if (kind == sorted) batch.SortedDelete(at.collection, at.key);
}

template <Kind kind>
Status put_into(kvdk::Transaction &transaction, const Target &at) {
  return kind == strings  ? transaction.StringPut(at.key, at.value)
         : kind == hashes ? transaction.HashPut(at.collection, at.key, at.value)
                          : transaction.SortedPut(at.collection, at.key, at.value);
}

template <Kind kind>
Status delete_in(kvdk::Transaction &transaction, const Target &at) {
  return kind == strings  ? transaction.StringDelete(at.key)
         : kind == hashes ? transaction.HashDelete(at.collection, at.key)
                          : transaction.SortedDelete(at.collection, at.key);
}

template <Kind kind>
Status get_from(kvdk::Transaction &transaction, const Target &at, std::string *value) {
  return kind == strings  ? transaction.StringGet(at.key, value)
         : kind == hashes ? transaction.HashGet(at.collection, at.key, value)
                          : transaction.SortedGet(at.collection, at.key, value);
}

/* Finds an op's target, and creates the collection that its key names. */
uint32_t prepare(kv_session *session, kv_op *op, kv_batch *batch, Kind kind, Target *at) {
  const uint32_t status = target_of(session, op, batch, at);
  if (status != KV_OK || op->split == 0 || kind == strings) return status;
  return status_of(make_collection(session->database, kind, at->collection), op, batch, "collection");
}

/* Puts and deletes: all or nothing, also after a crash. */
template <Kind kind>
uint32_t write_batch(kv_session *session, kv_op *ops, uint32_t count, kv_batch *batch) {
  session->batch->Clear();
  for (uint32_t i = 0; i < count; i++) {
    Target at;
    const uint32_t status = prepare(session, &ops[i], batch, kind, &at);
    if (status != KV_OK) return status;
    if (ops[i].kind == KV_PUT) put_into<kind>(*session->batch, at);
    if (ops[i].kind == KV_DELETE) delete_in<kind>(*session->batch, at);
  }
  const Status said = session->engine.BatchWrite(session->batch);
  if (said != Status::Ok) return status_of(said, ops, batch, "batch");
  for (uint32_t i = 0; i < count; i++) ops[i].status = KV_OK;
  return KV_OK;
}

/* One op of a transaction; returns its status, or KVDK's status that ends the transaction. */
template <Kind kind>
Status run_one(kv_session *session, kv_op *op, const Target &at) {
  kvdk::Transaction &transaction = *session->transaction;
  op->status = KV_OK;
  if (op->kind == KV_DELETE) return delete_in<kind>(transaction, at);
  if (op->kind == KV_GET || (op->flags & KV_NEW) != 0) {
    const Status said = get_from<kind>(transaction, at, &session->value);
    const bool is_there = said == Status::Ok;
    if (!is_there && said != Status::NotFound && said != Status::Outdated) return said;
    if (op->kind == KV_GET) {
      op->status = is_there ? kv_deliver(op, session->value.data(), session->value.size()) : uint32_t{KV_NOT_FOUND};
      return Status::Ok;
    }
    if (is_there) {
      op->status = KV_EXISTS;
      return Status::Ok;
    }
  }
  return put_into<kind>(transaction, at);
}

/* All ops, once. `said` is Timeout if another transaction conflicts. */
template <Kind kind>
uint32_t run_transaction(kv_session *session, kv_op *ops, uint32_t count, kv_batch *batch, Status *said) {
  *said = Status::Ok;
  for (uint32_t i = 0; i < count; i++) {
    Target at;
    const uint32_t status = prepare(session, &ops[i], batch, kind, &at);
    if (status != KV_OK) return status;
    *said = run_one<kind>(session, &ops[i], at);
    if (*said == Status::Timeout) return KV_CONFLICT;
    if (*said != Status::Ok) return status_of(*said, &ops[i], batch, "transaction");
    if (ops[i].status == KV_SHORT) { /* nothing of it is done */
      for (uint32_t j = 0; j < count; j++)
        if (j != i) ops[j].status = KV_ABORTED;
      session->transaction->Rollback();
      return KV_OK;
    }
  }
  *said = session->transaction->Commit();
  if (*said == Status::Timeout) return KV_CONFLICT;
  return *said == Status::Ok ? uint32_t{KV_OK} : status_of(*said, ops, batch, "commit");
}

}  // namespace

template <Kind kind>
uint32_t group(kv_session *session, kv_op *ops, uint32_t count, int is_atomic, kv_batch *batch) {
  bool has_reads = false;
  if (!is_atomic)
    return KV_NOT_RUN; /* a batch is not faster, frees old versions later, and crashes when space runs out */
  for (uint32_t i = 0; i < count; i++) {
    const bool is_plain = ops[i].kind == KV_GET || ops[i].kind == KV_PUT || ops[i].kind == KV_DELETE;
    if (!is_plain || ops[i].limit != 0)
      return kv_fail(batch, &ops[i], KV_UNSUPPORTED,
                     "a transaction may have only gets, deletes and puts without a time to live");
    has_reads |= ops[i].kind == KV_GET || (ops[i].flags & KV_NEW) != 0;
  }
  const auto run = [&]() -> uint32_t {
    if (!has_reads) return write_batch<kind>(session, ops, count, batch);
    for (uint32_t attempt = 0;; attempt++) {
      Status said;
      const uint32_t status = run_transaction<kind>(session, ops, count, batch, &said);
      for (uint32_t i = 0; i < count; i++) ops[i].retries = attempt;
      if (status != KV_OK) session->transaction->Rollback();
      if (said != Status::Timeout) return status;
      usleep(1000); /* its locks are unfair: an immediate retry may block a waiting batch forever */
      if (attempt + 1 == tries) return status;
    }
  };
  const auto report = [&](const char *text) {
    session->transaction->Rollback();
    return kv_fail(batch, ops, KV_ERROR, "transaction: %s", text);
  };
  return guarded(run, report);
}

template kv_group_call group<strings>;
template kv_group_call group<hashes>;
template kv_group_call group<sorted>;

}  // namespace kvdyno_kvdk
