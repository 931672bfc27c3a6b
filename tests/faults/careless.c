/* An engine that appends each put to a file, syncs it at level power, and reads each value from the file.
 *
 * Its option `ignores` names the system call whose failure it does not notice: none, sync, write, open or read; `hangs`
 * and `exits`: what it does when a write fails; `torn`: it reports that, and appends the next row after half of the
 * failed one; `tail`: after a kill it takes a row that it cannot read for the end of its file; `repeats`: it syncs
 * again until that succeeds; `ring`: it uses io_uring. It is sound with `none`: after a failed write or sync it takes
 * the put back and refuses all further ones.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "kit.h"

#define CAPABILITIES (KV_OVERWRITE | KV_SINGLE_THREAD)

static const kv_option options[] = {
    {"ignores", "text", "none", "none, sync, write, open, read, hangs, exits, torn, tail, repeats, ring"}};

/* The head of a row in the file; key and value follow. */
typedef struct head {
  uint32_t key_length, value_length;
} head;

struct kv_database {
  char ignores[32];
  char clean[4200]; /* A file that is there after a close. */
  uint32_t level;
  int file;
  off_t length;
  int has_failed;
};

static int ignores(const kv_database *database, const char *call) { return strcmp(database->ignores, call) == 0; }

static uint32_t fail(kv_batch *batch, const char *call) {
  snprintf(batch->error, sizeof(batch->error), "%s: %s", call, strerror(errno));
  return KV_ERROR;
}

/* Reads at a place of the file; its end is an error. */
static int reads(const kv_database *database, void *into, size_t length, off_t place) {
  errno = ENODATA;
  return pread(database->file, into, length, place) == (ssize_t)length;
}

/* The end of the rows that can be read. */
static off_t readable(const kv_database *database, off_t length) {
  off_t place = 0;
  head at;
  while (place < length && reads(database, &at, sizeof(at), place))
    place += (off_t)sizeof(at) + at.key_length + at.value_length;
  return place;
}

/* Submits nothing to a ring, as an engine does that waits for requests. */
static void use_ring(void) {
  char parameters[256] = {0};
  const long ring = syscall(SYS_io_uring_setup, 4, parameters);
  (void)syscall(SYS_io_uring_enter, ring, 0, 0, 0, NULL, 0);
}

static uint32_t get(kv_session *session, kv_op *op, kv_batch *batch) {
  kv_database *database = (kv_database *)session;
  static uint8_t key[1 << 16], value[1 << 20];
  off_t found = 0;
  head at, last = {0, 0};
  for (off_t place = 0; place < database->length; place += (off_t)sizeof(at) + at.key_length + at.value_length) {
    const off_t rest = place + (off_t)sizeof(at);
    if (!reads(database, &at, sizeof(at), place) || !reads(database, key, at.key_length, rest))
      return ignores(database, "read") ? (uint32_t)KV_NOT_FOUND : fail(batch, "read");
    if (kv_compare(key, at.key_length, op->key, op->key_length) != 0) continue;
    last = at;
    found = rest + at.key_length;
  }
  if (found == 0) return KV_NOT_FOUND;
  if (!reads(database, value, last.value_length, found))
    return ignores(database, "read") ? (uint32_t)KV_NOT_FOUND : fail(batch, "read");
  return kv_deliver(op, value, last.value_length);
}

static uint32_t put(kv_session *session, kv_op *op, kv_batch *batch) {
  kv_database *database = (kv_database *)session;
  const head made = {op->key_length, op->value_length};
  const size_t length = sizeof(made) + op->key_length + op->value_length;
  uint8_t *row = malloc(length);
  const char *failed = NULL;
  if (database->has_failed) {
    free(row);
    return fail(batch, "an earlier write");
  }
  memcpy(row, &made, sizeof(made));
  memcpy(row + sizeof(made), op->key, op->key_length);
  memcpy(row + sizeof(made) + op->key_length, op->value, op->value_length);
  if (pwrite(database->file, row, length, database->length) != (ssize_t)length) {
    while (ignores(database, "hangs")) pause();
    if (ignores(database, "exits")) _exit(7);
    if (!ignores(database, "write")) failed = "write";
  } else if (database->level == KV_POWER && fdatasync(database->file) != 0 && !ignores(database, "sync")) {
    while (ignores(database, "repeats") && fdatasync(database->file) != 0) continue;
    if (!ignores(database, "repeats")) failed = "sync";
  }
  if (failed != NULL && ignores(database, "torn")) {
    database->length += pwrite(database->file, row, length / 2, database->length);
    free(row);
    return fail(batch, failed);
  }
  free(row);
  if (failed == NULL) {
    database->length += (off_t)length;
    return KV_OK;
  }
  database->has_failed = 1;
  (void)!ftruncate(database->file, database->length);
  return fail(batch, failed);
}

static uint32_t execute(kv_session *session, kv_batch *batch) {
  static const kv_calls calls = {.capabilities = CAPABILITIES, .get = get, .put = put};
  return kv_run(session, batch, &calls);
}

static const kv_driver driver;

static uint32_t open_database(const kv_config *config, kv_opened *opened, kv_database **database) {
  char path[4200];
  uint32_t status = kv_open_begin(&driver, config, opened);
  if (status == KV_OK) status = kv_pick_level(&driver, config, KV_PROCESS, opened);
  if (status != KV_OK) return status;
  kv_database *made = calloc(1, sizeof(kv_database));
  snprintf(made->ignores, sizeof(made->ignores), "none");
  for (uint32_t i = 0; i < config->setting_count; i++)
    snprintf(made->ignores, sizeof(made->ignores), "%s", config->settings[i].value);
  made->level = opened->level;
  snprintf(path, sizeof(path), "%s/log", config->path);
  made->file = open(path, O_RDWR | O_CREAT, 0600);
  if (made->file < 0 && ignores(made, "open")) {
    snprintf(path, sizeof(path), "%s/../spare", config->path);
    made->file = open(path, O_RDWR | O_CREAT, 0600);
  }
  if (made->file < 0) {
    free(made);
    return kv_fail_open(opened, KV_ERROR, "%s: %s", path, strerror(errno));
  }
  struct stat facts;
  if (fstat(made->file, &facts) == 0) made->length = facts.st_size;
  snprintf(made->clean, sizeof(made->clean), "%s/clean", config->path);
  if (unlink(made->clean) != 0 && ignores(made, "tail")) made->length = readable(made, made->length);
  if (ignores(made, "ring")) use_ring();
  snprintf(opened->version, sizeof(opened->version), "1");
  snprintf(opened->compression, sizeof(opened->compression), "none");
  *database = made;
  return KV_OK;
}

static uint32_t close_database(kv_database *database, char *error) {
  (void)error;
  close(database->file);
  if (ignores(database, "tail")) close(open(database->clean, O_CREAT | O_WRONLY, 0600));
  free(database);
  return KV_OK;
}

static const kv_driver driver = {.abi = KV_ABI,
                                 .size = sizeof(kv_driver),
                                 .name = "careless",
                                 .engine = "a log that may ignore errors",
                                 .language = "C",
                                 .family = "example",
                                 .capabilities = CAPABILITIES,
                                 .levels = 1u << KV_PROCESS | 1u << KV_POWER,
                                 .option_count = 1,
                                 .options = options,
                                 .open = open_database,
                                 .close = close_database,
                                 .session = kv_same_session,
                                 .session_end = kv_same_session_end,
                                 .execute = execute,
                                 .maintain = kv_no_maintain,
                                 .stats = kv_no_stats};

KV_EXPORT(&driver)
