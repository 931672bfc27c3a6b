/* The ops of TokuKV, each within a transaction, or without one in tokukv-plain. */
#include "tokukv.h"

/* The boundary's status for a result of the engine. */
uint32_t tokukv_outcome(kv_batch *batch, const kv_op *op, int error, const char *what) {
  switch (error) {
  case 0:
    return KV_OK;
  case DB_NOTFOUND:
    return KV_NOT_FOUND;
  case DB_KEYEXIST:
    return KV_EXISTS;
  case DB_LOCK_DEADLOCK:
  case DB_LOCK_NOTGRANTED:
    return KV_CONFLICT;
  case ENOSPC:
    return kv_fail(batch, op, KV_FULL, "%s: the disk is full, or less than 5 %% of it is free", what);
  default:
    return kv_fail(batch, op, KV_ERROR, "%s: %s", what, tokukv_text(error));
  }
}

typedef struct delivery {
  kv_op *op;
  uint32_t status;
} delivery;

static int deliver(const DBT *key, const DBT *value, void *extra) {
  delivery *wanted = extra;
  (void)key;
  wanted->status = kv_deliver(wanted->op, value->data, value->size);
  return 0;
}

static uint32_t get_within(kv_session *session, kv_op *op, kv_batch *batch, DB_TXN *txn) {
  DB *dictionary = session->database->spaces[op->keyspace].dictionaries[0];
  DBT key = tokukv_bytes(op->key, op->key_length);
  delivery wanted = {op, KV_OK};
  const int error = dictionary->getf_set(dictionary, txn, 0, &key, deliver, &wanted);
  return error == 0 ? wanted.status : tokukv_outcome(batch, op, error, "get");
}

/* A merge is a message that is resolved later: the kind (add or append), then the operand. */
static int merge(kv_session *session, const kv_op *op, DB *dictionary, DB_TXN *txn, const DBT *key) {
  uint8_t *message = tokukv_space_of(session, (size_t)op->value_length + 1);
  if (message == NULL) return ENOMEM;
  message[0] = (op->flags & KV_APPEND) != 0;
  if (op->value_length != 0) memcpy(message + 1, op->value, op->value_length);
  const DBT operand = tokukv_bytes(message, (size_t)op->value_length + 1);
  return dictionary->update(dictionary, txn, key, &operand, session->database->write_flags);
}

/* With the option prelock: locks complete tables, once per transaction. */
static int lock_tables(kv_session *session, uint32_t keyspace, DB_TXN *txn) {
  const tokukv_space *space = &session->database->spaces[keyspace];
  int error = 0;
  if (!session->database->prelock || session->is_locked[keyspace]) return 0;
  for (uint32_t i = 0; i < space->count && error == 0; i++)
    error = space->dictionaries[i]->pre_acquire_table_lock(space->dictionaries[i], txn);
  session->is_locked[keyspace] = error == 0;
  return error;
}

static uint32_t write_within(kv_session *session, kv_op *op, kv_batch *batch, DB_TXN *txn) {
  const kv_database *database = session->database;
  const tokukv_space *space = &database->spaces[op->keyspace];
  const uint32_t flags = database->write_flags;
  DB *dictionary = space->dictionaries[0];
  DBT key = tokukv_bytes(op->key, op->key_length), value = tokukv_bytes(op->value, op->value_length);
  if (op->key_length + space->index_length_max > KEY_SIZE_MAX)
    return kv_fail(batch, op, KV_TOO_LARGE, "a key, together with its index bytes, has at most %d bytes", KEY_SIZE_MAX);
  if (op->kind != KV_DELETE && op->value_length > VALUE_SIZE_MAX - (uint32_t)(op->kind == KV_MERGE))
    return kv_fail(batch, op, KV_TOO_LARGE, "a value has at most %d bytes", VALUE_SIZE_MAX);
  if (database->is_read_only || space->is_index || (op->kind == KV_MERGE && space->count > 1))
    return kv_fail(batch, op, KV_UNSUPPORTED, "%s",
                   database->is_read_only ? "the database was opened read-only"
                   : space->is_index      ? "only the engine writes an index"
                                          : "rows with indexes cannot be merged");
  int error = lock_tables(session, op->keyspace, txn);
  if (error != 0) return tokukv_outcome(batch, op, error, "lock");
  if (op->kind == KV_MERGE) return tokukv_outcome(batch, op, merge(session, op, dictionary, txn, &key), "merge");
  if (op->kind == KV_DELETE) {
    error = space->count > 1 ? tokukv_delete_indexed(session, op, txn)
                             : dictionary->del(dictionary, txn, &key, flags | DB_DELETE_ANY);
    return tokukv_outcome(batch, op, error, "delete");
  }
  error = space->count > 1
              ? tokukv_put_indexed(session, op, txn)
              : dictionary->put(dictionary, txn, &key, &value, flags | ((op->flags & KV_NEW) ? DB_NOOVERWRITE : 0));
  return tokukv_outcome(batch, op, error, "put");
}

uint32_t tokukv_run(kv_session *session, kv_op *op, kv_batch *batch, DB_TXN *txn) {
  if (op->keyspace >= session->database->space_count)
    return kv_fail(batch, op, KV_UNSUPPORTED, "there is no keyspace %u", op->keyspace);
  if (op->kind == KV_GET) return get_within(session, op, batch, txn);
  if (op->kind == KV_SCAN) return tokukv_scan_within(session, op, batch, txn);
  if (op->kind <= KV_MERGE) return write_within(session, op, batch, txn);
  return kv_fail(batch, op, KV_UNSUPPORTED, "a group cannot begin or end a transaction");
}

static uint64_t number(const void *bytes, size_t length) {
  uint64_t sum = 0;
  for (size_t i = 0; i < length && i < 8; i++) sum |= (uint64_t)((const uint8_t *)bytes)[i] << (8 * i);
  return sum;
}

int tokukv_update(DB *dictionary, const DBT *key, const DBT *old, const DBT *operand,
                  void (*set)(const DBT *value, void *extra), void *extra) {
  const uint8_t *message = operand->data;
  const size_t before = old != NULL ? old->size : 0, more = operand->size - 1;
  (void)dictionary, (void)key;
  if (message[0] == 0) {
    const uint64_t sum = (before != 0 ? number(old->data, before) : 0) + number(message + 1, more);
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++) bytes[i] = (uint8_t)(sum >> (8 * i));
    const DBT value = tokukv_bytes(bytes, sizeof(bytes));
    set(&value, extra);
    return 0;
  }
  uint8_t *bytes = malloc(before + more + 1);
  if (bytes == NULL) return ENOMEM;
  if (before != 0) memcpy(bytes, old->data, before);
  memcpy(bytes + before, message + 1, more);
  const DBT value = tokukv_bytes(bytes, before + more);
  set(&value, extra);
  free(bytes);
  return 0;
}
