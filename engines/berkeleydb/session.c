/* Sessions of Berkeley DB, transactions over several calls, and the texts of failures. */
#include "berkeleydb.h"

/* The status and text of an op that failed with `code`. */
uint32_t fail(const kv_op *op, kv_batch *batch, int code) {
  if (code == DB_LOCK_DEADLOCK || code == DB_LOCK_NOTGRANTED) return KV_CONFLICT;
  if (code == NO_KEYSPACE) return kv_fail(batch, op, KV_UNSUPPORTED, "there is no keyspace %u", op->keyspace);
  if (code == INDEX_WRITTEN)
    return kv_fail(batch, op, KV_UNSUPPORTED, "keyspace %u is an index: its rows follow the primary's", op->keyspace);
  if (code == VALUE_TOO_SHORT)
    return kv_fail(batch, op, KV_TOO_LARGE, "a value of %u bytes ends before the bytes of its indexes",
                   op->value_length);
  if (code == KEY_REFUSED)
    return kv_fail(batch, op, KV_TOO_LARGE,
                   "a key of the hash table has at most a quarter of a page, and at most %d bytes", HASH_KEY_MAX);
  if (code == PLACE_LOST)
    return kv_fail(batch, op, KV_ABORTED, "the scan cannot resume: the last row read was deleted");
  if (code == KEY_TOO_LONG) return kv_fail(batch, op, KV_TOO_LARGE, "a key in a scan has at most %d bytes", KEY_ROOM);
  return kv_fail(batch, op, code == ENOSPC || code == EDQUOT ? KV_FULL : KV_ERROR, "%s", explain(code));
}

uint32_t begin_session(kv_database *database, const kv_arena *arena, kv_session **session, char *error) {
  kv_session *made = calloc(1, sizeof(kv_session));
  int code = made == NULL ? ENOMEM : 0;
  (void)arena;
  if (code == 0) {
    made->database = database;
    code = make_room(made, 2 * (uint64_t)database->page_size);
  }
  pthread_mutex_lock(&database->sessions_lock);
  if (code == 0 && database->is_single && database->whole == NULL)
    code = database->environment->txn_begin(database->environment, NULL, &database->whole, 0);
  if (code == 0) database->sessions++;
  pthread_mutex_unlock(&database->sessions_lock);
  if (code == 0) return *session = made, KV_OK;
  if (made != NULL) free(made->bulk);
  free(made);
  return kv_fail_call(error, KV_ERROR, "session: %s", explain(code));
}

/* A transaction over several calls of this session. */
uint32_t control(kv_session *session, kv_op *op, kv_batch *batch) {
  const kv_database *database = session->database;
  DB_TXN *transaction = session->open;
  const int code = let_go(session);
  if (code != 0 || op->kind == KV_DROP) return status_of(op, batch, code);
  if ((op->kind == KV_BEGIN) == (transaction != NULL))
    return kv_fail(batch, op, KV_ERROR,
                   transaction != NULL ? "a transaction is already open" : "no transaction is open");
  if (op->kind == KV_BEGIN)
    return status_of(op, batch,
                     database->environment->txn_begin(database->environment, database->whole, &session->open, 0));
  session->open = NULL;
  return status_of(op, batch,
                   op->kind == KV_COMMIT ? transaction->commit(transaction, 0) : transaction->abort(transaction));
}

uint32_t end_session(kv_session *session, char *error) {
  kv_database *database = session->database;
  DB_TXN *whole = NULL;
  const int closed = let_go(session);
  int code = session->open != NULL ? session->open->abort(session->open) : 0;
  if (code == 0) code = closed;
  pthread_mutex_lock(&database->sessions_lock);
  if (--database->sessions == 0) whole = database->whole, database->whole = NULL;
  pthread_mutex_unlock(&database->sessions_lock);
  if (whole != NULL) {
    const int ended = whole->commit(whole, 0);
    if (code == 0) code = ended;
  }
  free(session->bulk);
  free(session);
  return code == 0 ? KV_OK : kv_fail_call(error, KV_ERROR, "end of the transaction: %s", explain(code));
}
