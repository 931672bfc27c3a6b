/* Groups of Berkeley DB: one transaction each, retried after a deadlock, with its plain puts in one call. */
#include "berkeleydb.h"

/* Puts of one keyspace, in one call; DB_BUFFER_SMALL: the group is of another kind. */
static int put_all(kv_session *session, kv_op *ops, uint32_t count, DB_TXN *transaction) {
  const kv_database *database = session->database;
  const keyspace *space = ops->keyspace < database->keyspace_count ? &database->keyspaces[ops->keyspace] : NULL;
  uint64_t bytes = 8;
  DBT rows = {.flags = DB_DBT_USERMEM | DB_DBT_BULK};
  void *at;
  uint32_t i;
  if (space == NULL || space->secondary != NULL || count < 2) return DB_BUFFER_SMALL;
  for (i = 0; i < count; i++) {
    const int is_alike = ops[i].kind == KV_PUT && (ops[i].flags & KV_NEW) == 0 && ops[i].keyspace == ops->keyspace;
    if (!is_alike || ops[i].value_length < space->value_min || ops[i].key_length > database->key_max)
      return DB_BUFFER_SMALL;
    bytes += 16 + (uint64_t)ops[i].key_length + ops[i].value_length;
  }
  if (make_room(session, bytes) != 0) return ENOMEM;
  rows.data = session->bulk;
  rows.ulen = session->bulk_size;
  DB_MULTIPLE_WRITE_INIT(at, &rows);
  for (i = 0; i < count; i++) {
    DB_MULTIPLE_KEY_WRITE_NEXT(at, &rows, ops[i].key, ops[i].key_length, ops[i].value, ops[i].value_length);
    ops[i].status = KV_OK;
  }
  return space->db->put(space->db, transaction, &rows, NULL, DB_MULTIPLE_KEY);
}

/* Runs a group once, in a transaction that is undone if one of its ops, then the `culprit`, cannot be done. */
static int run_once(kv_session *session, kv_op *ops, uint32_t count, uint32_t *culprit) {
  const kv_database *database = session->database;
  DB_ENV *environment = database->environment;
  const uint32_t flags = database->is_snapshot && kv_only_reads(ops, count) ? DB_TXN_SNAPSHOT : 0;
  DB_TXN *transaction;
  int code = environment->txn_begin(environment, around(session), &transaction, flags);
  *culprit = 0;
  if (code != 0) return code;
  code = database->is_bulk_put ? put_all(session, ops, count, transaction) : DB_BUFFER_SMALL;
  if (code == DB_BUFFER_SMALL) {
    for (uint32_t i = 0; i < count; i++) {
      code = run_in(session, &ops[i], transaction);
      *culprit = i;
      if (!is_answer(code)) break;
      ops[i].status = status_of(&ops[i], NULL, code);
      code = 0;
    }
  }
  if (code == 0) return transaction->commit(transaction, 0);
  transaction->abort(transaction);
  return code;
}

/* Joined writes are one commit, whether or not they are a transaction. */
uint32_t run_group(kv_session *session, kv_op *ops, uint32_t count, int atomic, kv_batch *batch) {
  uint32_t culprit;
  int code;
  if (!atomic && kv_only_reads(ops, count)) return KV_NOT_RUN;
  code = let_go(session);
  if (code != 0) {
    for (uint32_t i = 0; i < count; i++) ops[i].status = KV_ABORTED;
    return ops->status = status_of(ops, batch, code), KV_OK;
  }
  do code = run_once(session, ops, count, &culprit);
  while (is_retried(session, ops, code));
  if (code == 0) return KV_OK;
  for (uint32_t i = 0; i < count; i++) ops[i].status = KV_ABORTED;
  ops[culprit].status = status_of(&ops[culprit], batch, code);
  return KV_OK;
}
