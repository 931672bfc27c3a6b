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
   KV_MULTI_GET | KV_TRANSACTION | KV_TRANSACTION_READS | KV_KEYSPACES | KV_SINGLE_WRITER | KV_CAN_TOUCH)

struct kv_database {
  MDB_env *environment;
  uint32_t keyspaces;
  MDB_dbi databases[];
};

struct kv_session {
  const kv_database *database;
  MDB_txn *reader, *writer;
  MDB_cursor *cursors[]; /* of the reader, one for each keyspace */
};

extern const kv_driver lmdb_system;
extern const kv_option lmdb_options[OPTION_COUNT];

uint32_t lmdb_open(const kv_config *config, kv_opened *opened, kv_database **database);
uint32_t lmdb_maintain(kv_database *database, uint32_t work, char *error);
uint32_t lmdb_stats(kv_database *database, char *out, uint64_t size);
uint32_t lmdb_close(kv_database *database, char *error);

#endif
