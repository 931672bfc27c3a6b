/* The ops of a Tokyo Cabinet session; each write is a transaction if the level requires it. */
#include "cabinet.h"

static void lock_shared(kv_database *database) {
  if (database->is_shared) pthread_rwlock_rdlock(&database->lock);
}

static void lock_alone(kv_database *database) {
  if (database->is_shared) pthread_rwlock_wrlock(&database->lock);
}

static void unlock(kv_database *database) {
  if (database->is_shared) pthread_rwlock_unlock(&database->lock);
}

/* Fails an op with the last error of this thread. */
static uint32_t failed(kv_database *database, const kv_op *op, kv_batch *batch, const char *what) {
  const uint32_t status = errno == ENOSPC ? KV_FULL : KV_ERROR;
  return kv_fail(batch, op, status, "%s: %s", what, tcerrmsg(database->kind->error(database->db)));
}

typedef struct sum {
  uint64_t operand;
  bool is_wrong;
} sum;

static uint64_t little(uint64_t number) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  return __builtin_bswap64(number);
#else
  return number;
#endif
}

/* The library calls this with the row under its lock: returns the new value, which it frees, or null to keep the old.
 */
static void *add(const void *stored, int stored_size, int *size, void *with) {
  sum *sum = with;
  uint64_t number, *made = NULL;
  sum->is_wrong = stored_size != sizeof(number);
  if (!sum->is_wrong) made = malloc(sizeof(number));
  if (made == NULL) return NULL;
  memcpy(&number, stored, sizeof(number));
  *made = little(little(number) + little(sum->operand));
  *size = sizeof(number);
  return made;
}

static uint32_t merge(kv_database *database, kv_op *op, kv_batch *batch) {
  const kind *kind = database->kind;
  const int key_size = (int)op->key_length, value_size = (int)op->value_length;
  sum sum = {0, false};
  if ((op->flags & KV_APPEND) != 0) {
    if (kind->append(database->db, op->key, key_size, op->value, value_size)) return KV_OK;
    return failed(database, op, batch, "merge");
  }
  if (value_size != sizeof(sum.operand))
    return kv_fail(batch, op, KV_TOO_LARGE, "merge: the operand must have 8 bytes");
  memcpy(&sum.operand, op->value, sizeof(sum.operand));
  if (kind->change(database->db, op->key, key_size, op->value, value_size, add, &sum)) return KV_OK;
  if (sum.is_wrong) return kv_fail(batch, op, KV_ERROR, "merge: a counter must have 8 bytes");
  return failed(database, op, batch, "merge");
}

/* Runs one op; the lock is held. */
static uint32_t apply(kv_session *session, kv_op *op, kv_batch *batch) {
  kv_database *database = session->database;
  const kind *kind = database->kind;
  const int key_size = (int)op->key_length, value_size = (int)op->value_length;
  uint32_t status;
  switch (op->kind) {
  case KV_GET:
  case KV_SCAN:
    status = op->kind == KV_GET ? kind->get(session, op) : kind->scan(session, op);
    return status != KV_ERROR ? status : failed(database, op, batch, op->kind == KV_GET ? "get" : "scan");
  case KV_PUT:
    if ((op->flags & KV_NEW) == 0) {
      if (kind->put(database->db, op->key, key_size, op->value, value_size)) return KV_OK;
    } else {
      if (kind->put_new(database->db, op->key, key_size, op->value, value_size)) return KV_OK;
      if (kind->error(database->db) == TCEKEEP) return KV_EXISTS;
    }
    return failed(database, op, batch, "put");
  case KV_DELETE:
    if (kind->remove(database->db, op->key, key_size)) return KV_OK;
    return kind->error(database->db) == TCENOREC ? (uint32_t)KV_NOT_FOUND : failed(database, op, batch, "delete");
  default:
    return merge(database, op, batch);
  }
}

static uint32_t get(kv_session *session, kv_op *op, kv_batch *batch) {
  lock_shared(session->database);
  const uint32_t status = apply(session, op, batch);
  unlock(session->database);
  return status;
}

static uint32_t scan(kv_session *session, kv_op *op, kv_batch *batch) {
  if (op->value_length > 65536) return kv_fail(batch, op, KV_TOO_LARGE, "the bound is longer than a key may be");
  if (session->cursor != NULL)
    lock_shared(session->database);
  else
    lock_alone(session->database);
  const uint32_t status = apply(session, op, batch);
  unlock(session->database);
  return status;
}

/* Runs a group in one transaction; also used for a single write. */
static uint32_t transact(kv_session *session, kv_op *ops, uint32_t count, int atomic, kv_batch *batch) {
  kv_database *database = session->database;
  const kind *kind = database->kind;
  uint32_t status = KV_OK, i;
  errno = 0;
  if (!kind->begin(database->db)) return failed(database, ops, batch, "begin");
  for (i = 0; i < count && status == KV_OK; i++) {
    ops[i].status = apply(session, &ops[i], batch);
    if (atomic && ops[i].status > KV_EXISTS) status = ops[i].status;
  }
  if (status == KV_OK && kind->commit(database->db)) return KV_OK;
  if (status == KV_OK) return failed(database, ops, batch, "commit");
  if (!kind->abort(database->db)) return failed(database, ops, batch, "abort");
  return status;
}

static uint32_t write_one(kv_session *session, kv_op *op, kv_batch *batch) {
  kv_database *database = session->database;
  uint32_t status;
  errno = 0;
  lock_alone(database);
  if (!database->is_logged) {
    status = apply(session, op, batch);
  } else {
    status = transact(session, op, 1, 1, batch);
    if (status == KV_OK) status = op->status;
  }
  unlock(database);
  return status;
}

static uint32_t group(kv_session *session, kv_op *ops, uint32_t count, int atomic, kv_batch *batch) {
  kv_database *database = session->database;
  uint32_t status, i;
  if (!atomic && !database->is_logged) return KV_NOT_RUN;
  for (i = 0; i < count; i++) {
    if (ops[i].kind != KV_SCAN) continue;
    return atomic ? kv_fail(batch, &ops[i], KV_UNSUPPORTED, "a transaction may not have scans") : (uint32_t)KV_NOT_RUN;
  }
  lock_alone(database);
  status = transact(session, ops, count, atomic, batch);
  unlock(database);
  return status;
}

uint32_t tokyo_execute_tree(kv_session *session, kv_batch *batch) {
  static const kv_calls calls = {.capabilities = TOKYO_TREE,
                                 .get = get,
                                 .put = write_one,
                                 .remove = write_one,
                                 .scan = scan,
                                 .merge = write_one,
                                 .group = group};
  return kv_run(session, batch, &calls);
}

uint32_t tokyo_execute_hash(kv_session *session, kv_batch *batch) {
  static const kv_calls calls = {.capabilities = TOKYO_HASH,
                                 .get = get,
                                 .put = write_one,
                                 .remove = write_one,
                                 .scan = scan,
                                 .merge = write_one,
                                 .group = group};
  return kv_run(session, batch, &calls);
}
