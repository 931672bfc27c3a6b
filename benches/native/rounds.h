/* The rounds of a fidelity bench: database, arena, alternating batches of both sides, checks and the printed rows.
 * Included by fidelity.h. */
#ifndef KVDYNO_FIDELITY_ROUNDS_H
#define KVDYNO_FIDELITY_ROUNDS_H

#include "fidelity.h"

#include <ftw.h>
#include <math.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define FIDELITY_BATCH 64
#define FIDELITY_STEP 112 /* of slots of values and outs: the next multiple of 16, as in the core's arena */

enum fidelity_side { FIDELITY_DRIVER, FIDELITY_HAND };

typedef struct fidelity_bench {
  const fidelity_hand *hand;
  const kv_driver *driver;
  int is_small, rounds, threads, only_side; /* only_side: -1 = both */
  const char *only_op;
  uint32_t keys, ops; /* ops of a round and side; 0 = by kind */
  double ticks_per_us;
  /* The open database. */
  char folder[256];
  kv_database *database;
  kv_session *session;
  void *state;
  /* The arena, and the ops of the hand-written loop. */
  uint8_t *arena;
  kv_batch *batch;
  fidelity_op hand_ops[FIDELITY_BATCH];
  uint32_t stop, target;
  uint8_t (*sorted)[KEY_BYTES];
  uint32_t places[FIDELITY_BATCH]; /* expected rows of a scan of the batch: from this place of `sorted` on */
  uint64_t random;
  uint32_t next; /* next key to fill */
} fidelity_bench;

/* splitmix64's output function: one to one, so different numbers yield different keys. */
KV_INLINE uint64_t fidelity_mix(uint64_t number) {
  number += 0x9e3779b97f4a7c15u;
  number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9u;
  number = (number ^ (number >> 27)) * 0x94d049bb133111ebu;
  return number ^ (number >> 31);
}

KV_INLINE uint32_t fidelity_draw(fidelity_bench *bench, uint32_t below) {
  bench->random += 0x9e3779b97f4a7c15u;
  return (uint32_t)((fidelity_mix(bench->random) >> 32) * below >> 32);
}

KV_OUTLINE void fidelity_write_key(uint64_t number, uint8_t *key) {
  static const char digits[] = "0123456789abcdef";
  uint64_t bits = fidelity_mix(number);
  int i;
  for (i = 0; i < KEY_BYTES; i++, bits <<= 4) key[i] = (uint8_t)digits[bits >> 60];
}

/* The value of a key: half noise, half the same byte. */
KV_OUTLINE void fidelity_write_value(const uint8_t *key, uint8_t *value) {
  uint64_t words[KEY_BYTES / 8], noise;
  int i;
  memcpy(words, key, KEY_BYTES);
  noise = words[0] * 31 + words[1];
  memset(value, 'v', VALUE_BYTES);
  for (i = 0; i < VALUE_BYTES / 2; i += 8) {
    noise = fidelity_mix(noise);
    memcpy(value + i, &noise, VALUE_BYTES / 2 - i < 8 ? (size_t)(VALUE_BYTES / 2 - i) : 8);
  }
}

KV_OUTLINE int fidelity_order(const void *a, const void *b) { return memcmp(a, b, KEY_BYTES); }

KV_OUTLINE int fidelity_order_numbers(const void *a, const void *b) {
  const double left = *(const double *)a, right = *(const double *)b;
  return (left > right) - (left < right);
}

KV_OUTLINE int fidelity_remove_entry(const char *path, const struct stat *facts, int kind, struct FTW *place) {
  (void)facts, (void)kind, (void)place;
  return remove(path);
}

/* The bytes of an out buffer. */
KV_INLINE size_t fidelity_out_step(int kind) { return kind == KV_SCAN ? SCAN_BYTES : FIDELITY_STEP; }

/* Lays the arena out as the core does: the batch, its ops, keys, values, outs; every page touched. */
KV_OUTLINE void fidelity_make_arena(fidelity_bench *bench, size_t out_step) {
  const size_t ops = 320, keys = ops + FIDELITY_BATCH * sizeof(kv_op), values = keys + FIDELITY_BATCH * KEY_BYTES;
  const size_t outs = values + FIDELITY_BATCH * FIDELITY_STEP;
  const size_t size = (outs + FIDELITY_BATCH * out_step + 4095) / 4096 * 4096;
  uint8_t *base = (uint8_t *)aligned_alloc(4096, size);
  const kv_arena arena = {base, size};
  char error[KV_TEXT] = "";
  int i;
  fidelity_check(base != NULL, "out of memory");
  memset(base, 0, size);
  bench->arena = base;
  bench->batch = (kv_batch *)(void *)base;
  bench->batch->ops = (kv_op *)(void *)(base + ops);
  bench->batch->clock = FIDELITY_CLOCK;
  bench->batch->stop = &bench->stop;
  for (i = 0; i < FIDELITY_BATCH; i++) {
    kv_op *op = &bench->batch->ops[i];
    fidelity_op *hand = &bench->hand_ops[i];
    op->key = hand->key = base + keys + (size_t)i * KEY_BYTES;
    op->value = hand->value = base + values + (size_t)i * FIDELITY_STEP;
    op->out = hand->out = base + outs + (size_t)i * out_step;
    op->out_size = (uint32_t)out_step;
  }
  if (bench->driver->session(bench->database, &arena, &bench->session, error) != KV_OK) fidelity_fail(error);
}

/* Opens a new database in a new folder, with a session of the driver and the state of the hand-written loop. */
KV_OUTLINE void fidelity_open(fidelity_bench *bench, int kind) {
  const char *parent = getenv("TMPDIR");
  kv_opened opened;
  kv_config config;
  memset(&opened, 0, sizeof(opened));
  memset(&config, 0, sizeof(config));
  snprintf(bench->folder, sizeof(bench->folder), "%s/kvdyno-fidelity-XXXXXX", parent != NULL ? parent : "/tmp");
  fidelity_check(mkdtemp(bench->folder) != NULL, "no temporary folder");
  opened.size = sizeof(opened);
  config.abi = KV_ABI;
  config.size = sizeof(config);
  config.path = bench->folder;
  config.level = bench->hand->level;
  config.flags = KV_CREATE;
  config.cache_bytes = 64 << 20;
  config.expected_rows = bench->keys;
  config.disk_limit_bytes = (uint64_t)4 << 30;
  config.key_size_max = KEY_BYTES;
  config.value_size_max = VALUE_BYTES;
  config.threads = (uint32_t)bench->threads;
  config.keyspaces = 1;
  config.settings = bench->hand->settings;
  while (bench->hand->settings[config.setting_count].name != NULL) config.setting_count++;
  config.kinds = 1u << KV_PUT | 1u << kind;
  config.clock = FIDELITY_CLOCK;
  if (bench->driver->open(&config, &opened, &bench->database) != KV_OK) fidelity_fail(opened.error);
  fidelity_make_arena(bench, fidelity_out_step(kind));
  bench->state = bench->hand->begin(bench->database);
  bench->target = 8;
  bench->next = 0;
}

KV_OUTLINE void fidelity_close(fidelity_bench *bench) {
  char error[KV_TEXT] = "";
  bench->hand->end(bench->state);
  if (bench->driver->session_end(bench->session, error) != KV_OK) fidelity_fail(error);
  if (bench->driver->close(bench->database, error) != KV_OK) fidelity_fail(error);
  free(bench->arena);
  fidelity_check(nftw(bench->folder, fidelity_remove_entry, 16, FTW_DEPTH | FTW_PHYS) == 0, "cannot remove the folder");
}

/* Writes keys, values and ops of the next batch. */
KV_OUTLINE void fidelity_prepare(fidelity_bench *bench, int kind, uint32_t count) {
  uint32_t i;
  for (i = 0; i < count; i++) {
    kv_op *op = &bench->batch->ops[i];
    uint8_t *key = (uint8_t *)op->key;
    if (kind == KV_SCAN) {
      bench->places[i] = fidelity_draw(bench, bench->keys - SCAN_ROWS);
      memcpy(key, bench->sorted[bench->places[i]], KEY_BYTES);
    } else {
      fidelity_write_key(kind == KV_PUT ? bench->next++ : fidelity_draw(bench, bench->keys), key);
    }
    if (kind == KV_PUT) fidelity_write_value(key, (uint8_t *)op->value);
    op->kind = (uint8_t)kind;
    op->key_length = KEY_BYTES;
    op->value_length = kind == KV_PUT ? VALUE_BYTES : 0;
    op->flags = fidelity_is_joined && kind == KV_PUT && i + 1 < count ? KV_JOIN : 0;
    op->limit = kind == KV_SCAN ? SCAN_ROWS : 0;
    op->status = KV_NOT_RUN;
    op->length = bench->hand_ops[i].length = 0;
  }
}

/* Fails unless `out` is what op number `at` of the batch should have delivered. */
KV_OUTLINE void fidelity_verify(const fidelity_bench *bench, int kind, uint32_t at, const uint8_t *out,
                                uint64_t length) {
  uint8_t value[VALUE_BYTES];
  uint32_t lengths[2], row;
  if (kind == KV_GET) {
    fidelity_write_value(bench->batch->ops[at].key, value);
    fidelity_check(length == VALUE_BYTES && memcmp(out, value, VALUE_BYTES) == 0, "a get delivered another value");
  } else if (kind == KV_SCAN) {
    fidelity_check(length == SCAN_BYTES, "a scan delivered too few bytes");
    for (row = 0; row < SCAN_ROWS; row++, out += 8 + KEY_BYTES + VALUE_BYTES) {
      const uint8_t *key = bench->sorted[bench->places[at] + row];
      memcpy(lengths, out, 8);
      fidelity_check(lengths[0] == KEY_BYTES && lengths[1] == VALUE_BYTES, "a row of another size");
      fidelity_write_value(key, value);
      fidelity_check(memcmp(out + 8, key, KEY_BYTES) == 0, "a scan delivered another key");
      fidelity_check(memcmp(out + 8 + KEY_BYTES, value, VALUE_BYTES) == 0, "a scan delivered another value");
    }
  }
}

/* The size of the next batch, calculated as the core does from the time of this batch's call. */
KV_OUTLINE void fidelity_adapt(fidelity_bench *bench, uint64_t ticks) {
  const double us = (double)ticks / bench->ticks_per_us;
  if ((us > 8 && bench->target > 8) || us > 1000) {
    bench->target = bench->target / 2 > 0 ? bench->target / 2 : 1;
  } else if (bench->target < FIDELITY_BATCH && us < (bench->target < 8 ? 500 : 4)) {
    bench->target *= 2;
  }
}

/* How often the thread was preempted so far. */
KV_OUTLINE long fidelity_preempted(void) {
  struct rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw;
}

/* One batch by one side: the ticks inside its calls, or 0 if the thread was preempted. */
KV_OUTLINE uint64_t fidelity_run_batch(fidelity_bench *bench, int kind, int side, uint32_t count) {
  const fidelity_hand *hand = bench->hand;
  fidelity_block block = {bench->hand_ops, bench->hand_ops + count, 0};
  kv_batch *batch = bench->batch;
  uint64_t ticks;
  long before;
  uint32_t i;
  fidelity_prepare(bench, kind, count);
  before = fidelity_preempted();
  if (side == FIDELITY_DRIVER) {
    batch->count = count;
    batch->error[0] = 0;
    if (bench->driver->execute(bench->session, batch) != KV_OK) fidelity_fail(batch->error);
    ticks = batch->ops[count - 1].end - batch->ops[0].start; /* the end of one is the start of the next */
    fidelity_adapt(bench, ticks);
  } else {
    (kind == KV_PUT ? hand->put : kind == KV_GET ? hand->get : hand->scan)(bench->state, &block);
    ticks = block.after[-1].end - block.start;
  }
  if (fidelity_preempted() != before) ticks = 0;
  for (i = 0; i < count; i++) {
    const int is_driver = side == FIDELITY_DRIVER;
    if (is_driver) fidelity_check(batch->ops[i].status == KV_OK, "an op of the driver failed");
    fidelity_verify(bench, kind, i, batch->ops[i].out, is_driver ? batch->ops[i].length : bench->hand_ops[i].length);
  }
  return ticks;
}

/* A round of `ops` ops by each side, alternating; returns the mean ticks of an op. */
KV_OUTLINE void fidelity_run_round(fidelity_bench *bench, int kind, uint32_t ops, double mean[2]) {
  uint64_t ticks[2] = {0, 0}, counted[2] = {0, 0};
  uint32_t done[2] = {0, 0}, turn;
  for (turn = 0; done[0] < ops || done[1] < ops; turn++) {
    const int side = bench->only_side >= 0 ? bench->only_side : (int)((turn + 1) / 2 % 2);
    const uint32_t left = bench->only_side >= 0 ? 2 * ops - done[0] - done[1] : ops - done[side];
    const uint32_t count = bench->target < left ? bench->target : left;
    if (left == 0 && bench->only_side >= 0) break;
    if (left != 0) {
      const uint64_t took = fidelity_run_batch(bench, kind, side, count);
      done[side] += count;
      ticks[side] += took;
      counted[side] += took != 0 ? count : 0;
    }
  }
  for (turn = 0; turn < 2; turn++) mean[turn] = counted[turn] != 0 ? (double)ticks[turn] / (double)counted[turn] : NAN;
}

/* One of several threads of a round: its own session, arena and state of the loop. */
typedef struct fidelity_worker {
  fidelity_bench bench;
  pthread_t thread;
  pthread_barrier_t *barrier;
  int kind;
  uint32_t ops;
  double mean[2];
} fidelity_worker;

KV_OUTLINE void *fidelity_work(void *state) {
  fidelity_worker *own = (fidelity_worker *)state;
  fidelity_bench *bench = &own->bench;
  char error[KV_TEXT] = "";
  fidelity_make_arena(bench, fidelity_out_step(own->kind));
  bench->state = bench->hand->begin(bench->database);
  pthread_barrier_wait(own->barrier);
  fidelity_run_round(bench, own->kind, own->ops, own->mean);
  bench->hand->end(bench->state);
  if (bench->driver->session_end(bench->session, error) != KV_OK) fidelity_fail(error);
  free(bench->arena);
  return NULL;
}

/* A round of all threads, with `ops` ops of each side together; returns the mean ticks of an op. A thread alternates on
 * its own, so the two sides meet each other as often as themselves. */
KV_OUTLINE void fidelity_run_threads(fidelity_bench *bench, int kind, uint32_t ops, double mean[2]) {
  fidelity_worker *workers;
  pthread_barrier_t barrier;
  const int threads = bench->threads;
  int i;
  if (threads == 1) {
    fidelity_run_round(bench, kind, ops, mean);
    return;
  }
  workers = (fidelity_worker *)calloc((size_t)threads, sizeof(*workers));
  fidelity_check(workers != NULL, "out of memory");
  fidelity_check(pthread_barrier_init(&barrier, NULL, (unsigned)threads) == 0, "no barrier");
  for (i = 0; i < threads; i++) {
    fidelity_worker *worker = &workers[i];
    worker->bench = *bench;
    worker->bench.random = fidelity_mix(bench->random + (uint64_t)i);
    worker->bench.next = bench->next + (uint32_t)i * (2 * ops / (uint32_t)threads);
    worker->barrier = &barrier;
    worker->kind = kind;
    worker->ops = ops / (uint32_t)threads;
    fidelity_check(pthread_create(&worker->thread, NULL, fidelity_work, worker) == 0, "no thread");
  }
  mean[0] = mean[1] = 0;
  for (i = 0; i < threads; i++) {
    fidelity_check(pthread_join(workers[i].thread, NULL) == 0, "a thread is lost");
    mean[0] += workers[i].mean[0] / threads;
    mean[1] += workers[i].mean[1] / threads;
  }
  bench->random = workers[0].bench.random;
  bench->target = workers[0].bench.target;
  pthread_barrier_destroy(&barrier);
  free(workers);
}

/* Fills the open database through the driver and waits until it has settled. */
KV_OUTLINE void fidelity_fill(fidelity_bench *bench) {
  char error[KV_TEXT] = "";
  while (bench->next < bench->keys) {
    const uint32_t left = bench->keys - bench->next;
    fidelity_run_batch(bench, KV_PUT, FIDELITY_DRIVER, left < FIDELITY_BATCH ? left : FIDELITY_BATCH);
  }
  bench->driver->maintain(bench->database, KV_FLUSH, error);
  bench->driver->maintain(bench->database, KV_COMPACT, error);
  bench->driver->maintain(bench->database, KV_SETTLE, error);
}

/* The median of a sorted sample and the narrowest symmetric order statistics that contain it 95 times of 100. */
KV_OUTLINE void fidelity_interval(const double *sorted, int count, double *median, double *low, double *high) {
  double share = pow(0.5, count), outside = share;
  int rank = 0;
  *median = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
  while (rank + 1 < count / 2) {
    share *= (double)(count - rank) / (rank + 1);
    if (2 * (outside + share) > 0.05) break;
    outside += share;
    rank++;
  }
  *low = sorted[rank];
  *high = sorted[count - 1 - rank];
}

KV_OUTLINE void fidelity_print(const fidelity_bench *bench, const char *op, double goal, double *ratios, int count,
                               double hand_ns) {
  char name[128];
  double median, low, high;
  snprintf(name, sizeof(name), "%s %s, %d thread%s: inside the call, driver over loop", bench->hand->name, op,
           bench->threads, bench->threads == 1 ? "" : "s");
  if (bench->is_small) {
    printf("%-68s runs\n", name);
    return;
  }
  qsort(ratios, (size_t)count, sizeof(*ratios), fidelity_order_numbers);
  fidelity_interval(ratios, count, &median, &low, &high);
  printf("%-68s %9.2f %%      goal %7.1f  [%.2f, %.2f], n = %d: %s; %.0f ns in the loop\n", name, median, goal, low,
         high, count,
         high <= goal ? "ok"
         : low > goal ? "OVER"
                      : "not resolved",
         hand_ns);
  fflush(stdout);
}

/* One row: all rounds of one kind. */
KV_OUTLINE void fidelity_row_of(fidelity_bench *bench, const char *op, int kind, double goal, uint32_t ops) {
  double *ratios = (double *)calloc((size_t)bench->rounds, sizeof(double)), mean[2], hand_ns = 0;
  int round, count = 0;
  if (bench->only_op != NULL && strcmp(bench->only_op, op) != 0) return;
  if (bench->ops != 0) ops = bench->ops;
  fidelity_check(ratios != NULL, "out of memory");
  if (kind != KV_PUT) {
    fidelity_open(bench, kind);
    fidelity_fill(bench);
    fidelity_run_threads(bench, kind, ops, mean);
  }
  for (round = 0; round < bench->rounds; round++) {
    if (kind == KV_PUT) fidelity_open(bench, kind);
    fidelity_run_threads(bench, kind, kind == KV_PUT ? bench->keys / 2 : ops, mean);
    if (kind == KV_PUT) fidelity_close(bench);
    if (isnan(mean[0]) || isnan(mean[1])) continue;
    ratios[count++] = (mean[FIDELITY_DRIVER] / mean[FIDELITY_HAND] - 1) * 100;
    hand_ns += mean[FIDELITY_HAND] / bench->ticks_per_us * 1000;
  }
  if (kind != KV_PUT) fidelity_close(bench);
  if (bench->only_side >= 0)
    printf("%s %s: only one side\n", bench->hand->name, op);
  else if (count < 3)
    fidelity_fail("every round was disturbed");
  else
    fidelity_print(bench, op, goal, ratios, count, hand_ns / count);
  free(ratios);
}

/* All rows. Runs in its own thread, as the core's workers do: the allocator treats the first thread differently. */
KV_OUTLINE void *fidelity_run(void *state) {
  fidelity_bench *bench = (fidelity_bench *)state;
  struct timespec begin, now;
  const uint64_t from = kv_ticks(FIDELITY_CLOCK);
  uint32_t i;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  do clock_gettime(CLOCK_MONOTONIC, &now);
  while ((now.tv_sec - begin.tv_sec) * 1000000000ll + now.tv_nsec - begin.tv_nsec < 20000000);
  bench->ticks_per_us = (double)(kv_ticks(FIDELITY_CLOCK) - from) /
                        ((double)(now.tv_sec - begin.tv_sec) * 1e6 + (double)(now.tv_nsec - begin.tv_nsec) / 1e3);
  bench->sorted = (uint8_t(*)[KEY_BYTES])calloc(bench->keys, KEY_BYTES);
  fidelity_check(bench->sorted != NULL, "out of memory");
  for (i = 0; i < bench->keys; i++) fidelity_write_key(i, bench->sorted[i]);
  qsort(bench->sorted, bench->keys, KEY_BYTES, fidelity_order);
  fidelity_row_of(bench, fidelity_is_joined ? "fill-joined" : "fill-random", KV_PUT, 3, 0);
  if (bench->hand->get != NULL) fidelity_row_of(bench, "read-random", KV_GET, 3, bench->is_small ? 200 : 30000);
  if (bench->hand->scan != NULL) fidelity_row_of(bench, "scan-100", KV_SCAN, 10, bench->is_small ? 20 : 1000);
  free(bench->sorted);
  return NULL;
}

KV_OUTLINE int fidelity_main(int argc, char **argv, const fidelity_hand *hand) {
  fidelity_bench bench;
  pthread_t thread;
  const kv_drivers *list = kv_plugin();
  uint32_t i;
  int at;
  memset(&bench, 0, sizeof(bench));
  bench.hand = hand;
  bench.rounds = 21;
  bench.threads = 1;
  bench.keys = 100000;
  bench.only_side = -1;
  for (at = 1; at < argc; at++) {
    const char *value = at + 1 < argc ? argv[at + 1] : "";
    if (strcmp(argv[at], "--small") == 0) {
      bench.is_small = 1, bench.rounds = 3, bench.keys = 500;
      continue;
    }
    if (strcmp(argv[at], "--op") == 0)
      bench.only_op = value;
    else if (strcmp(argv[at], "--rounds") == 0)
      bench.rounds = atoi(value);
    else if (strcmp(argv[at], "--threads") == 0)
      bench.threads = atoi(value);
    else if (strcmp(argv[at], "--keys") == 0)
      bench.keys = (uint32_t)atoi(value);
    else if (strcmp(argv[at], "--ops") == 0)
      bench.ops = (uint32_t)atoi(value);
    else if (strcmp(argv[at], "--side") == 0)
      bench.only_side = strcmp(value, "hand") == 0 ? FIDELITY_HAND : FIDELITY_DRIVER;
    else
      fidelity_fail(
          "usage: [--small] [--op fill-random|read-random|scan-100] [--threads N] [--rounds N] [--keys N] [--ops N] "
          "[--side driver|hand]");
    at++;
  }
  fidelity_check(bench.rounds >= 3 && bench.keys > 2 * SCAN_ROWS, "at least 3 rounds, more than 200 keys");
  fidelity_check(bench.threads >= 1 && bench.threads <= 64, "1 to 64 threads");
  for (i = 0; i < list->count; i++)
    if (strcmp(list->drivers[i]->name, hand->name) == 0) bench.driver = list->drivers[i];
  fidelity_check(bench.driver != NULL, "no table of that name in the plug-in");
  fidelity_check(pthread_create(&thread, NULL, fidelity_run, &bench) == 0, "no thread");
  return pthread_join(thread, NULL);
}

#endif
