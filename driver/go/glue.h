/* What the Go side and the C side of the kit share. */
#ifndef KVDYNO_GLUE_H
#define KVDYNO_GLUE_H

#include <pthread.h>
#include <stddef.h>

#include "driver.h"

/* At most this many drivers in a plug-in. */
enum { KV_GO_DRIVERS = 64 };

/* The state of a session's mail. */
enum { KV_GO_EMPTY, KV_GO_SENT, KV_GO_ANSWERED };

/* Where the thread that calls execute and the session's own goroutine meet (handover.c). */
typedef struct kv_go_mail {
  uint32_t state; /* the goroutine also reads it without the lock */
  uint32_t status;
  kv_batch *batch;   /* null: the session ends */
  uint64_t received; /* tick before the goroutine ran the batch */
  uint64_t ended;    /* and after it */
  pthread_mutex_t lock;
  pthread_cond_t is_sent;
  pthread_cond_t is_answered;
} kv_go_mail;

kv_go_mail *kv_go_mail_new(void);
void kv_go_mail_free(kv_go_mail *mail);

/* Which batches of a session that has mail are handed over. */
enum kv_go_rule {
  KV_GO_NEVER,
  KV_GO_SEVERAL, /* all, while there are several sessions */
  KV_GO_WRITES,  /* those with anything but reads */
  KV_GO_EITHER,  /* all, while there are several sessions; of one, those with anything but reads */
  KV_GO_ALWAYS
};

/* For the calling thread: passes a batch (its address; 0: the session ends), and returns when it has been run.
 */
uint32_t kv_go_hand_over(kv_go_mail *mail, uintptr_t batch);

/* For the goroutine: waits for the next batch; reports that it has been run. */
kv_batch *kv_go_receive(kv_go_mail *mail);
void kv_go_answer(kv_go_mail *mail, uint32_t status, uint64_t received, uint64_t ended);

/* A database or a session: a Go handle in C memory, because C must not hold pointers into Go. */
typedef struct kv_go_box {
  uintptr_t handle;
  kv_go_mail *mail;           /* of a session that may hand over batches; otherwise null */
  struct kv_go_box *database; /* of a session */
  uint32_t rule;              /* of a database: enum kv_go_rule */
  uint32_t sessions;          /* of a database: the number that is open now */
} kv_go_box;

/* Counts the sessions of a database: one more, or one less. */
void kv_go_count_session(kv_go_box *database, int32_t change);

/* Whether a batch (its address) must be handed over, by the rule of a database with this number of sessions. */
int kv_go_is_for_goroutine(uint32_t rule, uint32_t sessions, uintptr_t batch);

/* The table of driver `index`, to be filled in; its calls are set. */
kv_driver *kv_go_table(uint32_t index);

/* The layout of driver.h that Go must match, in bytes. */
enum {
  KV_GO_OP = sizeof(kv_op),
  KV_GO_OP_KEY = offsetof(kv_op, key),
  KV_GO_OP_KEY_LENGTH = offsetof(kv_op, key_length),
  KV_GO_OP_DUE = offsetof(kv_op, due),
  KV_GO_OP_START = offsetof(kv_op, start),
  KV_GO_OP_ROWS = offsetof(kv_op, rows),
  KV_GO_OP_STATUS = offsetof(kv_op, status),
  KV_GO_BATCH = sizeof(kv_batch),
  KV_GO_BATCH_STOP = offsetof(kv_batch, stop),
  KV_GO_BATCH_CLOCK = offsetof(kv_batch, clock),
  KV_GO_BATCH_ERROR = offsetof(kv_batch, error)
};

#endif
