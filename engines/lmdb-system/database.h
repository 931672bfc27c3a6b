/* The declarations shared by the files of this driver: the environment, a session of it, and the options. */
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
  kv_held held;          /* if a scan is held, the reader is not reset, and its cursor of the keyspace is at a row */
  MDB_cursor *cursors[]; /* the reader's, one for each keyspace */
};

KV_INLINE MDB_val bytes(const uint8_t *data, size_t size) { return (MDB_val){size, (void *)data}; }

/* Before any other op: the reader must see later writes, and must not keep pages from being reused. */
KV_INLINE void lmdb_let_go(kv_session *session) {
  if (!session->held.is_held) return;
  session->held.is_held = 0;
  mdb_txn_reset(session->reader);
}

extern const kv_driver lmdb_system;
extern const kv_option lmdb_options[OPTION_COUNT];

/* scan.c: an op's failure; the caller aborts a transaction in which this happened. */
uint32_t lmdb_failed(kv_batch *batch, const kv_op *op, int code);
/* `goes_on`: the cursor is at the last row that was written. `held`: set if the cursor must be kept; or null. */
uint32_t lmdb_scan_with(MDB_cursor *cursor, kv_op *op, kv_batch *batch, int goes_on, kv_held *held);
/* A single scan. */
uint32_t lmdb_scan(kv_session *session, kv_op *op, kv_batch *batch);

uint32_t lmdb_open(const kv_config *config, kv_opened *opened, kv_database **database);
uint32_t lmdb_maintain(kv_database *database, uint32_t work, char *error);
uint32_t lmdb_stats(kv_database *database, char *out, uint64_t size);
uint32_t lmdb_close(kv_database *database, char *error);

#endif
