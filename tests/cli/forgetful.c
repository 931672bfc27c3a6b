/* An engine that stores nothing but does not say so, and that goes wrong as its option says when it is opened again,
 * read, or written: what a crash test must tell from each other. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include "kit.h"

#define CAPABILITIES (KV_CAN_DELETE | KV_OVERWRITE)

static const kv_option options[] = {
    {"fault", "text", "none",
     "hang-open, abort-open, error-open, hang-get, abort-get, zeros-get, error-put, abort-put, write-elsewhere, "
     "error-first-create, error-third-create, hang-first-put, slow-put"}};
static char fault[32];
static unsigned ops;
/* Whether this process has created the database: another one opens it after a crash. */
static int is_creator;
static uint8_t last[8192];
static uint32_t last_length;

static void hang_or_abort(const char *where) {
  char name[32];
  snprintf(name, sizeof(name), "hang-%s", where);
  if (!strcmp(fault, name))
    for (;;) pause();
  snprintf(name, sizeof(name), "abort-%s", where);
  if (!strcmp(fault, name)) abort();
}

static uint32_t get(kv_session *session, kv_op *op, kv_batch *batch) {
  static const char zeros[100];
  (void)session, (void)batch;
  hang_or_abort("get");
  /* The row that is put and read after all others. */
  if (op->key_length > 7 && !memcmp(op->key, "kvafter", 7)) return kv_deliver(op, last, last_length);
  if (strcmp(fault, "zeros-get")) return KV_NOT_FOUND;
  return kv_deliver(op, zeros, sizeof(zeros));
}

static uint32_t put(kv_session *session, kv_op *op, kv_batch *batch) {
  (void)session;
  if (op->kind == KV_PUT && op->key_length > 7 && !memcmp(op->key, "kvafter", 7) && op->value_length <= sizeof(last)) {
    memcpy(last, op->value, op->value_length);
    last_length = op->value_length;
  }
  /* Nothing is ever acknowledged. */
  if (is_creator && !strcmp(fault, "error-third-create"))
    for (;;) pause();
  if (is_creator) hang_or_abort("first-put");
  /* As on a slow disk. */
  if (is_creator && !strcmp(fault, "slow-put")) usleep(20000);
  unsigned count = __atomic_add_fetch(&ops, 1, __ATOMIC_RELAXED);
  int fails = !strcmp(fault, "error-put");
  /* No other thread reaches the moment of the crash before the failure is told. */
  if (count > 50 && fails)
    for (;;) pause();
  if (count != 50) return KV_OK;
  hang_or_abort("put");
  if (!fails) return KV_OK;
  snprintf(batch->error, sizeof(batch->error), "the page is torn");
  return KV_ERROR;
}

static uint32_t execute(kv_session *session, kv_batch *batch) {
  static const kv_calls calls = {.capabilities = CAPABILITIES, .get = get, .put = put, .remove = put};
  return kv_run(session, batch, &calls);
}

static const kv_driver driver;
static char handle;

static uint32_t open_forgetful(const kv_config *config, kv_opened *opened, kv_database **database) {
  uint32_t status = kv_open_begin(&driver, config, opened);
  for (uint32_t i = 0; i < config->setting_count; i++) snprintf(fault, sizeof(fault), "%s", config->settings[i].value);
  /* A file, so that the folder is not that of a database that was never created. */
  char path[4096];
  snprintf(path, sizeof(path), "%s/file", config->path);
  int file = open(path, O_CREAT | O_WRONLY, 0600);
  if (file >= 0) close(file);
  if (!strcmp(fault, "write-elsewhere")) {
    snprintf(path, sizeof(path), "%s/../../elsewhere", config->path);
    if (open(path, O_CREAT | O_WRONLY, 0600) < 0) abort();
  }
  if (config->flags & KV_CREATE) is_creator = 1;
  if (is_creator && !strcmp(fault, "error-first-create")) {
    snprintf(opened->error, sizeof(opened->error), "no first one");
    return KV_ERROR;
  }
  if (is_creator && !strcmp(fault, "error-third-create")) {
    snprintf(path, sizeof(path), "%s/../../created", config->path);
    file = open(path, O_CREAT | O_WRONLY | O_APPEND, 0600);
    if (file < 0 || write(file, "+", 1) != 1) abort();
    off_t count = lseek(file, 0, SEEK_END);
    close(file);
    if (count > 2) {
      snprintf(opened->error, sizeof(opened->error), "no third one");
      return KV_ERROR;
    }
  }
  if (!is_creator) {
    hang_or_abort("open");
    if (!strcmp(fault, "error-open")) {
      snprintf(opened->error, sizeof(opened->error), "bad magic");
      return KV_ERROR;
    }
  }
  opened->level = KV_PROCESS;
  snprintf(opened->version, sizeof(opened->version), "1");
  *database = (kv_database *)&handle;
  return status;
}

static uint32_t close_forgetful(kv_database *database, char *error) {
  (void)database, (void)error;
  return KV_OK;
}

static const kv_driver driver = {.abi = KV_ABI,
                                 .size = sizeof(kv_driver),
                                 .name = "forgetful",
                                 .engine = "stores nothing",
                                 .language = "C",
                                 .family = "example",
                                 .capabilities = CAPABILITIES,
                                 .levels = 1u << KV_PROCESS,
                                 .option_count = 1,
                                 .options = options,
                                 .open = open_forgetful,
                                 .close = close_forgetful,
                                 .session = kv_same_session,
                                 .session_end = kv_same_session_end,
                                 .execute = execute,
                                 .maintain = kv_no_maintain,
                                 .stats = kv_no_stats};

KV_EXPORT(&driver)
