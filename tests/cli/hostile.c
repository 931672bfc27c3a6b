/* Engines that break one rule of driver.h at each op of one kind, as their option says: KIND/HOW or KIND/HOW/NUMBER, or
 * HOSTILE_FAULT in the environment. Two tables keep nothing: one owns up to that, the other does not. A third is the
 * example driver, which keeps its rows.
 */
#include <stdlib.h>
#include <unistd.h>
#include "kit.h"

#define CAPABILITIES                                                                                         \
  (KV_IN_MEMORY | KV_ORDERED | KV_CAN_DELETE | KV_OVERWRITE | KV_MULTI_GET | KV_MERGE_ADD | KV_TRANSACTION | \
   KV_CAN_LONG_TRANSACTION | KV_LISTS)

static const kv_option options[] = {{"fault", "text", "none", "KIND/HOW/NUMBER"}};
static const char *const kinds[] = {"nothing", "get",    "put",   "delete", "scan", "merge",
                                    "begin",   "commit", "abort", "drop",   "push", "pop"};
static char kind_name[16], how[24];
static unsigned kind, number, pieces;

static int is(const char *name) { return strcmp(how, name) == 0; }

static uint32_t nothing(kv_session *session, kv_op *op, kv_batch *batch) {
  (void)session, (void)batch;
  op->rows = 0;
  op->length = 0;
  return KV_OK;
}

static uint32_t group(kv_session *session, kv_op *ops, uint32_t count, int atomic, kv_batch *batch) {
  (void)atomic;
  for (uint32_t i = 0; i < count; i++) ops[i].status = nothing(session, &ops[i], batch);
  return KV_OK;
}

/* One row of a scan that never ends: the same one, or always a later one. */
static void one_row(kv_op *op, uint32_t key) {
  const uint32_t lengths[2] = {4, 0};
  const uint8_t bytes[4] = {(uint8_t)(key >> 24), (uint8_t)(key >> 16), (uint8_t)(key >> 8), (uint8_t)key};
  memcpy(op->out, lengths, 8);
  memcpy(op->out + 8, bytes, 4);
  op->rows = 1;
  op->length = 12;
  op->needed = op->out_size;
  op->status = KV_SHORT;
}

static void break_op(kv_op *op) {
  if (is("print")) printf("\x1b[2J\x1b]0;owned\afrom the driver\n"), fflush(stdout);
  if (is("print-error")) fprintf(stderr, "\x1b[2J\x1b]0;owned\afrom the driver\n");
  if (is("status")) op->status = number;
  if (is("length")) op->length = (uint64_t)op->out_size + 1;
  if (is("huge")) op->length = UINT64_MAX;
  if (is("short")) op->status = KV_SHORT, op->needed = 1;
  if (is("rows")) op->rows = op->limit + 1;
  if (is("full")) op->status = KV_SHORT, op->rows = op->limit;
  if (is("same-row")) one_row(op, 0x61000000u);
  if (is("next-row")) one_row(op, 0x61000000u + pieces++);
  if (is("kind")) op->kind = KV_DROP;
  if (is("slot")) op->slot++;
  if (is("flags")) op->flags ^= KV_TOUCH;
  if (is("keyspace")) op->keyspace++;
  if (is("split")) op->split++;
  if (is("key")) op->key++;
  if (is("value")) op->value++;
  if (is("out")) op->out++;
  if (is("key-length")) op->key_length--;
  if (is("value-length")) op->value_length++;
  if (is("out-size")) op->out_size = UINT32_MAX;
  if (is("limit")) op->limit ^= 1;
  if (is("due")) op->due = 1;
  if (is("user")) op->user ^= 1;
  /* Memory that is not the driver's. */
  if (is("over")) op->out[op->out_size] = 1;
  if (is("far-over")) memset(op->out + op->out_size, 1, 8192);
  if (is("under")) op->out[-1] = 1;
  if (is("far-under")) op->out[-3000] = 1;
  if (is("key-past")) op->detail = ((const volatile uint8_t *)op->key)[op->key_length];
  if (is("value-past")) op->detail = ((const volatile uint8_t *)op->value)[op->value_length];
  if (is("key-write")) ((uint8_t *)(uintptr_t)op->key)[0] ^= 1;
  if (is("value-write")) ((uint8_t *)(uintptr_t)op->value)[0] ^= 1;
}

static int is_text(const char *what) { return strcmp(kind_name, "text") == 0 && is(what); }

/* Texts that do not end, and a level that there is not. */
static void break_opened(kv_opened *opened) {
  if (is_text("version")) memset(opened->version, 'x', sizeof(opened->version));
  if (is_text("compression")) memset(opened->compression, 'x', sizeof(opened->compression));
  if (is_text("options")) memset(opened->settings, 'x', sizeof(opened->settings));
  if (is_text("level")) opened->level = 7;
}

static void break_batch(kv_batch *batch) {
  static const uint32_t never;
  if (is("none-done")) batch->done = 0;
  if (is("less-done")) batch->done--;
  if (is("more-done")) batch->done++;
  if (is("most-done")) batch->done = UINT32_MAX;
  if (is("half-group"))
    for (uint32_t i = 0; i < batch->count; i++)
      if (batch->ops[i].flags & KV_JOIN) {
        batch->done = i + 1;
        return;
      }
  if (is("count")) batch->count = 0;
  if (is("ops")) batch->ops++;
  if (is("deadline")) batch->deadline = 1;
  if (is("stop")) batch->stop = &never;
  if (is("clock")) batch->clock ^= 1;
}

/* Runs the batch by `run`, and breaks it. */
static uint32_t execute_with(kv_session *session, kv_batch *batch, uint32_t (*run)(kv_session *, kv_batch *)) {
  uint32_t status, done;
  /* Says that all is done, and does nothing. */
  if (is("idle") && batch->ops[0].kind == kind) {
    batch->done = batch->count;
    return KV_OK;
  }
  status = run(session, batch);
  if (is("mute") && batch->ops[0].kind == kind) return KV_ERROR;
  if (is_text("error")) {
    memset(batch->error, 'x', sizeof(batch->error));
    return KV_ERROR;
  }
  done = batch->done;
  if (done == 0 || batch->ops[0].kind != kind) return status;
  /* A process that outlives the trial, for a minute, with all that the trial has open. */
  if (is("fork") && pieces++ == 0 && fork() == 0) {
    alarm(60);
    for (;;) pause();
  }
  kv_op *ops = batch->ops;
  break_batch(batch);
  for (uint32_t i = 0; i < done; i++)
    if (ops[i].kind == kind) break_op(&ops[i]);
  return status;
}

static uint32_t do_nothing(kv_session *session, kv_batch *batch) {
  static const kv_calls calls = {.capabilities = CAPABILITIES,
                                 .get = nothing,
                                 .put = nothing,
                                 .remove = nothing,
                                 .scan = nothing,
                                 .merge = nothing,
                                 .control = nothing,
                                 .group = group,
                                 .push = nothing,
                                 .pop = nothing};
  return kv_run(session, batch, &calls);
}

static uint32_t execute(kv_session *session, kv_batch *batch) { return execute_with(session, batch, do_nothing); }

static void choose(const char *fault) {
  kind = KV_NOTHING, kind_name[0] = 0, how[0] = 0, number = 0;
  if (sscanf(fault, "%15[^/]/%23[^/]/%u", kind_name, how, &number) >= 2)
    for (kind = KV_POP; kind > KV_NOTHING && strcmp(kinds[kind], kind_name) != 0;) kind--;
}

static uint32_t open_with(const kv_driver *driver, const kv_config *config, kv_opened *opened, kv_database **database) {
  static char handle;
  uint32_t status = kv_open_begin(driver, config, opened);
  const char *fault = kv_setting_text(driver, config, "fault");
  /* `kvdyno prove --only rules` sets no options. */
  if (strcmp(fault, "none") == 0 && getenv("HOSTILE_FAULT") != NULL) fault = getenv("HOSTILE_FAULT");
  choose(fault);
  kv_opened_setting(opened, "fault", "%s", kv_setting_text(driver, config, "fault"));
  opened->level = KV_NONE;
  snprintf(opened->version, sizeof(opened->version), "1");
  break_opened(opened);
  *database = (kv_database *)&handle;
  return status;
}

static uint32_t stats(kv_database *database, char *out, uint64_t size) {
  if (!is_text("stats")) return kv_no_stats(database, out, size);
  memset(out, 'x', size);
  return KV_OK;
}

static const kv_driver hostile, bottom;

static uint32_t open_hostile(const kv_config *config, kv_opened *opened, kv_database **database) {
  return open_with(&hostile, config, opened, database);
}

static uint32_t open_floor(const kv_config *config, kv_opened *opened, kv_database **database) {
  return open_with(&bottom, config, opened, database);
}

static uint32_t close_hostile(kv_database *database, char *error) {
  (void)database, (void)error;
  return KV_OK;
}

#define DRIVER(NAME, CAN, OPEN)                                                                            \
  {                                                                                                        \
    .abi = KV_ABI, .size = sizeof(kv_driver), .name = NAME, .engine = "breaks a rule", .language = "C",    \
    .family = "example", .capabilities = CAPABILITIES | (CAN), .levels = 1u << KV_NONE, .option_count = 1, \
    .options = options, .open = OPEN, .close = close_hostile, .session = kv_same_session,                  \
    .session_end = kv_same_session_end, .execute = execute, .maintain = kv_no_maintain, .stats = stats     \
  }

#ifdef ENDLESS_NAME
static const char endless[8192] = {[0 ... 8191] = 'x'};
static const kv_driver hostile = DRIVER(endless, 0, open_hostile);
#else
static const kv_driver hostile = DRIVER("hostile", 0, open_hostile);
#endif
static const kv_driver bottom = DRIVER("hostile-floor", KV_STORES_NOTHING, open_floor);

/* That of the example driver, which is linked in under this name. */
const kv_drivers *example_plugin(void);

static kv_driver rows;

static uint32_t execute_example(kv_session *session, kv_batch *batch) {
  return example_plugin()->drivers[0]->execute(session, batch);
}

static uint32_t execute_rows(kv_session *session, kv_batch *batch) {
  return execute_with(session, batch, execute_example);
}

static uint32_t open_rows(const kv_config *config, kv_opened *opened, kv_database **database) {
  uint32_t status = example_plugin()->drivers[0]->open(config, opened, database);
  choose(getenv("HOSTILE_FAULT") != NULL ? getenv("HOSTILE_FAULT") : "none");
  if (status == KV_OK) break_opened(opened);
  return status;
}

__attribute__((visibility("default"))) const kv_drivers *kv_plugin(void) {
  static const kv_driver *const tables[] = {&hostile, &bottom, &rows};
  static const kv_drivers list = {KV_ABI, 3, tables};
  rows = *example_plugin()->drivers[0];
  rows.name = "hostile-rows";
  rows.open = open_rows;
  rows.execute = execute_rows;
  rows.stats = stats;
  return &list;
}
