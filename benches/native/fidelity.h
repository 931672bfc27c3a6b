/* Compares a driver with a hand-written loop on the same database handle; the common part of the benches in this
 * folder.
 *
 * A new bench needs only one source per plug-in, benches/native/NAME.c or NAME.cc; CMake finds it and builds
 * `bench-NAME` with the flags and libraries of the plug-in NAME (`cmake -S engines -B BUILD -DKVDYNO_BENCHES=ON`):
 *
 *     #include "../../engines/NAME/driver.c"                  // the driver itself, for access to its handle
 *     #include "fidelity.h"
 *
 *     typedef struct hand { DB *db; } hand;                   // state of the loops between calls
 *     static void *begin(kv_database *database) {...}         // after open, in the thread that runs the loops
 *     static void end(void *state) {...}                      // before close
 *     static void put(void *state, fidelity_block *block) {   // KEY_BYTES, VALUE_BYTES: see below
 *       hand *own = (hand *)state;
 *       FIDELITY_EACH(op, block) fidelity_check(own->db->put(op->key, op->value) == 0, "put");
 *     }
 *     static void get(...) { FIDELITY_EACH(op, block) {...} } // copies into op->out, the length into op->length
 *     static void scan(...) { FIDELITY_EACH(op, block) {...} } // SCAN_ROWS rows from op->key on, by fidelity_row
 *
 *     int main(int argc, char **argv) {
 *       static const fidelity_hand by_hand = {
 *           "NAME", KV_NONE, {{"option", "value"}, {NULL, NULL}}, begin, put, get, scan, end};
 *       return fidelity_main(argc, argv, &by_hand);
 *     }
 *
 * FIDELITY_EACH stamps each op with one clock read, as the kit does. Both sides work in the same threads on one
 * database, with keys, values and out buffers in one arena with the layout of the core's, in batches as large as the
 * core's (64, or fewer if calls are slow). They alternate after each batch, in the order A B B A, so that events on the
 * machine or in the engine's background affect both; no two batches have the same keys. Every value and row delivered
 * is checked outside the timed part. A batch during which the kernel preempted the thread is discarded. A round yields
 * one ratio of mean times per op; the row is the median of the rounds with an interval from order statistics. Fills
 * write each key once, in random order, half of them by each side, into a new database in each round.
 *
 * --small: tiny sizes, without meaning for speed. --op fill-random|read-random|scan-100: only that row.
 * --threads N (1). --rounds N, --keys N, --ops N (of a round and side). --side driver|hand: only that side, for perf
 * and callgrind.
 */
#ifndef KVDYNO_FIDELITY_H
#define KVDYNO_FIDELITY_H

#ifndef _GNU_SOURCE
#error "compile with -D_GNU_SOURCE: getrusage of a thread"
#endif

#include "kit.h"

enum { KEY_BYTES = 16, VALUE_BYTES = 100, SCAN_ROWS = 100, SCAN_BYTES = SCAN_ROWS * (8 + KEY_BYTES + VALUE_BYTES) };

#if defined(__x86_64__) || defined(__aarch64__)
#define FIDELITY_CLOCK KV_CLOCK_COUNTER
#else
#define FIDELITY_CLOCK KV_CLOCK_MONOTONIC
#endif

/* An op of the hand-written loop. */
typedef struct fidelity_op {
  const uint8_t *key;   /* KEY_BYTES */
  const uint8_t *value; /* VALUE_BYTES */
  uint8_t *out;         /* VALUE_BYTES, for a scan SCAN_BYTES */
  uint64_t length;      /* bytes delivered */
  uint64_t end;         /* tick */
} fidelity_op;

typedef struct fidelity_block {
  fidelity_op *ops;
  fidelity_op *after; /* the last one */
  uint64_t start;     /* tick */
} fidelity_block;

/* The hand-written side, and how the database is opened. */
typedef struct fidelity_hand {
  const char *name;        /* of the driver's table */
  uint32_t level;          /* a minimum, as in kv_config */
  kv_setting settings[16]; /* ends with a null name */
  void *(*begin)(kv_database *database);
  void (*put)(void *state, fidelity_block *block);
  void (*get)(void *state, fidelity_block *block);
  void (*scan)(void *state, fidelity_block *block);
  void (*end)(void *state);
} fidelity_hand;

/* Set before fidelity_main: the puts of a batch are one joined group, and so is a block of the hand-written loop.
 */
static int fidelity_is_joined __attribute__((unused));

KV_OUTLINE void fidelity_fail(const char *what) {
  fprintf(stderr, "fidelity: %s\n", what);
  exit(1);
}

KV_INLINE void fidelity_check(int is_right, const char *what) {
  if (__builtin_expect(!is_right, 0)) fidelity_fail(what);
}

KV_INLINE fidelity_op *fidelity_first(fidelity_block *block) {
  block->start = kv_ticks(FIDELITY_CLOCK);
  return block->ops;
}

/* The loop of the hand-written side: `op` is each op of the block in turn, and is stamped at the end of its turn. */
#define FIDELITY_EACH(op, block) \
  for (fidelity_op *op = fidelity_first(block); op != (block)->after; op->end = kv_ticks(FIDELITY_CLOCK), op++)

/* Appends a row to what a scan delivers; op->length begins at 0. */
KV_INLINE void fidelity_row(fidelity_op *op, const void *key, size_t key_length, const void *value,
                            size_t value_length) {
  const uint32_t lengths[2] = {(uint32_t)key_length, (uint32_t)value_length};
  uint8_t *row = op->out + op->length;
  fidelity_check(op->length + 8 + key_length + value_length <= SCAN_BYTES, "the scan's buffer is full");
  memcpy(row, lengths, 8);
  memcpy(row + 8, key, key_length);
  memcpy(row + 8 + key_length, value, value_length);
  op->length += 8 + key_length + value_length;
}

#include "rounds.h"

#endif
