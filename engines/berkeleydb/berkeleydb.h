/* The declarations shared by the files of Berkeley DB's driver: variants, databases, keyspaces and sessions. */
#ifndef KVDYNO_BERKELEYDB_H
#define KVDYNO_BERKELEYDB_H

#include <db.h>
#include <pthread.h>

#include "kit.h"

/* Berkeley DB's products: without an environment, with one of locks only, with one with transactions. */
enum product { PLAIN, CONCURRENT, TRANSACTIONAL };

typedef struct variant {
  const kv_driver *driver;
  enum product product;
  DBTYPE type;
  const char *suffix; /* of its files, so that no variant opens another's */
} variant;

typedef struct keyspace {
  DB *db;             /* the handle that ops use */
  DB *secondary;      /* for an index: the handle through which Berkeley DB writes its rows; otherwise null */
  uint32_t value_min; /* with indexes: the end of the last byte that an index covers */
  int hides_values;   /* an index that is not clustering: it stores the primary key as value */
} keyspace;

struct kv_database {
  const variant *variant;
  DB_ENV *environment; /* null: plain */
  keyspace *keyspaces;
  kv_index *indexes;
  uint32_t keyspace_count, index_count;
  uint32_t page_size, fill_factor;
  uint32_t key_max; /* for the hash table: it loses rows with longer keys */
  int is_single, is_in_children, is_locked, is_snapshot, is_synced, is_bulk_put; /* the options */
  pthread_mutex_t sessions_lock;
  uint32_t sessions;
  DB_TXN *whole; /* the single transaction, from the first session to the end of the last */
  uint64_t checkpoint_seconds, checkpoint_log;
  pthread_t checkpointer;
  pthread_mutex_t checkpoint_lock; /* held during a checkpoint */
  pthread_cond_t checkpoint_wake;
  int is_open, is_checkpointing, is_closing; /* completely opened; the thread runs; the thread must end */
  int checkpoint_code;                       /* the thread's first failure */
};

/* The longest key that a scan may read; the longest key of the hash table, a quarter of a page of 4 KiB. */
enum { KEY_ROOM = 65536, HASH_KEY_MAX = 1024 };

struct kv_session {
  kv_database *database;
  DB_TXN *open; /* between KV_BEGIN and its end, otherwise null */
  DBC *cursor;  /* of a held scan, at the row whose key is in `key`; otherwise null */
  uint32_t key_length;
  kv_held held;
  uint8_t *bulk; /* input and output of bulk calls, and single values of scans */
  uint32_t bulk_size;
  uint32_t row_size; /* row size of the last scan, to request no more pages than needed */
  uint8_t place[KEY_ROOM], key[KEY_ROOM];
};

/* Results that are not the engine's; its own are 0, errno and below -30000. */
enum {
  NO_KEYSPACE = -1,
  INDEX_WRITTEN = -2,
  PLACE_LOST = -3,
  KEY_TOO_LONG = -4,
  VALUE_TOO_SHORT = -5,
  KEY_REFUSED = -6
};

/* Deadlocks of one op or group before the driver gives up. */
enum { RETRIES_MAX = 1000 };

/* open.c */
uint32_t open_store(const variant *variant, const kv_config *config, kv_opened *opened, kv_database **database);
uint32_t close_store(kv_database *database, char *error);
int open_handle(kv_database *database, const kv_config *config, uint32_t number, DB **handle);
const char *explain(int code);

/* index.c */
int open_indexes(kv_database *database, const kv_config *config);

/* driver.c */
int run_in(kv_session *session, kv_op *op, DB_TXN *transaction);

/* group.c */
uint32_t run_group(kv_session *session, kv_op *ops, uint32_t count, int atomic, kv_batch *batch);

/* session.c */
uint32_t control(kv_session *session, kv_op *op, kv_batch *batch);
uint32_t begin_session(kv_database *database, const kv_arena *arena, kv_session **session, char *error);
uint32_t end_session(kv_session *session, char *error);
uint32_t fail(const kv_op *op, kv_batch *batch, int code);

/* scan.c */
int scan_in(kv_session *session, kv_op *op, DB_TXN *transaction);
int make_room(kv_session *session, uint64_t bytes);
int let_go(kv_session *session);

/* maintain.c */
int start_checkpoints(kv_database *database);
void stop_checkpoints(kv_database *database);
int checkpoint(kv_database *database, uint32_t kilobytes, uint32_t flags);
uint32_t maintain_store(kv_database *database, uint32_t work, char *error);
uint32_t store_stats(kv_database *database, char *out, uint64_t size);

KV_INLINE int is_answer(int code) { return code == 0 || code == DB_NOTFOUND || code == DB_KEYEXIST; }

KV_INLINE uint32_t status_of(const kv_op *op, kv_batch *batch, int code) {
  if (code == 0) return KV_OK;
  if (code == DB_NOTFOUND) return KV_NOT_FOUND;
  if (code == DB_KEYEXIST) return KV_EXISTS;
  return code == DB_BUFFER_SMALL ? (uint32_t)KV_SHORT : fail(op, batch, code);
}

/* The transaction that an op of this session is part of; null: none. */
KV_INLINE DB_TXN *around(const kv_session *session) {
  return session->open != NULL ? session->open : session->database->whole;
}

/* Whether to retry after a deadlock undid the transaction. A retry of an enclosing transaction is not possible here. */
KV_INLINE int is_retried(kv_session *session, kv_op *op, int code) {
  return code == DB_LOCK_DEADLOCK && around(session) == NULL && op->retries++ < RETRIES_MAX;
}

#endif
