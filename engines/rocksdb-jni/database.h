/* An open RocksDB database through its C interface. */
#ifndef KVDYNO_ROCKSDB_JNI_DATABASE_H
#define KVDYNO_ROCKSDB_JNI_DATABASE_H

#include "interface.h"
#include "kit.h"

struct kv_database {
  rocksdb_t *db;
  rocksdb_options_t *options;
  rocksdb_writeoptions_t *write_options;
  rocksdb_cache_t *cache;
  rocksdb_family_t **families; /* by keyspace */
  uint32_t family_count;
  int has_log;
};

struct kv_session {
  kv_database *database;
  rocksdb_readoptions_t *read_options, *scan_options;
  rocksdb_writebatch_t *batch;
  char *space; /* for a key or an operand */
  size_t room;
};

/* Fails an op with RocksDB's text, which it frees. */
KV_OUTLINE uint32_t failed(kv_batch *batch, const kv_op *op, const char *what, char *text) {
  const uint32_t status = strstr(text, "No space left") != NULL ? KV_FULL : KV_ERROR;
  kv_fail(batch, op, status, "%s: %s", what, text);
  rocksdb_free(text);
  return status;
}

/* The column family of an op; null if it does not exist. */
KV_INLINE rocksdb_family_t *family_of(const kv_session *session, const kv_op *op) {
  return op->keyspace < session->database->family_count ? session->database->families[op->keyspace] : NULL;
}

KV_OUTLINE uint32_t no_keyspace(kv_batch *batch, const kv_op *op) {
  return kv_fail(batch, op, KV_UNSUPPORTED, "there is no keyspace %u", (unsigned)op->keyspace);
}

KV_INLINE int make_room(kv_session *session, size_t room) {
  if (room <= session->room) return 1;
  char *space = (char *)realloc(session->space, room);
  if (space == NULL) return 0;
  session->space = space;
  session->room = room;
  return 1;
}

uint32_t scan_rows(kv_session *session, kv_op *op, kv_batch *batch);

/* Operands of merges begin with a byte that distinguishes additions from appended bytes, so one operator serves both.
 */
enum { MERGE_ADD = '+', MERGE_APPEND = '.' };
rocksdb_mergeoperator_t *new_merge_operator(void);

/* open.c */
extern const kv_option database_options[];
enum { DATABASE_OPTIONS = 15 };
uint32_t open_with(const kv_driver *driver, const kv_config *config, kv_opened *opened, kv_database **database);
uint32_t maintain_database(kv_database *database, uint32_t work, char *error);
uint32_t database_stats(kv_database *database, char *out, uint64_t size);
uint32_t close_database(kv_database *database, char *error);

#endif
