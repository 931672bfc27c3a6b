/* What the Go side and the C side of the kit share. */
#ifndef KVDYNO_GLUE_H
#define KVDYNO_GLUE_H

#include <stddef.h>

#include "driver.h"

/* At most this many drivers in a plug-in. */
enum { KV_GO_DRIVERS = 64 };

/* A database or a session: a Go handle in C memory, because C must not hold pointers into Go. */
typedef struct kv_go_box {
  uintptr_t handle;
} kv_go_box;

/* Calls the core's `turn` (drive.go). */
kv_batch *kv_go_turn(uintptr_t turn, uintptr_t context, uint32_t status);

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
