/* The declarations shared by the files of this driver: the file and its settings, a session of it, and the options. */
#ifndef KVDYNO_SQLITE_SYSTEM_DATABASE_H
#define KVDYNO_SQLITE_SYSTEM_DATABASE_H

#include <pthread.h>
#include <sqlite3.h>

#include "kit.h"

enum {
  OPTION_COUNT = 5,
  TRIES = 12, /* attempts on a busy database; each waits for the busy timeout */
  COUNTER_COUNT = 4
};

#define CAPABILITIES                                                                                           \
  (KV_ORDERED | KV_CAN_REVERSE | KV_CAN_PREFIX | KV_CAN_DELETE | KV_DELETE_TELLS | KV_OVERWRITE | KV_CAN_NEW | \
   KV_MULTI_GET | KV_TRANSACTION | KV_TRANSACTION_READS | KV_KEYSPACES | KV_SINGLE_WRITER | KV_CAN_TOUCH)

/* The file, the settings of each connection, and one connection for maintenance, which also keeps the log open. */
struct kv_database {
  sqlite3 *keeper;
  char *file;
  char pragmas[320];
  int busy_timeout_ms;
  uint32_t keyspaces;
  pthread_mutex_t lock;             /* for the keeper and the counters */
  uint64_t counters[COUNTER_COUNT]; /* of the connections of ended sessions */
};

enum { GET, PUT, PUT_NEW, DELETE, SCANS, STATEMENTS = SCANS + 18 };
enum { BEGIN_READ, BEGIN_WRITE, COMMIT, ROLLBACK, CONTROLS };

/* A connection, the statements of transactions, and those of each keyspace; scans are prepared on first use. */
struct kv_session {
  kv_database *database;
  sqlite3 *connection;
  sqlite3_stmt *control[CONTROLS];
  sqlite3_stmt *statements[][STATEMENTS];
};

extern const kv_driver sqlite_system;
extern const kv_option sqlite_options[OPTION_COUNT];

uint32_t sqlite_open(const kv_config *config, kv_opened *opened, kv_database **database);
/* A new connection with the database's settings; null, with the text of the failure in `error`. */
sqlite3 *sqlite_connect(const kv_database *database, int is_new, char *error);
uint32_t sqlite_session(kv_database *database, const kv_arena *arena, kv_session **session, char *error);
uint32_t sqlite_session_end(kv_session *session, char *error);
/* Adds a connection's counters to those of the database. */
void sqlite_count(kv_database *database, sqlite3 *connection);
uint32_t sqlite_maintain(kv_database *database, uint32_t work, char *error);
uint32_t sqlite_stats(kv_database *database, char *out, uint64_t size);
uint32_t sqlite_close_all(kv_database *database, char *error);

#endif
