/* Tests a plug-in through its table: what a driver copied from the example must still do. Run by `make check`. */
#if defined(__STRICT_ANSI__)
#define _POSIX_C_SOURCE 200809L
#endif
#include "driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPECT(condition)                                                     \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

enum { OPS = 64, OUT_SIZE = 256 };

/* One session with its own batch. */
typedef struct bench {
  const kv_driver *driver;
  kv_session *session;
  kv_batch batch;
  kv_op ops[OPS];
  uint8_t out[OPS][OUT_SIZE];
  uint32_t stop;
} bench;

static uint64_t now_ns(void) {
  struct timespec moment;
  clock_gettime(CLOCK_MONOTONIC, &moment);
  return (uint64_t)moment.tv_sec * 1000000000u + (uint64_t)moment.tv_nsec;
}

static void begin(bench *b) {
  memset(&b->batch, 0, sizeof(b->batch));
  memset(b->ops, 0, sizeof(b->ops));
  b->batch.ops = b->ops;
  b->batch.stop = &b->stop;
  b->stop = 0;
}

static kv_op *add(bench *b, uint8_t kind, uint16_t flags, const char *key, const char *value) {
  uint32_t i = b->batch.count++;
  kv_op *op = &b->ops[i];
  op->kind = kind;
  op->flags = flags;
  op->key = (const uint8_t *)key;
  op->key_length = (uint32_t)strlen(key);
  op->value = (const uint8_t *)value;
  op->value_length = (uint32_t)strlen(value);
  op->out = b->out[i];
  op->out_size = OUT_SIZE;
  op->limit = kind == KV_SCAN ? UINT32_MAX : 0;
  op->status = KV_NOT_RUN;
  return op;
}

static uint32_t run(bench *b) { return b->driver->execute(b->session, &b->batch); }

static kv_op *one(bench *b, uint8_t kind, uint16_t flags, const char *key, const char *value) {
  begin(b);
  kv_op *op = add(b, kind, flags, key, value);
  run(b);
  EXPECT(b->batch.done == 1);
  return op;
}

static int holds(const kv_op *op, const char *value) {
  return op->status == KV_OK && op->length == strlen(value) && memcmp(op->out, value, op->length) == 0;
}

/* The keys of a scan's rows, each followed by a blank. */
static const char *keys_of(const kv_op *op) {
  static char text[4096];
  uint64_t at = 0;
  size_t used = 0;
  uint32_t lengths[2];
  for (uint32_t row = 0; row < op->rows; row++) {
    memcpy(lengths, op->out + at, 8);
    memcpy(text + used, op->out + at + 8, lengths[0]);
    used += lengths[0];
    text[used++] = ' ';
    at += 8 + (uint64_t)lengths[0] + lengths[1];
  }
  EXPECT(at == op->length);
  text[used] = 0;
  return text;
}

static uint32_t open_with(const kv_driver *driver, uint32_t level, const char *name, const char *value,
                          kv_opened *opened, kv_database **database) {
  kv_setting setting = {name, value};
  kv_config config;
  memset(&config, 0, sizeof(config));
  memset(opened, 0, sizeof(*opened));
  config.abi = KV_ABI;
  config.size = sizeof(config);
  config.path = ".";
  config.level = level;
  config.flags = KV_CREATE;
  config.threads = 1;
  config.keyspaces = 1;
  config.settings = &setting;
  config.setting_count = name != NULL;
  return driver->open(&config, opened, database);
}

static void refuses_what_it_cannot_open(const kv_driver *driver) {
  kv_opened opened;
  kv_database *database = NULL;
  EXPECT(open_with(driver, KV_NONE, "no-such", "1", &opened, &database) == KV_ERROR);
  EXPECT(strstr(opened.error, "no-such") != NULL);
  EXPECT(open_with(driver, KV_NONE, "room", "many", &opened, &database) == KV_ERROR);
  EXPECT(strstr(opened.error, "many") != NULL);
  EXPECT(open_with(driver, KV_POWER, NULL, NULL, &opened, &database) == KV_UNSUPPORTED);
  EXPECT(strstr(opened.error, "power") != NULL);
}

static void stores_and_delivers(bench *b) {
  EXPECT(one(b, KV_GET, 0, "k", "")->status == KV_NOT_FOUND);
  EXPECT(one(b, KV_PUT, 0, "k", "one")->status == KV_OK);
  EXPECT(holds(one(b, KV_GET, 0, "k", ""), "one"));
  EXPECT(one(b, KV_PUT, KV_NEW, "k", "two")->status == KV_EXISTS);
  EXPECT(one(b, KV_PUT, 0, "k", "three")->status == KV_OK);
  EXPECT(holds(one(b, KV_GET, 0, "k", ""), "three"));
  begin(b);
  add(b, KV_GET, 0, "k", "")->out_size = 4;
  EXPECT(run(b) == KV_OK && b->ops[0].status == KV_SHORT && b->ops[0].needed == 5);
  EXPECT(one(b, KV_DELETE, 0, "k", "")->status == KV_OK);
  EXPECT(one(b, KV_DELETE, 0, "k", "")->status == KV_NOT_FOUND);
  EXPECT(one(b, KV_PUT, KV_NEW, "k", "")->status == KV_OK);
  EXPECT(holds(one(b, KV_GET, 0, "k", ""), ""));
  EXPECT(one(b, KV_PUT, 0, "", "x")->status == KV_TOO_LARGE && b->batch.error[0] != 0);
  one(b, KV_DELETE, 0, "k", "");
}

static void refuses_what_it_does_not_declare(bench *b) {
  EXPECT(one(b, KV_GET, KV_TOUCH, "k", "")->status == KV_UNSUPPORTED);
  EXPECT(one(b, KV_SCAN, KV_HOLD, "k", "")->status == KV_UNSUPPORTED);
  EXPECT(one(b, KV_MERGE, 0, "k", "12345678")->status == KV_UNSUPPORTED);
  EXPECT(one(b, 200, 0, "k", "")->status == KV_UNSUPPORTED);
  begin(b);
  add(b, KV_PUT, 0, "k", "lives for a while")->limit = 5;
  add(b, KV_PUT, 0, "k", "elsewhere")->keyspace = 1;
  run(b);
  EXPECT(b->ops[0].status == KV_UNSUPPORTED && b->ops[1].status == KV_UNSUPPORTED);
  EXPECT(one(b, KV_GET, 0, "k", "")->status == KV_NOT_FOUND);
}

static void walks_in_both_directions(bench *b) {
  static const char *const keys[] = {"a", "ab", "abc", "b", "c\xff", "c\xff\xff", "d"};
  for (size_t i = 0; i < 7; i++) one(b, KV_PUT, 0, keys[i], "v");
  EXPECT(strcmp(keys_of(one(b, KV_SCAN, 0, "", "")), "a ab abc b c\xff c\xff\xff d ") == 0);
  EXPECT(strcmp(keys_of(one(b, KV_SCAN, 0, "aa", "b")), "ab abc ") == 0);
  EXPECT(strcmp(keys_of(one(b, KV_SCAN, KV_RESUME, "ab", "b")), "abc ") == 0);
  EXPECT(strcmp(keys_of(one(b, KV_SCAN, KV_REVERSE, "", "b")), "d c\xff\xff c\xff ") == 0);
  EXPECT(strcmp(keys_of(one(b, KV_SCAN, KV_REVERSE, "abb", "")), "ab a ") == 0);
  EXPECT(strcmp(keys_of(one(b, KV_SCAN, KV_REVERSE, "ab", "")), "ab a ") == 0);
  EXPECT(strcmp(keys_of(one(b, KV_SCAN, KV_REVERSE | KV_RESUME, "ab", "")), "a ") == 0);
  EXPECT(strcmp(keys_of(one(b, KV_SCAN, KV_PREFIX, "", "ab")), "ab abc ") == 0);
  EXPECT(strcmp(keys_of(one(b, KV_SCAN, KV_PREFIX | KV_REVERSE, "", "ab")), "abc ab ") == 0);
  EXPECT(strcmp(keys_of(one(b, KV_SCAN, KV_PREFIX | KV_REVERSE, "", "c\xff")), "c\xff\xff c\xff ") == 0);
  EXPECT(strcmp(keys_of(one(b, KV_SCAN, KV_PREFIX | KV_REVERSE, "", "")), "d c\xff\xff c\xff b abc ab a ") == 0);
  EXPECT(one(b, KV_SCAN, KV_KEYS, "", "b")->length == 3 * 8 + 6);
  begin(b);
  add(b, KV_SCAN, 0, "", "")->limit = 2;
  run(b);
  EXPECT(b->ops[0].status == KV_OK && strcmp(keys_of(&b->ops[0]), "a ab ") == 0);
}

/* Scans with a buffer for two rows and continues after the last one: delivers all rows once. */
static void resumes_where_the_buffer_ended(bench *b) {
  char last[8] = "", all[64] = "";
  for (uint32_t calls = 0;; calls++) {
    EXPECT(calls < 8);
    begin(b);
    kv_op *op = add(b, KV_SCAN, calls == 0 ? 0 : KV_RESUME, last, "");
    op->out_size = 22;
    run(b);
    EXPECT(op->status == KV_OK || (op->status == KV_SHORT && op->rows > 0 && op->needed > op->out_size - op->length));
    const char *keys = keys_of(op);
    strcat(all, keys);
    if (op->status == KV_OK) break;
    size_t length = strlen(keys) - 1, from = length;
    while (from > 0 && keys[from - 1] != ' ') from--;
    memcpy(last, keys + from, length - from);
    last[length - from] = 0;
  }
  EXPECT(strcmp(all, "a ab abc b c\xff c\xff\xff d ") == 0);
}

static void times_a_group_as_one(bench *b) {
  begin(b);
  add(b, KV_PUT, 0, "g0", "0");
  add(b, KV_PUT, KV_JOIN, "g1", "1");
  add(b, KV_GET, KV_JOIN, "g1", "");
  add(b, KV_GET, 0, "g2", "");
  add(b, KV_GET, 0, "g0", "");
  EXPECT(run(b) == KV_OK && b->batch.done == 5);
  EXPECT(b->ops[0].start == b->batch.start && b->ops[1].start == b->ops[0].end);
  for (int i = 2; i < 4; i++) EXPECT(b->ops[i].start == b->ops[1].start && b->ops[i].end == b->ops[1].end);
  EXPECT(b->ops[4].start == b->ops[3].end && b->ops[4].end >= b->ops[4].start);
  EXPECT(holds(&b->ops[2], "1") && b->ops[3].status == KV_NOT_FOUND && holds(&b->ops[4], "0"));
}

static void writes_all_of_a_transaction_or_nothing(bench *b) {
  begin(b);
  add(b, KV_PUT, KV_JOIN | KV_ATOMIC, "t1", "1");
  add(b, KV_PUT, KV_JOIN | KV_ATOMIC | KV_NEW, "g0", "is there");
  add(b, KV_DELETE, KV_ATOMIC, "g1", "");
  EXPECT(run(b) == KV_OK);
  EXPECT(b->ops[0].status == KV_OK && b->ops[1].status == KV_EXISTS && b->ops[2].status == KV_OK);
  EXPECT(holds(one(b, KV_GET, 0, "t1", ""), "1") && one(b, KV_GET, 0, "g1", "")->status == KV_NOT_FOUND);
  begin(b);
  add(b, KV_GET, 0, "t1", "");
  add(b, KV_PUT, KV_JOIN | KV_ATOMIC, "t2", "2");
  add(b, KV_PUT, KV_JOIN | KV_ATOMIC, "", "no key");
  add(b, KV_DELETE, KV_ATOMIC, "t1", "");
  EXPECT(run(b) == KV_ERROR && b->batch.error_op == 2 && b->batch.error[0] != 0 && b->batch.done == 4);
  for (int i = 1; i < 4; i++) EXPECT(b->ops[i].status == KV_TOO_LARGE);
  EXPECT(one(b, KV_GET, 0, "t2", "")->status == KV_NOT_FOUND && holds(one(b, KV_GET, 0, "t1", ""), "1"));
}

static void stops_when_told(bench *b) {
  begin(b);
  add(b, KV_GET, 0, "t1", "");
  b->stop = 1;
  EXPECT(run(b) == KV_OK && b->batch.done == 0 && b->ops[0].status == KV_NOT_RUN);
  begin(b);
  add(b, KV_GET, 0, "t1", "");
  b->batch.deadline = now_ns();
  EXPECT(run(b) == KV_OK && b->batch.done == 0 && b->ops[0].status == KV_NOT_RUN);
  begin(b);
  add(b, KV_GET, 0, "t1", "");
  add(b, KV_GET, 0, "t1", "")->due = UINT64_MAX;
  b->batch.deadline = now_ns() + 50000000;
  run(b);
  EXPECT(b->batch.done == 1 && b->ops[0].status == KV_OK && b->ops[1].status == KV_NOT_RUN);
}

static void waits_until_an_op_is_due(bench *b) {
  begin(b);
  uint64_t due = now_ns() + 200000;
  add(b, KV_GET, 0, "t1", "")->due = due;
  add(b, KV_GET, 0, "t1", "")->due = 1;
  run(b);
  EXPECT(b->batch.done == 2 && b->ops[0].start >= due && b->batch.waited == b->ops[0].start - b->batch.start);
  EXPECT(b->ops[1].start == b->ops[0].end);
  begin(b);
  b->batch.clock = KV_CLOCK_COUNTER;
  add(b, KV_GET, 0, "t1", "");
  add(b, KV_GET, 0, "t1", "");
  run(b);
  EXPECT(b->batch.done == 2 && b->batch.start <= b->ops[0].end && b->ops[0].end <= b->ops[1].end);
}

static void *fill(void *given) {
  bench *b = (bench *)given;
  char key[16];
  for (int i = 0; i < 2000; i++) {
    snprintf(key, sizeof(key), "%c%04d", b->out[0][0], i);
    EXPECT(one(b, KV_PUT, KV_NEW, key, "v")->status == KV_OK);
  }
  return NULL;
}

static void takes_writes_of_many_threads(const kv_driver *driver, kv_database *database) {
  static bench benches[2];
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) {
    benches[i].driver = driver;
    benches[i].out[0][0] = (uint8_t)('x' + i);
    EXPECT(driver->session(database, NULL, &benches[i].session, NULL) == KV_OK);
    EXPECT(pthread_create(&threads[i], NULL, fill, &benches[i]) == 0);
  }
  for (int i = 0; i < 2; i++) EXPECT(pthread_join(threads[i], NULL) == 0);
  EXPECT(holds(one(&benches[0], KV_GET, 0, "y1999", ""), "v"));
  for (int i = 0; i < 2; i++) EXPECT(driver->session_end(benches[i].session, NULL) == KV_OK);
}

int main(int count, char **arguments) {
  static bench b;
  kv_opened opened;
  kv_database *database = NULL;
  EXPECT(count == 2);
  void *plugin = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (plugin == NULL) fprintf(stderr, "%s\n", dlerror());
  EXPECT(plugin != NULL);
  void *symbol = dlsym(plugin, "kv_plugin");
  kv_plugin_entry entry;
  EXPECT(symbol != NULL);
  memcpy(&entry, &symbol, sizeof(entry)); /* ISO C has no cast from an object pointer to a function pointer */
  const kv_drivers *drivers = entry();
  EXPECT(drivers->abi == KV_ABI && drivers->count == 1);
  const kv_driver *driver = drivers->drivers[0];
  EXPECT(driver->abi == KV_ABI && driver->size == sizeof(kv_driver));

  refuses_what_it_cannot_open(driver);
  EXPECT(open_with(driver, KV_DEFAULT, "room", "7", &opened, &database) == KV_OK);
  EXPECT(opened.level == KV_NONE && opened.capabilities == driver->capabilities && opened.version[0] != 0);
  EXPECT(strcmp(opened.settings, "room=7\n") == 0);
  b.driver = driver;
  EXPECT(driver->session(database, NULL, &b.session, NULL) == KV_OK);
  stores_and_delivers(&b);
  refuses_what_it_does_not_declare(&b);
  walks_in_both_directions(&b);
  resumes_where_the_buffer_ended(&b);
  times_a_group_as_one(&b);
  writes_all_of_a_transaction_or_nothing(&b);
  stops_when_told(&b);
  waits_until_an_op_is_due(&b);
  EXPECT(driver->session_end(b.session, NULL) == KV_OK);
  takes_writes_of_many_threads(driver, database);
  EXPECT(driver->maintain(database, KV_FLUSH, NULL) == KV_OK);
  EXPECT(driver->close(database, NULL) == KV_OK);
  printf("%s: all checks passed\n", driver->name);
  return 0;
}
