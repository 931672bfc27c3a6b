/* RocksDB of the Maven artifact rocksdbjni, through the C interface that its library exports. */
#include "database.h"

enum { MULTI_GET_MOST = 64 };

/* Delivers a pinned value, or reports that there is none. */
static uint32_t deliver_pinned(kv_op *op, rocksdb_pinned_t *pinned) {
  size_t length;
  if (pinned == NULL) return KV_NOT_FOUND;
  const char *value = rocksdb_pinnableslice_value(pinned, &length);
  const uint32_t status = kv_deliver(op, value, length);
  rocksdb_pinnableslice_destroy(pinned);
  return status;
}

static uint32_t get(kv_session *session, kv_op *op, kv_batch *batch) {
  rocksdb_family_t *family = family_of(session, op);
  rocksdb_t *db = session->database->db;
  const char *key = (const char *)op->key;
  char *error = NULL;
  size_t length;
  unsigned char is_found;
  if (family == NULL) return no_keyspace(batch, op);
  if ((op->flags & KV_TOUCH) != 0) {
    rocksdb_pinned_t *pinned = rocksdb_get_pinned_cf(db, session->read_options, family, key, op->key_length, &error);
    return error != NULL ? failed(batch, op, "get", error) : deliver_pinned(op, pinned);
  }
  const int is_whole = rocksdb_get_into_buffer_cf(db, session->read_options, family, key, op->key_length,
                                                  (char *)op->out, op->out_size, &length, &is_found, &error);
  if (error != NULL) return failed(batch, op, "get", error);
  if (!is_found) return KV_NOT_FOUND;
  *(is_whole ? &op->length : &op->needed) = length;
  return is_whole ? KV_OK : KV_SHORT;
}

/* The operand of a merge in the operator's form, in the session's space; 0 if it is not possible. */
static int make_operand(kv_session *session, const kv_op *op) {
  const int is_append = (op->flags & KV_APPEND) != 0;
  if ((!is_append && op->value_length != 8) || !make_room(session, (size_t)op->value_length + 1)) return 0;
  session->space[0] = is_append ? MERGE_APPEND : MERGE_ADD;
  if (op->value_length != 0) memcpy(session->space + 1, op->value, op->value_length);
  return 1;
}

static uint32_t write_one(kv_session *session, kv_op *op, kv_batch *batch) {
  const kv_database *database = session->database;
  rocksdb_family_t *family = family_of(session, op);
  const char *key = (const char *)op->key;
  char *error = NULL;
  if (family == NULL) return no_keyspace(batch, op);
  if (op->kind == KV_PUT) {
    rocksdb_put_cf(database->db, database->write_options, family, key, op->key_length, (const char *)op->value,
                   op->value_length, &error);
  } else if (op->kind == KV_DELETE) {
    rocksdb_delete_cf(database->db, database->write_options, family, key, op->key_length, &error);
  } else {
    if (!make_operand(session, op)) return kv_fail(batch, op, KV_ERROR, "merge: the operand must have 8 bytes");
    rocksdb_merge_cf(database->db, database->write_options, family, key, op->key_length, session->space,
                     (size_t)op->value_length + 1, &error);
  }
  return error != NULL ? failed(batch, op, "write", error) : (uint32_t)KV_OK;
}

/* Joined gets of one keyspace are one call. */
static uint32_t get_all(kv_session *session, kv_op *ops, uint32_t count, kv_batch *batch) {
  const char *keys[MULTI_GET_MOST];
  size_t lengths[MULTI_GET_MOST];
  rocksdb_pinned_t *values[MULTI_GET_MOST];
  char *errors[MULTI_GET_MOST];
  rocksdb_family_t *family = family_of(session, ops);
  if (count == 0 || count > MULTI_GET_MOST || family == NULL) return KV_NOT_RUN;
  for (uint32_t i = 0; i < count; i++) {
    if (ops[i].keyspace != ops[0].keyspace) return KV_NOT_RUN;
    keys[i] = (const char *)ops[i].key;
    lengths[i] = ops[i].key_length;
  }
  rocksdb_batched_multi_get_cf(session->database->db, session->read_options, family, count, keys, lengths, values,
                               errors, false);
  for (uint32_t i = 0; i < count; i++)
    ops[i].status = errors[i] != NULL ? failed(batch, &ops[i], "get", errors[i]) : deliver_pinned(&ops[i], values[i]);
  return KV_OK;
}

/* Joined writes are one atomic batch: the transaction. */
static uint32_t group(kv_session *session, kv_op *ops, uint32_t count, int atomic, kv_batch *batch) {
  uint32_t gets = 0, i;
  char *error = NULL;
  for (i = 0; i < count; i++) gets += ops[i].kind == KV_GET;
  if (gets == count && !atomic) return get_all(session, ops, count, batch);
  rocksdb_writebatch_clear(session->batch);
  for (i = 0; i < count; i++) {
    kv_op *op = &ops[i];
    rocksdb_family_t *family = family_of(session, op);
    const char *key = (const char *)op->key;
    if (op->kind != KV_PUT && op->kind != KV_DELETE && op->kind != KV_MERGE)
      return atomic ? kv_fail(batch, op, KV_UNSUPPORTED, "a transaction may have only writes") : (uint32_t)KV_NOT_RUN;
    if (family == NULL) return no_keyspace(batch, op);
    if (op->kind == KV_PUT) {
      rocksdb_writebatch_put_cf(session->batch, family, key, op->key_length, (const char *)op->value, op->value_length);
    } else if (op->kind == KV_DELETE) {
      rocksdb_writebatch_delete_cf(session->batch, family, key, op->key_length);
    } else {
      if (!make_operand(session, op)) return kv_fail(batch, op, KV_ERROR, "merge: the operand must have 8 bytes");
      rocksdb_writebatch_merge_cf(session->batch, family, key, op->key_length, session->space,
                                  (size_t)op->value_length + 1);
    }
  }
  rocksdb_write(session->database->db, session->database->write_options, session->batch, &error);
  if (error != NULL) return failed(batch, ops, "write", error);
  for (i = 0; i < count; i++) ops[i].status = KV_OK;
  return KV_OK;
}

#define CAPABILITIES                                                                                              \
  (KV_ORDERED | KV_CAN_REVERSE | KV_CAN_PREFIX | KV_MULTI_GET | KV_TRANSACTION | KV_MERGE_ADD | KV_MERGE_APPEND | \
   KV_CAN_DELETE | KV_OVERWRITE | KV_KEYSPACES | KV_CAN_TOUCH)

static uint32_t execute(kv_session *session, kv_batch *batch) {
  static const kv_calls calls = {.capabilities = CAPABILITIES,
                                 .get = get,
                                 .put = write_one,
                                 .remove = write_one,
                                 .scan = scan_rows,
                                 .merge = write_one,
                                 .group = group};
  return kv_run(session, batch, &calls);
}

static uint32_t begin_session(kv_database *database, const kv_arena *arena, kv_session **session, char *error) {
  kv_session *made = calloc(1, sizeof(kv_session));
  (void)arena;
  if (made == NULL) return kv_fail_call(error, KV_ERROR, "out of memory");
  made->database = database;
  made->read_options = rocksdb_readoptions_create();
  made->scan_options = rocksdb_readoptions_create();
  made->batch = rocksdb_writebatch_create();
  *session = made;
  return KV_OK;
}

static uint32_t end_session(kv_session *session, char *error) {
  (void)error;
  rocksdb_readoptions_destroy(session->read_options);
  rocksdb_readoptions_destroy(session->scan_options);
  rocksdb_writebatch_destroy(session->batch);
  free(session->space);
  free(session);
  return KV_OK;
}

static const kv_driver driver;

static uint32_t open_database(const kv_config *config, kv_opened *opened, kv_database **database) {
  return open_with(&driver, config, opened, database);
}

static const kv_driver driver = {
    .abi = KV_ABI,
    .size = sizeof(kv_driver),
    .name = "rocksdb-jni",
    .engine = "Meta's log-structured merge tree, from the Maven artifact",
    .language = "C++",
    .family = "lsm",
    .capabilities = CAPABILITIES,
    .levels = 1u << KV_NONE | 1u << KV_PROCESS | 1u << KV_POWER,
    .option_count = DATABASE_OPTIONS,
    .options = database_options,
    .open = open_database,
    .close = close_database,
    .session = begin_session,
    .session_end = end_session,
    .execute = execute,
    .maintain = maintain_database,
    .stats = database_stats,
};

KV_EXPORT(&driver)
