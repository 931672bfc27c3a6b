/* The declarations shared by the files of this driver: the connection, a session of it, and the tables of B-tree and
 * LSM. */
#ifndef KVDYNO_WIREDTIGER_DATABASE_H
#define KVDYNO_WIREDTIGER_DATABASE_H

#include <pthread.h>
#include <wiredtiger.h>

#include "kit.h"

enum { BTREE_OPTIONS = 17, LSM_OPTIONS = 7 };

#define CAPABILITIES                                                                                        \
  (KV_ORDERED | KV_CAN_REVERSE | KV_CAN_PREFIX | KV_CAN_DELETE | KV_OVERWRITE | KV_CAN_NEW | KV_MULTI_GET | \
   KV_TRANSACTION | KV_TRANSACTION_READS | KV_KEYSPACES | KV_CAN_TOUCH)

struct kv_database {
  WT_EVENT_HANDLER handler; /* must be first: WiredTiger's callbacks find the database through it */
  WT_CONNECTION *connection;
  uint32_t keyspaces;
  int is_lsm;
  pthread_mutex_t lock;
  char message[KV_TEXT]; /* WiredTiger's messages since the last read */
};

struct kv_session {
  kv_database *database;
  WT_SESSION *session;
  int must_retry; /* WiredTiger requires it: a conflict, or too many of the transaction's pages in the cache */
  struct {
    WT_CURSOR *plain; /* puts whether or not the key exists */
    WT_CURSOR *exact; /* reports whether the key exists */
  } cursors[];
};

/* WiredTiger's configuration. */
typedef struct wiredtiger_texts {
  char connection[1024], table[1024];
  char pages[512]; /* the table's settings that must be the same at the next open */
} wiredtiger_texts;

extern const kv_driver wiredtiger_btree, wiredtiger_lsm;
extern const kv_option wiredtiger_options[BTREE_OPTIONS + LSM_OPTIONS];

uint32_t wiredtiger_configure(const kv_driver *driver, const kv_config *config, wiredtiger_texts *texts,
                              kv_opened *opened);
uint32_t wiredtiger_open_btree(const kv_config *config, kv_opened *opened, kv_database **database);
uint32_t wiredtiger_open_lsm(const kv_config *config, kv_opened *opened, kv_database **database);
/* The text of a failed call: the meaning of the code and WiredTiger's message. */
const char *wiredtiger_text(kv_database *database, int code, char text[KV_TEXT]);
uint32_t wiredtiger_session(kv_database *database, const kv_arena *arena, kv_session **session, char *error);
uint32_t wiredtiger_session_end(kv_session *session, char *error);
uint32_t wiredtiger_maintain(kv_database *database, uint32_t work, char *error);
uint32_t wiredtiger_statistics(kv_database *database, char *out, uint64_t size);
uint32_t wiredtiger_close(kv_database *database, char *error);

#endif
