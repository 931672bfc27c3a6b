/* The engine of keeper.c, whose puts take a millisecond each, on every machine. */
#define kv_plugin keeper_plugin
#include "keeper.c"
#undef kv_plugin
#include <time.h>

static uint32_t put_slowly(kv_session *session, kv_op *op, kv_batch *batch) {
  const struct timespec millisecond = {.tv_nsec = 1000000};
  nanosleep(&millisecond, NULL);
  return write_one(session, op, batch);
}

/* Without `group`, the kit runs joined puts one by one. */
static uint32_t execute_slowly(kv_session *session, kv_batch *batch) {
  static const kv_calls calls = {.capabilities = CAPABILITIES, .get = get, .put = put_slowly, .remove = write_one};
  return kv_run(session, batch, &calls);
}

static const kv_driver slow = {.abi = KV_ABI,
                               .size = sizeof(kv_driver),
                               .name = "slow",
                               .engine = "puts take a millisecond",
                               .language = "C",
                               .family = "example",
                               .capabilities = CAPABILITIES,
                               .levels = 1u << KV_NONE,
                               .open = open_keeper,
                               .session = kv_same_session,
                               .execute = execute_slowly,
                               .session_end = kv_same_session_end,
                               .maintain = kv_no_maintain,
                               .stats = kv_no_stats,
                               .close = close_keeper};

KV_EXPORT(&slow)
