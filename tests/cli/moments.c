/* The engine of keeper.c, whose ops take a millisecond each, and which tells by a file when it has begun to put and to
 * get. */
#define kv_plugin keeper_plugin
#include "keeper.c"
#undef kv_plugin
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

static char folder[4096];

static void tell(const char *what) {
  char name[4200];
  snprintf(name, sizeof(name), "%s/%s", folder, what);
  close(open(name, O_WRONLY | O_CREAT, 0600));
}

static void pass_time(void) {
  const struct timespec millisecond = {.tv_nsec = 1000000};
  nanosleep(&millisecond, NULL);
}

static uint32_t put_slowly(kv_session *session, kv_op *op, kv_batch *batch) {
  tell("putting");
  pass_time();
  return write_one(session, op, batch);
}

static uint32_t get_slowly(kv_session *session, kv_op *op, kv_batch *batch) {
  tell("getting");
  pass_time();
  return get(session, op, batch);
}

static uint32_t execute_slowly(kv_session *session, kv_batch *batch) {
  static const kv_calls calls = {
      .capabilities = CAPABILITIES, .get = get_slowly, .put = put_slowly, .remove = write_one};
  return kv_run(session, batch, &calls);
}

static uint32_t open_slowly(const kv_config *config, kv_opened *opened, kv_database **database) {
  snprintf(folder, sizeof(folder), "%s", config->path);
  return open_keeper(config, opened, database);
}

static const kv_driver moments = {.abi = KV_ABI,
                                  .size = sizeof(kv_driver),
                                  .name = "moments",
                                  .engine = "tells what it does",
                                  .language = "C",
                                  .family = "example",
                                  .capabilities = CAPABILITIES,
                                  .levels = 1u << KV_NONE,
                                  .open = open_slowly,
                                  .session = kv_same_session,
                                  .execute = execute_slowly,
                                  .session_end = kv_same_session_end,
                                  .maintain = kv_no_maintain,
                                  .stats = kv_no_stats,
                                  .close = close_keeper};

KV_EXPORT(&moments)
