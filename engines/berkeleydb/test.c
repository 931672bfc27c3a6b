/* Tests the plug-in through its table where `kvdyno prove` does not: indexes, options, deadlocks, foreign files. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver.h"

#define EXPECT(condition)                                                     \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

enum { OPS = 64, OUT_SIZE = 1 << 16, ROW_SIZE = 64 };

/* With DB_MULTIVERSION the library does not free all memory of its transactions when its environment is closed. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libdb-5.3.so\n"; }

static const kv_drivers *drivers;
static char root[64];

/* A database and a session of it, with a batch. */
typedef struct bench {
  const kv_driver *driver;
  char folder[128];
  kv_opened opened;
  kv_database *database;
  kv_session *session;
  kv_batch batch;
  kv_op ops[OPS];
  char keys[OPS][ROW_SIZE], values[OPS][ROW_SIZE];
  uint8_t out[OUT_SIZE];
  uint32_t stop;
} bench;

static const kv_driver *driver_named(const char *name) {
  for (uint32_t i = 0; i < drivers->count; i++)
    if (strcmp(drivers->drivers[i]->name, name) == 0) return drivers->drivers[i];
  return NULL;
}

static int remove_entry(const char *path, const struct stat *facts, int kind, struct FTW *place) {
  (void)facts, (void)kind, (void)place;
  return remove(path);
}

/* The request of an open. */
typedef struct want {
  const char *table;
  uint32_t level, keyspaces, threads;
  const kv_index *indexes;
  uint32_t index_count;
  kv_setting settings[4]; /* ends with a null name */
} want;

static uint32_t open_bench(bench *b, const want *want, uint32_t flags) {
  kv_config config;
  memset(&config, 0, sizeof(config));
  memset(&b->opened, 0, sizeof(b->opened));
  b->driver = driver_named(want->table);
  b->database = NULL;
  config.abi = KV_ABI;
  config.size = sizeof(config);
  config.path = b->folder;
  config.level = want->level;
  config.flags = flags;
  config.threads = want->threads != 0 ? want->threads : 1;
  config.keyspaces = want->keyspaces != 0 ? want->keyspaces : 1;
  config.indexes = want->indexes;
  config.index_count = want->index_count;
  config.settings = want->settings;
  config.cache_bytes = 4 << 20;
  while (want->settings[config.setting_count].name != NULL) config.setting_count++;
  return b->driver->open(&config, &b->opened, &b->database);
}

static void begin(bench *b, const want *want, uint32_t flags) {
  if ((flags & KV_CREATE) != 0) {
    snprintf(b->folder, sizeof(b->folder), "%s/XXXXXX", root);
    EXPECT(mkdtemp(b->folder) != NULL);
  }
  if (open_bench(b, want, flags) != KV_OK) {
    fprintf(stderr, "%s\n", b->opened.error);
    exit(1);
  }
  EXPECT(b->driver->session(b->database, NULL, &b->session, NULL) == KV_OK);
}

static void end(bench *b) {
  EXPECT(b->driver->session_end(b->session, NULL) == KV_OK);
  EXPECT(b->driver->close(b->database, NULL) == KV_OK);
}

static void clear(bench *b) {
  memset(&b->batch, 0, sizeof(b->batch));
  memset(b->ops, 0, sizeof(b->ops));
  b->batch.ops = b->ops;
  b->batch.stop = &b->stop;
}

static kv_op *add(bench *b, int kind, int flags, int keyspace, const char *key, const char *value) {
  const uint32_t i = b->batch.count++;
  kv_op *op = &b->ops[i];
  snprintf(b->keys[i], ROW_SIZE, "%s", key);
  snprintf(b->values[i], ROW_SIZE, "%s", value);
  op->kind = (uint8_t)kind;
  op->flags = (uint16_t)flags;
  op->keyspace = (uint16_t)keyspace;
  op->key = (const uint8_t *)b->keys[i];
  op->key_length = (uint32_t)strlen(key);
  op->value = (const uint8_t *)b->values[i];
  op->value_length = (uint32_t)strlen(value);
  op->out = b->out;
  op->out_size = OUT_SIZE;
  op->limit = kind == KV_SCAN ? UINT32_MAX : 0;
  op->status = KV_NOT_RUN;
  return op;
}

static uint32_t run(bench *b) { return b->driver->execute(b->session, &b->batch); }

static kv_op *one(bench *b, int kind, int flags, int keyspace, const char *key, const char *value) {
  clear(b);
  kv_op *op = add(b, kind, flags, keyspace, key, value);
  run(b);
  return op;
}

static uint32_t put(bench *b, const char *key, const char *value) { return one(b, KV_PUT, 0, 0, key, value)->status; }

/* The rows of a scan as `key=value `. */
static const char *rows_of(bench *b, int keyspace, int flags, const char *from) {
  static char text[OUT_SIZE * 2];
  kv_op *op = one(b, KV_SCAN, flags, keyspace, from, "");
  const uint8_t *at = b->out;
  size_t used = 0;
  uint32_t lengths[2];
  EXPECT(op->status == KV_OK);
  text[0] = 0;
  for (uint32_t row = 0; row < op->rows; row++) {
    memcpy(lengths, at, 8);
    used += (size_t)sprintf(text + used, "%.*s=%.*s ", (int)lengths[0], (const char *)at + 8, (int)lengths[1],
                            (const char *)at + 8 + lengths[0]);
    at += 8 + lengths[0] + lengths[1];
  }
  return text;
}

static int holds(bench *b, int keyspace, const char *key, const char *value) {
  kv_op *op = one(b, KV_GET, 0, keyspace, key, "");
  return op->status == KV_OK && op->length == strlen(value) && memcmp(b->out, value, op->length) == 0;
}

/* Keyspace 1: by bytes 0 and 1 of the value; keyspace 2: by bytes 2 and 3, clustering. */
static const kv_index two_indexes[] = {{0, 1, 0, 2, 0}, {0, 2, 2, 2, 1}};

static void keeps_index_rows(bench *b, int is_snapshot) {
  want want = {"berkeleydb", KV_NONE, 4, 1, two_indexes, 2, {{NULL, NULL}}};
  if (is_snapshot) want.settings[0] = (kv_setting){"snapshot", "true"};
  begin(b, &want, KV_CREATE);
  EXPECT(put(b, "k1", "bbyy1") == KV_OK && put(b, "k2", "aazz2") == KV_OK && put(b, "k3", "bbxx3") == KV_OK);
  EXPECT(strcmp(rows_of(b, 0, 0, ""), "k1=bbyy1 k2=aazz2 k3=bbxx3 ") == 0);
  EXPECT(strcmp(rows_of(b, 1, 0, ""), "aak2= bbk1= bbk3= ") == 0);
  EXPECT(strcmp(rows_of(b, 2, 0, ""), "xxk3=bbxx3 yyk1=bbyy1 zzk2=aazz2 ") == 0);
  EXPECT(strcmp(rows_of(b, 1, KV_REVERSE, "bbk2"), "bbk1= aak2= ") == 0);
  EXPECT(strcmp(rows_of(b, 2, KV_REVERSE, ""), "zzk2=aazz2 yyk1=bbyy1 xxk3=bbxx3 ") == 0);
  EXPECT(strcmp(rows_of(b, 2, KV_KEYS, "y"), "yyk1= zzk2= ") == 0);
  EXPECT(holds(b, 1, "bbk3", "") && holds(b, 2, "xxk3", "bbxx3"));
  EXPECT(one(b, KV_GET, 0, 1, "bbk2", "")->status == KV_NOT_FOUND);
  /* Overwrites move index rows, deletes remove them, refused ops leave them. */
  EXPECT(put(b, "k1", "ccyy4") == KV_OK && one(b, KV_DELETE, 0, 0, "k3", "")->status == KV_OK);
  EXPECT(one(b, KV_PUT, KV_NEW, 0, "k1", "ddww5")->status == KV_EXISTS);
  EXPECT(one(b, KV_PUT, KV_NEW, 0, "k4", "ddww6")->status == KV_OK);
  EXPECT(put(b, "k5", "sho") == KV_TOO_LARGE);
  EXPECT(one(b, KV_PUT, 0, 1, "aak9", "")->status == KV_UNSUPPORTED);
  EXPECT(one(b, KV_DELETE, 0, 2, "yyk1", "")->status == KV_UNSUPPORTED);
  EXPECT(strcmp(rows_of(b, 1, 0, ""), "aak2= cck1= ddk4= ") == 0);
  EXPECT(strcmp(rows_of(b, 2, 0, ""), "wwk4=ddww6 yyk1=ccyy4 zzk2=aazz2 ") == 0);
  end(b);
  begin(b, &want, 0);
  EXPECT(strcmp(rows_of(b, 2, 0, ""), "wwk4=ddww6 yyk1=ccyy4 zzk2=aazz2 ") == 0);
  EXPECT(put(b, "k2", "eezz7") == KV_OK);
  EXPECT(strcmp(rows_of(b, 1, 0, ""), "cck1= ddk4= eek2= ") == 0);
  end(b);
}

/* Joined puts in one call, transactions that fail and transactions that succeed. */
static void keeps_index_rows_of_groups(bench *b) {
  const want want = {"berkeleydb", KV_NONE, 3, 1, two_indexes, 2, {{NULL, NULL}}};
  begin(b, &want, KV_CREATE);
  clear(b);
  add(b, KV_PUT, KV_JOIN, 0, "k1", "bbyy1");
  add(b, KV_PUT, KV_JOIN, 0, "k2", "aazz2");
  add(b, KV_PUT, 0, 0, "k1", "ccxx3");
  EXPECT(run(b) == KV_OK && b->ops[0].status == KV_OK && b->ops[2].status == KV_OK);
  EXPECT(strcmp(rows_of(b, 1, 0, ""), "aak2= cck1= ") == 0);
  EXPECT(strcmp(rows_of(b, 2, 0, ""), "xxk1=ccxx3 zzk2=aazz2 ") == 0);
  clear(b);
  add(b, KV_PUT, KV_JOIN | KV_ATOMIC, 0, "k3", "ddww4");
  add(b, KV_DELETE, KV_JOIN | KV_ATOMIC, 0, "k1", "");
  add(b, KV_GET, KV_JOIN | KV_ATOMIC, 1, "ddk3", "");
  add(b, KV_GET, KV_ATOMIC, 0, "k2", "")->out_size = 2;
  run(b);
  EXPECT(b->ops[3].status == KV_SHORT && b->ops[3].needed == 5 && b->ops[0].status == KV_ABORTED);
  clear(b);
  add(b, KV_PUT, KV_JOIN | KV_ATOMIC, 0, "k3", "ddww4");
  add(b, KV_PUT, KV_ATOMIC, 0, "k4", "dd");
  run(b);
  EXPECT(b->ops[0].status == KV_ABORTED && b->ops[1].status == KV_TOO_LARGE);
  EXPECT(strcmp(rows_of(b, 1, 0, ""), "aak2= cck1= ") == 0);
  clear(b);
  add(b, KV_PUT, KV_JOIN | KV_ATOMIC, 0, "k3", "ddww4");
  add(b, KV_DELETE, KV_JOIN | KV_ATOMIC, 0, "k1", "");
  add(b, KV_GET, KV_ATOMIC, 1, "ddk3", "");
  EXPECT(run(b) == KV_OK && b->ops[2].status == KV_OK);
  EXPECT(strcmp(rows_of(b, 0, 0, ""), "k2=aazz2 k3=ddww4 ") == 0);
  EXPECT(strcmp(rows_of(b, 1, 0, ""), "aak2= ddk3= ") == 0);
  EXPECT(strcmp(rows_of(b, 2, 0, ""), "wwk3=ddww4 zzk2=aazz2 ") == 0);
  end(b);
}

/* Two threads write rows and overwrite each other's, and both scan: index rows always belong to rows. */
static void *write_rows(void *given) {
  bench *b = given;
  char key[ROW_SIZE], value[ROW_SIZE];
  for (int i = 0; i < 4000; i++) {
    snprintf(key, sizeof(key), "k%03d", rand() % 500);
    snprintf(value, sizeof(value), "%02d%02d%d", rand() % 100, rand() % 100, i);
    if (i % 7 == 0)
      EXPECT(one(b, KV_DELETE, 0, 0, key, "")->status <= KV_NOT_FOUND);
    else
      EXPECT(put(b, key, value) == KV_OK);
    if (i % 50 == 0) {
      kv_op *op = one(b, KV_SCAN, 0, 2, value, "");
      op->limit = 100;
      const uint8_t *at = b->out;
      uint32_t lengths[2];
      for (uint32_t row = 0; row < op->rows; row++) { /* clustering: the row's value at the same time */
        memcpy(lengths, at, 8);
        EXPECT(lengths[1] >= 4 && memcmp(at + 8, at + 8 + lengths[0] + 2, 2) == 0);
        at += 8 + lengths[0] + lengths[1];
      }
      EXPECT(op->status == KV_OK);
    }
  }
  return NULL;
}

static void keeps_index_rows_of_threads(bench *b, bench *other, const char *option) {
  const want want = {"berkeleydb", KV_NONE, 3, 2, two_indexes, 2, {{option, "true"}, {NULL, NULL}}};
  char text[OUT_SIZE], all[OUT_SIZE], key[ROW_SIZE], value[ROW_SIZE], index_key[2 * ROW_SIZE];
  pthread_t thread;
  size_t rows = 0;
  begin(b, &want, KV_CREATE);
  other->driver = b->driver;
  EXPECT(b->driver->session(b->database, NULL, &other->session, NULL) == KV_OK);
  EXPECT(pthread_create(&thread, NULL, write_rows, other) == 0);
  write_rows(b);
  EXPECT(pthread_join(thread, NULL) == 0);
  snprintf(all, sizeof(all), "%s", rows_of(b, 0, 0, ""));
  for (char *at = all; sscanf(at, "%60[^=]=%60s ", key, value) == 2; at = strchr(at, ' ') + 1, rows++) {
    snprintf(index_key, sizeof(index_key), "%.2s%s", value, key);
    EXPECT(holds(b, 1, index_key, ""));
    snprintf(index_key, sizeof(index_key), "%.2s%s", value + 2, key);
    EXPECT(holds(b, 2, index_key, value));
  }
  for (int space = 1; space <= 2; space++) {
    size_t found = 0;
    snprintf(text, sizeof(text), "%s", rows_of(b, space, 0, ""));
    for (char *at = text; (at = strchr(at, '=')) != NULL; at++) found++;
    EXPECT(found == rows && rows > 100);
  }
  EXPECT(b->driver->session_end(other->session, NULL) == KV_OK);
  end(b);
}

/* Each transaction of one thread uses the keyspaces in the opposite order, until there were enough deadlocks. */
static void *cross(void *given) {
  static uint64_t retries;
  bench *b = given;
  const int is_first = b->values[0][0] == 'a';
  char key[ROW_SIZE];
  for (int i = 0; i < 200000 && __atomic_load_n(&retries, __ATOMIC_RELAXED) < 50; i++) {
    clear(b);
    for (int k = 0; k < 8; k++) {
      snprintf(key, sizeof(key), "row%d", k);
      add(b, k % 3 == 2 ? KV_GET : KV_PUT, KV_ATOMIC | (k < 7 ? KV_JOIN : 0), (k + is_first) % 2, key, "xxxxxxxxxx");
    }
    EXPECT(run(b) == KV_OK);
    for (int k = 0; k < 8; k++) EXPECT(b->ops[k].status <= KV_NOT_FOUND);
    __atomic_fetch_add(&retries, b->ops[0].retries, __ATOMIC_RELAXED);
  }
  EXPECT(__atomic_load_n(&retries, __ATOMIC_RELAXED) > 0);
  return NULL;
}

static void retries_after_deadlocks(bench *b, bench *other, const char *table) {
  const want want = {table, KV_NONE, 2, 2, NULL, 0, {{"bulk_put", "false"}, {NULL, NULL}}};
  char stats[4096];
  pthread_t thread;
  begin(b, &want, KV_CREATE);
  other->driver = b->driver;
  EXPECT(b->driver->session(b->database, NULL, &other->session, NULL) == KV_OK);
  b->values[0][0] = 'a';
  other->values[0][0] = 'z';
  EXPECT(pthread_create(&thread, NULL, cross, other) == 0);
  cross(b);
  EXPECT(pthread_join(thread, NULL) == 0);
  EXPECT(b->driver->stats(b->database, stats, sizeof(stats)) == KV_OK);
  EXPECT(strstr(stats, "deadlocks=") != NULL && strstr(stats, "deadlocks=0\n") == NULL);
  EXPECT(b->driver->session_end(other->session, NULL) == KV_OK);
  end(b);
}

static uint32_t count_rows(bench *b, const char *last) {
  kv_op *op = one(b, KV_SCAN, KV_KEYS, 0, "", "");
  uint32_t rows = 0;
  char key[ROW_SIZE] = "";
  for (;; op = one(b, KV_SCAN, KV_KEYS | KV_RESUME, 0, key, "")) {
    rows += op->rows;
    EXPECT(op->status == KV_OK || op->status == KV_SHORT);
    if (op->status == KV_OK) break;
    memcpy(key, b->out + op->length - strlen(last), strlen(last));
  }
  return rows;
}

/* Everything in one transaction, with more pages than Berkeley DB's default number of locks. */
static void runs_in_one_transaction(bench *b, const char *child, const char *table) {
  want want = {table, KV_DEFAULT, 1, 1, NULL, 0, {{"single_transaction", "true"}, {"child_transactions", child}}};
  const uint32_t rows = 60000, is_tree = strcmp(table, "berkeleydb") == 0;
  char key[ROW_SIZE];
  begin(b, &want, KV_CREATE);
  EXPECT(b->opened.level == KV_NONE);
  for (uint32_t i = 0; i < rows; i++) {
    snprintf(key, sizeof(key), "key%08u", i * 7919 % rows);
    EXPECT(put(b, key, "012345678901234567890123456789012345678901234567890123456") == KV_OK);
  }
  if (is_tree) EXPECT(count_rows(b, key) == rows);
  EXPECT(b->driver->maintain(b->database, KV_FLUSH, NULL) == KV_OK);
  end(b);
  begin(b, &want, 0);
  EXPECT(one(b, KV_GET, 0, 0, key, "")->status == KV_OK);
  if (is_tree) EXPECT(count_rows(b, key) == rows);
  end(b);
}

static void locks_whole_databases(bench *b) {
  const want want = {"berkeleydb", KV_PROCESS, 2, 1, NULL, 0, {{"table_lock", "true"}, {NULL, NULL}}};
  begin(b, &want, KV_CREATE);
  EXPECT(put(b, "a", "1") == KV_OK && one(b, KV_PUT, 0, 1, "b", "2")->status == KV_OK);
  clear(b);
  add(b, KV_PUT, KV_JOIN | KV_ATOMIC, 0, "c", "3");
  add(b, KV_GET, KV_JOIN | KV_ATOMIC, 0, "a", "");
  add(b, KV_PUT, KV_ATOMIC, 1, "d", "4");
  EXPECT(run(b) == KV_OK && b->ops[2].status == KV_OK);
  EXPECT(b->driver->maintain(b->database, KV_COMPACT, NULL) == KV_OK);
  EXPECT(strcmp(rows_of(b, 0, 0, ""), "a=1 c=3 ") == 0 && strcmp(rows_of(b, 1, KV_REVERSE, ""), "d=4 b=2 ") == 0);
  end(b);
  begin(b, &want, 0);
  EXPECT(strcmp(rows_of(b, 0, 0, ""), "a=1 c=3 ") == 0);
  end(b);
}

static void refused(bench *b, const want *want, uint32_t flags, uint32_t status, const char *text) {
  const uint32_t got = open_bench(b, want, flags);
  if (got != status || strstr(b->opened.error, text) == NULL) {
    fprintf(stderr, "%s: status %u, `%s`, expected %u, `%s`\n", want->table, got, b->opened.error, status, text);
    exit(1);
  }
}

static void refuses_what_cannot_be(bench *b) {
  char name[256];
  FILE *file;
  snprintf(b->folder, sizeof(b->folder), "%s/XXXXXX", root);
  EXPECT(mkdtemp(b->folder) != NULL);
  refused(b, &(want){.table = "berkeleydb", .settings = {{"child_transactions", "true"}}}, KV_CREATE, KV_ERROR,
          "needs single_transaction");
  refused(b, &(want){.table = "berkeleydb", .settings = {{"snapshot", "true"}, {"table_lock", "true"}}}, KV_CREATE,
          KV_ERROR, "excludes");
  refused(b, &(want){.table = "berkeleydb", .settings = {{"deadlock", "fifo"}}}, KV_CREATE, KV_ERROR, "fifo");
  refused(b, &(want){.table = "berkeleydb", .settings = {{"page_size", "3000"}}}, KV_CREATE, KV_ERROR, "page size");
  refused(b, &(want){.table = "berkeleydb", .settings = {{"log_buffer", "99999999999"}}}, KV_CREATE, KV_ERROR,
          "too large");
  refused(b, &(want){.table = "berkeleydb", .threads = 2, .settings = {{"table_lock", "true"}}}, KV_CREATE,
          KV_UNSUPPORTED, "one thread");
  refused(b, &(want){.table = "berkeleydb-plain", .level = KV_PROCESS}, KV_CREATE, KV_UNSUPPORTED, "process");
  refused(b, &(want){.table = "berkeleydb-cds", .settings = {{"snapshot", "true"}}}, KV_CREATE, KV_ERROR, "snapshot");
  refused(b, &(want){.table = "berkeleydb"}, 0, KV_ERROR, "no database of berkeleydb");
  for (uint32_t i = 0; i < drivers->count; i++) {
    static const char *const suffixes[] = {"btree", "hash", "cds", "plain"};
    snprintf(name, sizeof(name), "%s/k0.%s", b->folder, suffixes[i]);
    file = fopen(name, "w");
    EXPECT(file != NULL);
    for (int k = 0; k < 9000; k++) fputc(k * 7 + k / 13, file);
    fclose(file);
    refused(b, &(want){.table = drivers->drivers[i]->name}, 0, KV_ERROR, "k0.");
  }
}

int main(int count, char **arguments) {
  static bench first, second;
  EXPECT(count == 2);
  void *plugin = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (plugin == NULL) fprintf(stderr, "%s\n", dlerror());
  EXPECT(plugin != NULL);
  kv_plugin_entry entry = (kv_plugin_entry)dlsym(plugin, "kv_plugin");
  EXPECT(entry != NULL);
  drivers = entry();
  EXPECT(drivers->abi == KV_ABI && drivers->count == 4);
  snprintf(root, sizeof(root), "./check-XXXXXX");
  EXPECT(mkdtemp(root) != NULL);
  refuses_what_cannot_be(&first);
  keeps_index_rows(&first, 0);
  keeps_index_rows(&first, 1);
  keeps_index_rows_of_groups(&first);
  keeps_index_rows_of_threads(&first, &second, "log_auto_remove");
  keeps_index_rows_of_threads(&first, &second, "snapshot");
  retries_after_deadlocks(&first, &second, "berkeleydb");
  runs_in_one_transaction(&first, "false", "berkeleydb");
  runs_in_one_transaction(&first, "true", "berkeleydb");
  runs_in_one_transaction(&first, "true", "berkeleydb-hash");
  locks_whole_databases(&first);
  EXPECT(nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS) == 0);
  printf("berkeleydb: all checks passed\n");
  return 0;
}
