/* The two kinds of Tokyo Cabinet database, tcbdb and tchdb, as the driver sees them: calls of the same shape. */
#ifndef TOKYOCABINET_CABINET_H
#define TOKYOCABINET_CABINET_H

#include "kit.h"

#include <pthread.h>
#include <stdbool.h>
#include <tcbdb.h>

/* The options of both kinds; -1 or 0 lets the library choose. */
typedef struct tuning {
  uint64_t buckets, map, defragment, alignment_power, free_block_power;
  uint64_t page_size, leaf_rows, node_links; /* tree only */
  uint64_t cached_records;                   /* hash only */
  uint64_t cache_bytes, expected_rows;
  uint8_t features; /* BDBT..., the same bits as HDBT... */
  int mode;         /* BDBO..., the same bits as HDBO... */
  bool is_shared;   /* several sessions: with a mutex */
} tuning;

typedef struct kind {
  const char *file;
  void *(*make)(void);
  bool (*open)(void *db, const char *path, const tuning *tuning);
  void (*report)(void *db, kv_opened *opened);
  size_t (*stats)(void *db, char *out, size_t size);
  void (*session)(kv_session *session);
  uint32_t (*get)(kv_session *session, kv_op *op); /* KV_ERROR: the library has the reason */
  uint32_t (*scan)(kv_session *session, kv_op *op);
  bool (*put)(void *db, const void *key, int key_size, const void *value, int value_size);
  bool (*put_new)(void *db, const void *key, int key_size, const void *value, int value_size);
  bool (*append)(void *db, const void *key, int key_size, const void *value, int value_size);
  bool (*change)(void *db, const void *key, int key_size, const void *value, int value_size, TCPDPROC change,
                 void *with);
  bool (*remove)(void *db, const void *key, int key_size);
  bool (*begin)(void *db);
  bool (*commit)(void *db);
  bool (*abort)(void *db);
  bool (*sync)(void *db);
  bool (*optimize)(void *db);
  bool (*close)(void *db);
  void (*free)(void *db);
  int (*error)(void *db); /* TCE... */
} kind;

struct kv_database {
  const kind *kind;
  void *db;
  bool is_shared;
  bool is_logged;        /* each write is a transaction */
  pthread_rwlock_t lock; /* one writer at a time: a transaction includes all concurrent writes */
};

struct kv_session {
  kv_database *database;
  BDBCUR *cursor; /* only for a tree */
  TCXSTR *key, *value;
};

/* The calls that have the same shape for both kinds. */
#define TOKYO_CALLS(prefix, type)                                                                             \
  static void *make(void) { return tc##prefix##new (); }                                                      \
  static bool put(void *db, const void *key, int key_size, const void *value, int value_size) {               \
    return tc##prefix##put((type *)db, key, key_size, value, value_size);                                     \
  }                                                                                                           \
  static bool put_new(void *db, const void *key, int key_size, const void *value, int value_size) {           \
    return tc##prefix##putkeep((type *)db, key, key_size, value, value_size);                                 \
  }                                                                                                           \
  static bool append(void *db, const void *key, int key_size, const void *value, int value_size) {            \
    return tc##prefix##putcat((type *)db, key, key_size, value, value_size);                                  \
  }                                                                                                           \
  static bool change(void *db, const void *key, int key_size, const void *value, int value_size, TCPDPROC by, \
                     void *with) {                                                                            \
    return tc##prefix##putproc((type *)db, key, key_size, value, value_size, by, with);                       \
  }                                                                                                           \
  static bool remove_row(void *db, const void *key, int key_size) {                                           \
    return tc##prefix##out((type *)db, key, key_size);                                                        \
  }                                                                                                           \
  static bool begin(void *db) { return tc##prefix##tranbegin((type *)db); }                                   \
  static bool commit(void *db) { return tc##prefix##trancommit((type *)db); }                                 \
  static bool abort_all(void *db) { return tc##prefix##tranabort((type *)db); }                               \
  static bool sync_all(void *db) { return tc##prefix##sync((type *)db); }                                     \
  static bool close_file(void *db) { return tc##prefix##close((type *)db); }                                  \
  static void free_object(void *db) { tc##prefix##del((type *)db); }                                          \
  static int error(void *db) { return tc##prefix##ecode((type *)db); }

#define TOKYO_KIND(name, path)                                                                 \
  const kind name = {path,   make,      open_file, report,   stats,      begin_session, get,   \
                     scan,   put,       put_new,   append,   change,     remove_row,    begin, \
                     commit, abort_all, sync_all,  optimize, close_file, free_object,   error};

/* The capabilities of both kinds, and those that only a tree has. */
#define TOKYO_HASH                                                                                          \
  (KV_CAN_PREFIX | KV_TRANSACTION | KV_TRANSACTION_READS | KV_MERGE_ADD | KV_MERGE_APPEND | KV_CAN_DELETE | \
   KV_DELETE_TELLS | KV_OVERWRITE | KV_CAN_NEW | KV_SINGLE_WRITER)
#define TOKYO_TREE (TOKYO_HASH | KV_ORDERED | KV_CAN_REVERSE)

extern const kind tokyo_tree, tokyo_hash;

uint32_t tokyo_open(const kv_driver *driver, const kind *kind, const kv_config *config, kv_opened *opened,
                    kv_database **database);
uint32_t tokyo_execute_tree(kv_session *session, kv_batch *batch);
uint32_t tokyo_execute_hash(kv_session *session, kv_batch *batch);

#endif
