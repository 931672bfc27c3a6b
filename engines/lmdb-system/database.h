/* What the files of this driver share: the environment, a session of it, and the options. */
#ifndef KVDYNO_LMDB_SYSTEM_DATABASE_H
#define KVDYNO_LMDB_SYSTEM_DATABASE_H

#include <lmdb.h>

#include "kit.h"

enum {
  KEY_BYTES_MAX = 511, /* compiled in */
  OPTION_COUNT = 3
};

#define CAPABILITIES                                                                                           \
  (KV_ORDERED | KV_CAN_REVERSE | KV_CAN_PREFIX | KV_CAN_DELETE | KV_DELETE_TELLS | KV_OVERWRITE | KV_CAN_NEW | \
   KV_MULTI_GET | KV_TRANSACTION | KV_TRANSACTION_READS | KV_KEYSPACES | KV_SINGLE_WRITER | KV_CAN_TOUCH |     \
   KV_CAN_HOLD)

struct kv_database {
  MDB_env *environment;
  uint32_t keyspaces;
  MDB_dbi databases[];
};

struct kv_session {
  const kv_database *database;
  MDB_txn *reader, *writer;
  kv_held held;          /* if so, the reader is not reset, and its cursor of the keyspace stands on a row */
  MDB_cursor *cursors[]; /* of the reader, one for each keyspace */
};

KV_INLINE MDB_val bytes(const uint8_t *data, size_t size) { return (MDB_val){size, (void *)data}; }

/* Before anything else: the reader is to see what was written since, and to keep no pages from being used again. */
KV_INLINE void lmdb_let_go(kv_session *session) {
  if (!session->held.is_held) return;
  session->held.is_held = 0;
  mdb_txn_reset(session->reader);
}

extern const kv_driver lmdb_system;
extern const kv_option lmdb_options[OPTION_COUNT];

/* scan.c: an op's failure; a transaction in which this happened is aborted by the caller. */
uint32_t lmdb_failed(kv_batch *batch, const kv_op *op, int code);
/* `goes_on`: the cursor stands on the last row that was written. `held`: to be told whether to keep it; or null. */
uint32_t lmdb_scan_with(MDB_cursor *cursor, kv_op *op, kv_batch *batch, int goes_on, kv_held *held);
/* A scan by itself. */
uint32_t lmdb_scan(kv_session *session, kv_op *op, kv_batch *batch);

uint32_t lmdb_open(const kv_config *config, kv_opened *opened, kv_database **database);
uint32_t lmdb_maintain(kv_database *database, uint32_t work, char *error);
uint32_t lmdb_stats(kv_database *database, char *out, uint64_t size);
uint32_t lmdb_close(kv_database *database, char *error);

#endif
