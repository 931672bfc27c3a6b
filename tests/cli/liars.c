/* The engine of keeper.c with one lie about its times, as its option says or LIE in the environment. What it stores and
 * answers is right, and its times are those of the kit before the lie changes them. Two tables: one leaves the loop of
 * a session to the core, the other drives it, and may break the rules of that too. */
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <unistd.h>

#define kv_plugin keeper_plugin
#include "keeper.c"
#undef kv_plugin

static const kv_option options[] = {{"lie", "text", "none", "what is not true"}};
enum {
  NONE,
  HIDES_DELAYS,
  HALF,
  TWO_THIRDS,
  TENTH_CALL,
  NO_TIME,
  LATE_BEGIN,
  EARLY_END,
  AHEAD,
  BEHIND,
  OTHER_CLOCK,
  UNSTAMPED,
  WAITED,
  WAITED_90,
  WAITED_HALF,
  GAPS,
  DECREASING,
  ONE_FOR_ALL,
  GROUP_APART,
  DRIVES_ELSEWHERE, /* true: on another thread */
  DRIVES_NEVER,
  DRIVES_EARLY,
  DRIVES_ON,
  DRIVES_LATE,
  DRIVES_TWICE,
  DRIVES_BADLY,
  DRIVES_AWAY,
  DRIVES_ONE
};
static const char *const lies[] = {
    "none",        "hides-delays", "half",       "two-thirds",  "tenth-call",  "no-time",   "late-begin",
    "early-end",   "ahead",        "behind",     "other-clock", "unstamped",   "waited",    "waited-90",
    "waited-half", "gaps",         "decreasing", "one-for-all", "group-apart", "elsewhere", "never",
    "early",       "on",           "late",       "twice",       "badly",       "away",      "one"};
static unsigned lie, calls_so_far, ops_so_far;
static pthread_t late;
static int is_late;
static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;

/* Shortens what ops took to `part` of 256, and moves them together, so that each begins where the one before ended. */
static void shorten(kv_batch *batch, uint64_t part) {
  const uint64_t start = batch->start;
  for (uint32_t i = 0; i < batch->done; i++) {
    batch->ops[i].start = start + (batch->ops[i].start - start) * part / 256;
    batch->ops[i].end = start + (batch->ops[i].end - start) * part / 256;
  }
}

/* No op begins before `from` or ends behind `to`. */
static void clip(kv_batch *batch, uint64_t from, uint64_t to) {
  if (batch->start < from) batch->start = from;
  for (uint32_t i = 0; i < batch->done; i++) {
    kv_op *op = &batch->ops[i];
    op->start = op->start < from ? from : op->start > to ? to : op->start;
    op->end = op->end < from ? from : op->end > to ? to : op->end;
  }
}

/* Moves all stamps, the batch's own too. */
static void move(kv_batch *batch, int64_t ticks) {
  batch->start += (uint64_t)ticks;
  for (uint32_t i = 0; i < batch->done; i++) {
    batch->ops[i].start += (uint64_t)ticks;
    batch->ops[i].end += (uint64_t)ticks;
  }
}

/* Ops that took more than `most` ticks say that they took so many; batches with groups, or that wait, are left alone.
 */
static void cap(kv_batch *batch, uint64_t most) {
  uint64_t clock = batch->start;
  for (uint32_t i = 0; i < batch->done; i++)
    if ((batch->ops[i].flags & KV_JOIN) || batch->ops[i].due != 0) return;
  for (uint32_t i = 0; i < batch->done; i++) {
    kv_op *op = &batch->ops[i];
    const uint64_t took = op->end - op->start;
    op->start = clock;
    clock = op->end = clock + (took < most ? took : most);
  }
}

static uint64_t nanoseconds(clockid_t clock) {
  struct timespec moment;
  clock_gettime(clock, &moment);
  return (uint64_t)moment.tv_sec * 1000000000u + (uint64_t)moment.tv_nsec;
}

static uint32_t slow_get(kv_session *session, kv_op *op, kv_batch *batch) {
  if (lie == HIDES_DELAYS && ++ops_so_far % 6000 == 0)
    for (uint64_t until = nanoseconds(CLOCK_MONOTONIC) + 600000; nanoseconds(CLOCK_MONOTONIC) < until;) continue;
  return get(session, op, batch);
}

static uint32_t execute_and_lie(kv_session *session, kv_batch *batch) {
  static const kv_calls calls = {
      .capabilities = CAPABILITIES, .get = slow_get, .put = write_one, .remove = write_one, .group = group};
  const uint64_t entered = kv_ticks(batch->clock);
  const uint32_t status = kv_run(session, batch, &calls);
  const uint32_t done = batch->done;
  kv_op *const ops = batch->ops;
  if (lie == NONE || done == 0) return status;
  const uint64_t start = batch->start, end = ops[done - 1].end, took = end - start;
  if (lie == HALF) shorten(batch, 127);
  if (lie == TWO_THIRDS) shorten(batch, 171);
  if (lie == TENTH_CALL && ops[done - 1].due == 0 && ++calls_so_far % 10 == 0) shorten(batch, 128);
  if (lie == NO_TIME) shorten(batch, 0);
  if (lie == LATE_BEGIN) clip(batch, start + took * 2 / 5, end);
  if (lie == EARLY_END) clip(batch, start, start + took * 3 / 5);
  if (lie == AHEAD) move(batch, 1000000000);
  if (lie == BEHIND) move(batch, -1000000000);
  if (lie == OTHER_CLOCK) move(batch, (int64_t)(nanoseconds(CLOCK_REALTIME) - start));
  if (lie == HIDES_DELAYS) cap(batch, 200000);
  if (lie == UNSTAMPED) batch->start = ops[0].start = ops[0].end = 0;
  if (lie == WAITED) batch->waited = 1;
  if (lie == WAITED_90) shorten(batch, 128), batch->waited = took * 9 / 10;
  if (lie == WAITED_HALF) shorten(batch, 128), batch->waited = took / 2 + (start - entered) / 2;
  if (lie == GAPS)
    for (uint32_t i = 0; i < done; i++) ops[i].start += (ops[i].end - ops[i].start) / 2;
  if (lie == DECREASING && done > 1) {
    const uint64_t first = ops[0].start;
    ops[0].start = ops[1].start, ops[1].start = first;
  }
  if (lie == ONE_FOR_ALL)
    for (uint32_t i = 0; i + 1 < done; i++) ops[i].start = ops[i].end = ops[i + 1].start = start;
  if (lie == GROUP_APART)
    for (uint32_t i = 0; i < done; i++)
      if (ops[i].flags & KV_JOIN) ops[i].end = ops[i].start;
  return status;
}

/* What another thread needs to drive a session. */
typedef struct loop {
  kv_session *session;
  kv_turn *turn;
  void *context;
  sem_t has_batch;
} loop;

static void *run_loop(void *argument) {
  const loop *own = argument;
  kv_batch *batch = own->turn(own->context, KV_OK);
  while (batch != NULL && lie != DRIVES_EARLY) batch = own->turn(own->context, execute_and_lie(own->session, batch));
  return NULL;
}

/* Runs a batch, although drive returns meanwhile. */
static void *run_on(void *argument) {
  loop *own = argument;
  kv_batch *batch = own->turn(own->context, KV_OK);
  sem_post(&own->has_batch);
  usleep(50000);
  if (batch != NULL) own->turn(own->context, execute_and_lie(own->session, batch));
  return NULL;
}

/* Takes turns that are another thread's, until it gets one that it does not run. */
static void *take_turns(void *argument) {
  const loop *own = argument;
  while (own->turn(own->context, KV_OK) == NULL) {
  }
  return NULL;
}

/* Takes a turn when drive has long returned. */
static void *take_late_turn(void *argument) {
  const loop *own = argument;
  usleep(20000);
  own->turn(own->context, KV_OK);
  return NULL;
}

static uint32_t drive(kv_session *session, kv_turn *turn, void *context) {
  pthread_t thread;
  loop *own = malloc(sizeof *own); /* never freed: threads that are late use it */
  *own = (loop){.session = session, .turn = turn, .context = context};
  if (lie == DRIVES_NEVER) return KV_OK;
  if (lie == DRIVES_ELSEWHERE) {
    pthread_create(&thread, NULL, run_loop, own);
    pthread_join(thread, NULL);
    return KV_OK;
  }
  if (lie == DRIVES_AWAY) {
    sem_init(&own->has_batch, 0, 0);
    pthread_create(&thread, NULL, run_on, own);
    pthread_detach(thread);
    sem_wait(&own->has_batch);
    return KV_OK;
  }
  if (lie == DRIVES_ONE) { /* no other session meanwhile */
    pthread_mutex_lock(&one);
    run_loop(own);
    pthread_mutex_unlock(&one);
    return KV_OK;
  }
  if (lie == DRIVES_TWICE) {
    pthread_create(&thread, NULL, take_turns, own);
    pthread_detach(thread);
  }
  run_loop(own);
  if (lie == DRIVES_ON) turn(context, KV_OK);
  if (lie == DRIVES_LATE) {
    if (is_late) pthread_join(late, NULL);
    pthread_create(&late, NULL, take_late_turn, own);
    is_late = 1;
  }
  return lie == DRIVES_BADLY ? KV_ERROR : KV_OK;
}

static uint32_t open_liar(const kv_driver *liar, const kv_config *config, kv_opened *opened, kv_database **database) {
  const char *wanted = kv_setting_text(liar, config, "lie");
  kv_config inner = *config;
  uint32_t status = kv_open_begin(liar, config, opened);
  if (status != KV_OK) return status;
  /* `kvdyno prove --only rules` sets no options. */
  if (strcmp(wanted, "none") == 0 && getenv("LIE") != NULL) wanted = getenv("LIE");
  for (lie = sizeof(lies) / sizeof(lies[0]) - 1; lie > NONE && strcmp(lies[lie], wanted) != 0;) lie--;
  inner.setting_count = 0;
  status = open_keeper(&inner, opened, database);
  opened->capabilities = liar->capabilities;
  kv_opened_setting(opened, "lie", "%s", kv_setting_text(liar, config, "lie"));
  return status;
}

/* A late turn is known only if it comes before close returns. */
static uint32_t close_liar(kv_database *database, char *error) {
  if (is_late) pthread_join(late, NULL);
  is_late = 0;
  return close_keeper(database, error);
}

static const kv_driver direct, driven;

static uint32_t open_direct(const kv_config *config, kv_opened *opened, kv_database **database) {
  return open_liar(&direct, config, opened, database);
}

static uint32_t open_driven(const kv_config *config, kv_opened *opened, kv_database **database) {
  return open_liar(&driven, config, opened, database);
}

#define LIAR(NAME, DRIVE, OPEN)                                                                                        \
  {                                                                                                                    \
    .abi = KV_ABI, .size = sizeof(kv_driver), .name = NAME, .engine = "lies about its times", .language = "C",         \
    .family = "example", .capabilities = CAPABILITIES, .levels = 1u << KV_NONE, .option_count = 1, .options = options, \
    .open = OPEN, .session = kv_same_session, .execute = execute_and_lie, .session_end = kv_same_session_end,          \
    .maintain = kv_no_maintain, .stats = kv_no_stats, .close = close_liar, .drive = DRIVE                              \
  }

static const kv_driver direct = LIAR("liar", NULL, open_direct);
static const kv_driver driven = LIAR("liar-driven", drive, open_driven);

KV_EXPORT(&direct, &driven)
