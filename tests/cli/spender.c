/* An engine that stores nothing, and whose puts cost what this file says: see tests/cli/costs.rs. */
#include <fcntl.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "kit.h"

#define CAPABILITIES (KV_STORES_NOTHING | KV_OVERWRITE | KV_CAN_NEW)

/* What a put costs. */
enum { WRITTEN_BYTES = 8192, READ_BYTES = 512, CALLING_NS = 50000, BACKGROUND_NS = 100000, PUTS_PER_SYNC = 10 };

static struct {
  int file;
  off_t end;
  uint64_t asked, answered;
  int ends;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  pthread_t thread;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static uint64_t cpu_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Uses so much CPU time of its thread, however long that takes. */
static void burn(uint64_t ns) {
  uint64_t start = cpu_ns();
  while (cpu_ns() - start < ns) {
  }
}

/* Does a piece of work for each put. */
static void *background(void *nothing) {
  pthread_mutex_lock(&state.lock);
  while (!state.ends) {
    if (state.answered == state.asked) {
      pthread_cond_wait(&state.changed, &state.lock);
      continue;
    }
    pthread_mutex_unlock(&state.lock);
    burn(BACKGROUND_NS);
    pthread_mutex_lock(&state.lock);
    state.answered++;
    pthread_cond_broadcast(&state.changed);
  }
  pthread_mutex_unlock(&state.lock);
  return nothing;
}

static uint32_t put(kv_session *session, kv_op *op, kv_batch *batch) {
  static const char written[WRITTEN_BYTES];
  char read[READ_BYTES];
  (void)session;
  burn(CALLING_NS);
  if (pwrite(state.file, written, WRITTEN_BYTES, state.end) != WRITTEN_BYTES)
    return kv_fail(batch, op, KV_ERROR, "pwrite failed");
  state.end += WRITTEN_BYTES;
  if (pread(state.file, read, READ_BYTES, 0) != READ_BYTES) return kv_fail(batch, op, KV_ERROR, "pread failed");
  pthread_mutex_lock(&state.lock);
  uint64_t turn = ++state.asked;
  if (turn % PUTS_PER_SYNC == 0) fdatasync(state.file);
  pthread_cond_broadcast(&state.changed);
  while (state.answered < turn) pthread_cond_wait(&state.changed, &state.lock);
  pthread_mutex_unlock(&state.lock);
  return KV_OK;
}

static uint32_t execute(kv_session *session, kv_batch *batch) {
  static const kv_calls calls = {.capabilities = CAPABILITIES, .put = put};
  return kv_run(session, batch, &calls);
}

static const kv_driver driver;
static char handle;

static uint32_t open_file(const kv_config *config, kv_opened *opened, kv_database **database) {
  char name[4096];
  uint32_t status = kv_open_begin(&driver, config, opened);
  opened->level = KV_NONE;
  snprintf(opened->version, sizeof(opened->version), "1");
  snprintf(opened->compression, sizeof(opened->compression), "none");
  snprintf(name, sizeof(name), "%s/file", config->path);
  state.file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
  state.end = 0, state.ends = 0, state.asked = state.answered = 0;
  if (state.file < 0 || pthread_create(&state.thread, NULL, background, NULL) != 0) return KV_ERROR;
  *database = (kv_database *)&handle;
  return status;
}

static uint32_t close_file(kv_database *database, char *error) {
  (void)database, (void)error;
  pthread_mutex_lock(&state.lock);
  state.ends = 1;
  pthread_cond_broadcast(&state.changed);
  pthread_mutex_unlock(&state.lock);
  pthread_join(state.thread, NULL);
  close(state.file);
  return KV_OK;
}

static const kv_driver driver = {.abi = KV_ABI,
                                 .size = sizeof(kv_driver),
                                 .name = "spender",
                                 .engine = "puts of a known cost",
                                 .language = "C",
                                 .family = "none",
                                 .capabilities = CAPABILITIES,
                                 .levels = 1u << KV_NONE,
                                 .open = open_file,
                                 .close = close_file,
                                 .session = kv_same_session,
                                 .session_end = kv_same_session_end,
                                 .execute = execute,
                                 .maintain = kv_no_maintain,
                                 .stats = kv_no_stats};

KV_EXPORT(&driver)
