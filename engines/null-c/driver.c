/* The null engine in C: answers immediately and stores nothing. The baseline of drivers that are loaded as plug-ins. */
#include "kit.h"

#define CAPABILITIES                                                                                               \
  (KV_STORES_NOTHING | KV_IN_MEMORY | KV_ORDERED | KV_CAN_REVERSE | KV_CAN_PREFIX | KV_CAN_DELETE | KV_OVERWRITE | \
   KV_CAN_NEW | KV_MERGE_ADD | KV_MERGE_APPEND | KV_MULTI_GET | KV_TRANSACTION)

static uint32_t nothing(kv_session *session, kv_op *op, kv_batch *batch) {
  (void)session, (void)op, (void)batch;
  return KV_OK;
}

static uint32_t group(kv_session *session, kv_op *ops, uint32_t count, int atomic, kv_batch *batch) {
  (void)session, (void)atomic, (void)batch;
  for (uint32_t i = 0; i < count; i++) ops[i].status = KV_OK;
  return KV_OK;
}

static uint32_t execute(kv_session *session, kv_batch *batch) {
  static const kv_calls calls = {.capabilities = CAPABILITIES,
                                 .get = nothing,
                                 .put = nothing,
                                 .remove = nothing,
                                 .scan = nothing,
                                 .merge = nothing,
                                 .group = group};
  return kv_run(session, batch, &calls);
}

static const kv_driver driver;

/* A handle for the core, which requires one that is not null; it points to no data. */
static char handle;

static uint32_t open_nothing(const kv_config *config, kv_opened *opened, kv_database **database) {
  uint32_t status = kv_open_begin(&driver, config, opened);
  opened->level = KV_NONE; /* whatever was requested: a baseline appears next to the tables of every level */
  snprintf(opened->version, sizeof(opened->version), "1");
  snprintf(opened->compression, sizeof(opened->compression), "none");
  *database = (kv_database *)&handle;
  return status;
}

static uint32_t close_nothing(kv_database *database, char *error) {
  (void)database, (void)error;
  return KV_OK;
}

static const kv_driver driver = {.abi = KV_ABI,
                                 .size = sizeof(kv_driver),
                                 .name = "null-c",
                                 .engine = "does nothing, in C through the loader; the baseline of plug-ins",
                                 .language = "C",
                                 .family = "none",
                                 .capabilities = CAPABILITIES,
                                 .levels = 1u << KV_NONE,
                                 .open = open_nothing,
                                 .close = close_nothing,
                                 .session = kv_same_session,
                                 .session_end = kv_same_session_end,
                                 .execute = execute,
                                 .maintain = kv_no_maintain,
                                 .stats = kv_no_stats};

KV_EXPORT(&driver)
