/* Plug-ins that go wrong while they are loaded, and tables that are not as driver.h wants them: one for each KIND_...
 * that is defined. Without one it is a sound engine named `sound`, which keeps nothing. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "kit.h"

#ifndef NAME
#define NAME "sound"
#endif
#ifndef TEXT
#define TEXT "keeps nothing"
#endif
#ifndef CAPABILITIES
#define CAPABILITIES (KV_STORES_NOTHING | KV_IN_MEMORY | KV_OVERWRITE)
#endif
#ifndef ABI
#define ABI KV_ABI
#endif
#ifndef DEFAULT
#define DEFAULT "1M"
#endif

__attribute__((constructor)) static void at_load(void) {
#ifdef KIND_EXIT
  exit(KIND_EXIT);
#elif defined KIND_ABORT
  fputs("last \033[31mwords\n", stderr);
  abort();
#elif defined KIND_SEGFAULT
  *(volatile int *)8 = 1;
#elif defined KIND_HANG
  for (;;) pause();
#elif defined KIND_PRINT
  puts("{\"Ended\":[0,{\"Ok\":[]}]}");
  puts("babble on stdout");
  fputs("babble on stderr\n", stderr);
#elif defined KIND_FORK
  /* Both go on: the copy, too, returns from dlopen. */
  if (fork() < 0) abort();
#endif
}

#ifdef KIND_UNDEFINED
extern int nobody_defines_this(void);
#endif

static uint32_t nothing(kv_session *session, kv_op *op, kv_batch *batch) {
  (void)session, (void)op, (void)batch;
  return KV_OK;
}

static uint32_t execute(kv_session *session, kv_batch *batch) {
  static const kv_calls calls = {.capabilities = CAPABILITIES, .get = nothing, .put = nothing};
  return kv_run(session, batch, &calls);
}

static const kv_driver table;
static char handle;

static uint32_t open_nothing(const kv_config *config, kv_opened *opened, kv_database **database) {
  uint32_t status = kv_open_begin(&table, config, opened);
  if (status != KV_OK) return status;
  for (uint32_t i = 0; i < config->setting_count; i++) {
    const char *value = config->settings[i].value;
    if (*value < '1' || *value > '9' || strspn(value, "0123456789") != strlen(value))
      return kv_fail_open(opened, KV_ERROR, "size is \033[31m%s", value);
  }
  opened->level = KV_NONE;
  snprintf(opened->version, sizeof(opened->version), "1.0\033[31m");
  snprintf(opened->compression, sizeof(opened->compression), "none");
  snprintf(opened->settings, sizeof(opened->settings), "size=1048576\n");
  *database = (kv_database *)&handle;
  return status;
}

static uint32_t close_nothing(kv_database *database, char *error) {
  (void)database, (void)error;
  return KV_OK;
}

static const kv_option options[] = {
#ifdef KIND_NULL_OPTION
    {NULL, NULL, NULL, NULL},
#else
    {"size", "bytes", DEFAULT, "of \033[31mnothing"},
#endif
};

#ifdef KIND_UNTERMINATED
static const char unterminated[4096] = {[0 ... 4095] = 'a'};
#undef NAME
#define NAME unterminated
#endif

static const kv_driver table = {
    .abi = KV_ABI,
    .size = sizeof(kv_driver),
    .name = NAME,
    .engine = TEXT,
    .language = "C",
    .family = "none",
    .capabilities = CAPABILITIES,
    .levels = 1u << KV_NONE,
    .option_count = 1,
    .options = options,
#ifndef KIND_NO_ENTRY
    .open = open_nothing,
#endif
    .session = kv_same_session,
    .execute = execute,
    .session_end = kv_same_session_end,
    .maintain = kv_no_maintain,
    .stats = kv_no_stats,
    .close = close_nothing,
};

#ifdef KIND_TWO
#define COUNT 2
static const kv_driver *const tables[] = {&table, &table};
#elif defined KIND_NONE
#define COUNT 0
static const kv_driver *const tables[] = {NULL};
#elif defined KIND_NULL_TABLE
#define COUNT 1
static const kv_driver *const tables[] = {NULL};
#else
#define COUNT 1
static const kv_driver *const tables[] = {&table};
#endif

static const kv_drivers list = {ABI, COUNT, tables};

#ifndef KIND_NO_SYMBOL
__attribute__((visibility("default"))) const kv_drivers *kv_plugin(void) {
#ifdef KIND_UNDEFINED
  nobody_defines_this();
#endif
#ifdef KIND_NULL_LIST
  return NULL;
#endif
  return &list;
}
#endif
