/* The declarations shared by the files of this driver: the database, the session, and the functions of each file. */
#ifndef KVDYNO_TOKUKV_H
#define KVDYNO_TOKUKV_H

#include "kit.h"

#include <stdbool.h>
#include <tokudb.h>

/* The engine's own limits (ft-ops.cc, toku_ft_get_maximum_advised_key_value_lengths). */
enum { KEY_SIZE_MAX = 32 << 10, VALUE_SIZE_MAX = 32 << 20 };

/* A keyspace: its dictionary, followed by those of its secondary indexes, in the form of put_multiple. */
typedef struct tokukv_space {
  DB **dictionaries;
  uint32_t count;            /* 1 without indexes */
  uint32_t index_length_max; /* bytes of an index key in addition to the primary key */
  int is_index;              /* itself an index: only the engine writes it */
} tokukv_space;

struct kv_database {
  DB_ENV *env;
  tokukv_space *spaces;
  uint32_t space_count;
  uint32_t space_dictionaries_max; /* the maximum of one keyspace */
  uint32_t begin_flags;            /* for a transaction that writes */
  uint32_t commit_flags;
  uint32_t write_flags; /* for put, delete and update */
  int has_transactions, is_read_only;
  int prelock, has_single_transaction, has_child_transactions;
};

struct kv_session {
  kv_database *database;
  DB_TXN *open;             /* from KV_BEGIN on, or the single transaction */
  uint8_t *is_locked;       /* by keyspace: the open root transaction has locked its tables */
  DBT_ARRAY *keys, *values; /* index rows; two sets of keys, because of the old rows */
  uint32_t *flags;          /* for a write, by dictionary */
  DBC *cursor;              /* of a held scan; otherwise null */
  DB_TXN *reader;           /* the held scan's separate transaction, if it has one; otherwise null */
  kv_held held;
  uint32_t key_length;
  uint8_t key[KEY_SIZE_MAX]; /* of the held scan's current row */
  uint8_t *space;
  size_t space_size;
};

/* The engine's last message in this thread, or the text of the error number. */
const char *tokukv_text(int error);

KV_INLINE DBT tokukv_bytes(const void *data, size_t length) {
  DBT bytes = {.data = (void *)data, .size = (uint32_t)length};
  return bytes;
}

/* session.c */
int tokukv_open_session(kv_database *database, kv_session **session);
uint32_t tokukv_end_session(kv_session *session, char *error);
/* At least `size` bytes of the session's memory, valid until the next call; null: out of memory. */
uint8_t *tokukv_space_of(kv_session *session, size_t size);

/* ops.c: runs one op within a transaction, or none. */
uint32_t tokukv_run(kv_session *session, kv_op *op, kv_batch *batch, DB_TXN *txn);
/* The boundary's status for a result of the engine. */
uint32_t tokukv_outcome(kv_batch *batch, const kv_op *op, int error, const char *what);
/* Resolves a merge message whenever the engine needs it: at a flush, a read or in recovery. */
int tokukv_update(DB *dictionary, const DBT *key, const DBT *old, const DBT *operand,
                  void (*set)(const DBT *value, void *extra), void *extra);

/* scan.c: a scan within a transaction, or none; a held scan by itself; and the end of a held scan, before a write,
 * before its transaction ends, and before the session ends. */
uint32_t tokukv_scan_within(kv_session *session, kv_op *op, kv_batch *batch, DB_TXN *txn);
uint32_t tokukv_scan_held(kv_session *session, kv_op *op, kv_batch *batch);
int tokukv_let_go(kv_session *session);

/* index.c: rows of secondary indexes. */
int tokukv_generate_put(DB *to, DB *from, DBT_ARRAY *keys, DBT_ARRAY *values, const DBT *key, const DBT *value);
int tokukv_generate_delete(DB *to, DB *from, DBT_ARRAY *keys, const DBT *key, const DBT *value);
int tokukv_put_indexed(kv_session *session, const kv_op *op, DB_TXN *txn);
int tokukv_delete_indexed(kv_session *session, const kv_op *op, DB_TXN *txn);
uint32_t tokukv_add_indexes(kv_database *database, const kv_config *config, kv_opened *opened);

/* open.c */
/* The engine's last message in this thread, or the text of the error number. */
const char *tokukv_text(int error);
uint32_t tokukv_open(const kv_driver *driver, const kv_config *config, kv_opened *opened, kv_database **database);
uint32_t tokukv_maintain(kv_database *database, uint32_t work, char *error);
uint32_t tokukv_close(kv_database *database, char *error);

/* status.c */
uint32_t tokukv_stats(kv_database *database, char *out, uint64_t size);

#endif
