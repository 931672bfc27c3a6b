/* A null engine that goes wrong as its option says, at its thousandth op: what the tool must survive. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include "kit.h"

#define CAPABILITIES (KV_STORES_NOTHING | KV_IN_MEMORY | KV_ORDERED | KV_CAN_DELETE | KV_OVERWRITE)

static const kv_option options[] = {{"fault", "text", "none", "segv, abort, exit, hang, stop, memory, files, error"}};
static char fault[32];
static unsigned ops;

static uint32_t go_wrong(kv_op *op, kv_batch *batch) {
  (void)op;
  if (!strcmp(fault, "segv")) *(volatile int *)8 = 0;
  if (!strcmp(fault, "abort")) fprintf(stderr, "engine: assertion failed: it was not\n"), abort();
  if (!strcmp(fault, "exit")) _exit(0);
  if (!strcmp(fault, "hang"))
    for (;;) pause();
  if (!strcmp(fault, "stop")) raise(SIGSTOP);
  if (!strcmp(fault, "memory")) fprintf(stderr, "memory allocation of 99 bytes failed\n"), abort();
  if (!strcmp(fault, "files")) {
    while (open("/dev/null", O_RDONLY) >= 0) continue;
    snprintf(batch->error, sizeof(batch->error), "%s", strerror(errno));
    return KV_ERROR;
  }
  snprintf(batch->error, sizeof(batch->error), "the page is torn");
  return KV_ERROR;
}

static uint32_t call(kv_session *session, kv_op *op, kv_batch *batch) {
  (void)session;
  return ++ops == 1000 && strcmp(fault, "none") ? go_wrong(op, batch) : KV_OK;
}

static uint32_t execute(kv_session *session, kv_batch *batch) {
  static const kv_calls calls = {.capabilities = CAPABILITIES, .get = call, .put = call, .remove = call, .scan = call};
  return kv_run(session, batch, &calls);
}

static const kv_driver driver;
static char handle;

static uint32_t open_faulty(const kv_config *config, kv_opened *opened, kv_database **database) {
  uint32_t status = kv_open_begin(&driver, config, opened);
  for (uint32_t i = 0; i < config->setting_count; i++) snprintf(fault, sizeof(fault), "%s", config->settings[i].value);
  opened->level = KV_NONE;
  snprintf(opened->version, sizeof(opened->version), "1");
  *database = (kv_database *)&handle;
  return status;
}

static uint32_t close_faulty(kv_database *database, char *error) {
  (void)database, (void)error;
  return KV_OK;
}

static const kv_driver driver = {.abi = KV_ABI,
                                 .size = sizeof(kv_driver),
                                 .name = "faulty",
                                 .engine = "goes wrong",
                                 .language = "C",
                                 .family = "example",
                                 .capabilities = CAPABILITIES,
                                 .levels = 1u << KV_NONE,
                                 .option_count = 1,
                                 .options = options,
                                 .open = open_faulty,
                                 .close = close_faulty,
                                 .session = kv_same_session,
                                 .session_end = kv_same_session_end,
                                 .execute = execute,
                                 .maintain = kv_no_maintain,
                                 .stats = kv_no_stats};

KV_EXPORT(&driver)
