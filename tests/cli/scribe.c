/* An engine of one log file, which is right, or wrong between two of its calls, as its option says: what a kill at each
 * call must find, and what it must not accuse. The rows are in memory. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kit.h"

#define CAPABILITIES (KV_CAN_DELETE | KV_OVERWRITE | KV_TRANSACTION)
enum { ROWS = 1024, VALUE = 8192, KEY = 32, FRAME = 1 << 20, HEAD = 8 };

static const kv_option options[] = {
    {"fault", "text", "none",
     "no-end-mark, rename-late, create-in-steps, recover-in-place, tail-stays, now-and-then, map-only: wrong after a "
     "kill; tells-map: right"}};

typedef struct row {
  uint8_t key[KEY], value[VALUE];
  uint32_t key_length, value_length;
  int is_there;
} row;

struct kv_database {
  char path[4096], fault[32];
  int file;
  uint64_t end;
  row rows[ROWS];
  uint8_t frame[FRAME], held[FRAME];
  uint32_t held_length;
  uint8_t *map;
};

static int is(kv_database *database, const char *fault) { return strcmp(database->fault, fault) == 0; }

static uint32_t sum_of(const uint8_t *bytes, uint32_t length) {
  uint32_t sum = 2166136261u;
  for (uint32_t i = 0; i < length; i++) sum = (sum ^ bytes[i]) * 16777619u;
  return sum;
}

static row *find(kv_database *database, const uint8_t *key, uint32_t length) {
  row *at = database->rows;
  for (; at->key_length != 0; at++)
    if (at->key_length == length && memcmp(at->key, key, length) == 0) break;
  if (at == database->rows + ROWS - 1) abort();
  memcpy(at->key, key, length);
  at->key_length = length;
  return at;
}

/* Adds a change to a frame: a put, or a delete without a value. */
static uint32_t add(uint8_t *frame, uint32_t at, const uint8_t *key, uint32_t key_length, const uint8_t *value,
                    uint32_t value_length, uint32_t is_put) {
  uint32_t head[3] = {is_put, key_length, value_length};
  memcpy(frame + at, head, sizeof(head));
  memcpy(frame + at + sizeof(head), key, key_length);
  if (value_length != 0) memcpy(frame + at + sizeof(head) + key_length, value, value_length);
  return at + (uint32_t)sizeof(head) + key_length + value_length;
}

static void apply(kv_database *database, const uint8_t *frame, uint32_t length) {
  for (uint32_t at = 0; at < length;) {
    uint32_t head[3];
    memcpy(head, frame + at, sizeof(head));
    row *own = find(database, frame + at + sizeof(head), head[1]);
    own->is_there = (int)head[0];
    own->value_length = head[2];
    memcpy(own->value, frame + at + sizeof(head) + head[1], head[2]);
    at += (uint32_t)sizeof(head) + head[1] + head[2];
  }
}

/* Appends the frame that was held back. */
static int release(kv_database *database) {
  uint32_t length = database->held_length;
  database->held_length = 0;
  if (length == 0) return 1;
  if (pwrite(database->file, database->held, length, (off_t)database->end) != (ssize_t)length) return 0;
  database->end += length;
  return fdatasync(database->file) == 0;
}

/* Appends the frame that was made behind its head. */
static int append(kv_database *database, uint32_t end) {
  uint32_t head[2] = {end - HEAD, sum_of(database->frame + HEAD, end - HEAD)};
  memcpy(database->frame, head, sizeof(head));
  if (database->map != NULL) memcpy(database->map, head, sizeof(head));
  if (is(database, "map-only")) {
    /* Only the last frame is kept, by no call. */
    memcpy(database->map + HEAD, database->frame + HEAD, end - HEAD);
    return 1;
  }
  if (is(database, "now-and-then") && (database->path[strlen(database->path) - 1] & 1) == 0) {
    /* In every second database a frame is written with the next one, as by a thread that comes too late. */
    if (!release(database)) return 0;
    memcpy(database->held, database->frame, end);
    database->held_length = end;
    return 1;
  }
  if (pwrite(database->file, database->frame, end, (off_t)database->end) != (ssize_t)end) return 0;
  database->end += end;
  return fdatasync(database->file) == 0;
}

static uint32_t get(kv_session *session, kv_op *op, kv_batch *batch) {
  (void)batch;
  row *own = find((kv_database *)session, op->key, op->key_length);
  return own->is_there ? kv_deliver(op, own->value, own->value_length) : KV_NOT_FOUND;
}

static uint32_t group(kv_session *session, kv_op *ops, uint32_t count, int atomic, kv_batch *batch) {
  kv_database *database = (kv_database *)session;
  uint32_t end = HEAD;
  (void)atomic;
  for (uint32_t i = 0; i < count; i++)
    if (ops[i].kind != KV_PUT && ops[i].kind != KV_DELETE) return KV_UNSUPPORTED;
  for (uint32_t i = 0; i < count; i++) {
    end = add(database->frame, end, ops[i].key, ops[i].key_length, ops[i].value,
              ops[i].kind == KV_PUT ? ops[i].value_length : 0, ops[i].kind == KV_PUT);
    ops[i].status = KV_OK;
    if (i + 1 < count && !is(database, "no-end-mark")) continue;
    if (!append(database, end)) return kv_fail(batch, ops, KV_ERROR, "the log cannot be written");
    apply(database, database->frame + HEAD, end - HEAD);
    end = HEAD;
  }
  return KV_OK;
}

static uint32_t change(kv_session *session, kv_op *op, kv_batch *batch) {
  return group(session, op, 1, 0, batch) == KV_OK ? KV_OK : KV_ERROR;
}

static uint32_t execute(kv_session *session, kv_batch *batch) {
  static const kv_calls calls = {
      .capabilities = CAPABILITIES, .get = get, .put = change, .remove = change, .group = group};
  return kv_run(session, batch, &calls);
}

static char *named(kv_database *database, const char *name) {
  static char path[4200];
  snprintf(path, sizeof(path), "%s/%s", database->path, name);
  return path;
}

/* Reads the log; what follows the last whole frame is cut off. */
static int recover(kv_database *database) {
  static uint8_t whole[16 << 20];
  ssize_t size = pread(database->file, whole, sizeof(whole), 0);
  uint64_t at = 0;
  while (size >= 0 && at + HEAD <= (uint64_t)size) {
    uint32_t head[2];
    memcpy(head, whole + at, sizeof(head));
    if (head[0] > (uint64_t)size - at - HEAD || head[1] != sum_of(whole + at + HEAD, head[0])) break;
    apply(database, whole + at + HEAD, head[0]);
    at += HEAD + head[0];
  }
  database->end = at;
  if (at == (uint64_t)size) return 1;
  if (is(database, "tail-stays")) {
    /* What is appended behind it is not read again. */
    database->end = (uint64_t)size;
    return 1;
  }
  if (!is(database, "recover-in-place")) return ftruncate(database->file, (off_t)at) == 0;
  /* Between these two calls nothing is in the log. */
  return ftruncate(database->file, 0) == 0 && pwrite(database->file, whole, at, 0) == (ssize_t)at;
}

static const kv_driver driver;

static uint32_t open_scribe(const kv_config *config, kv_opened *opened, kv_database **out) {
  uint32_t status = kv_open_begin(&driver, config, opened);
  if (status == KV_OK) status = kv_pick_level(&driver, config, KV_POWER, opened);
  if (status != KV_OK) return status;
  kv_database *database = calloc(1, sizeof *database);
  if (database == NULL) abort();
  snprintf(database->path, sizeof(database->path), "%s", config->path);
  snprintf(database->fault, sizeof(database->fault), "%s", kv_setting_text(&driver, config, "fault"));
  snprintf(opened->version, sizeof(opened->version), "1");
  int creates = (config->flags & KV_CREATE) != 0;
  int exclusively = creates && is(database, "create-in-steps") ? O_EXCL : 0;
  database->file = open(named(database, "log"), (creates ? O_CREAT : 0) | exclusively | O_RDWR, 0600);
  if (database->file < 0) return kv_fail_open(opened, KV_ERROR, "no log");
  if (is(database, "create-in-steps")) {
    /* A second file, without which it can neither be opened nor be created again. */
    int mark = open(named(database, "mark"), (creates ? O_CREAT : 0) | O_RDWR, 0600);
    if (mark < 0) return kv_fail_open(opened, KV_ERROR, "no mark");
    close(mark);
  }
  if (is(database, "map-only") || is(database, "tells-map")) {
    int map = open(named(database, "map"), O_CREAT | O_RDWR, 0600);
    if (map < 0 || ftruncate(map, FRAME) != 0) abort();
    database->map = mmap(NULL, FRAME, PROT_READ | PROT_WRITE, MAP_SHARED, map, 0);
    close(map);
    if (database->map == MAP_FAILED) abort();
  }
  if (!recover(database)) return kv_fail_open(opened, KV_ERROR, "the log cannot be read");
  *out = database;
  return KV_OK;
}

static uint32_t maintain(kv_database *database, uint32_t work, char *error) {
  if (!release(database)) return kv_fail_call(error, KV_ERROR, "the log cannot be written");
  if (work == KV_FLUSH) return fsync(database->file) == 0 ? KV_OK : KV_ERROR;
  if (work != KV_COMPACT) return KV_UNSUPPORTED;
  int file = open(named(database, "log.new"), O_CREAT | O_TRUNC | O_RDWR, 0600);
  if (file < 0) return kv_fail_call(error, KV_ERROR, "no new log");
  int old = database->file;
  database->file = file;
  database->end = 0;
  for (row *at = database->rows; at->key_length != 0; at++) {
    if (!at->is_there) continue;
    uint32_t end = add(database->frame, HEAD, at->key, at->key_length, at->value, at->value_length, 1);
    if (!append(database, end)) return kv_fail_call(error, KV_ERROR, "the new log cannot be written");
  }
  if (!release(database)) return kv_fail_call(error, KV_ERROR, "the new log cannot be written");
  close(old);
  char from[4200];
  snprintf(from, sizeof(from), "%s", named(database, "log.new"));
  if (is(database, "rename-late") && unlink(named(database, "log")) != 0) return KV_ERROR;
  return rename(from, named(database, "log")) == 0 ? KV_OK : KV_ERROR;
}

static uint32_t close_scribe(kv_database *database, char *error) {
  if (!release(database)) return kv_fail_call(error, KV_ERROR, "the log cannot be written");
  if (database->map != NULL) munmap(database->map, FRAME);
  close(database->file);
  free(database);
  return KV_OK;
}

static const kv_driver driver = {.abi = KV_ABI,
                                 .size = sizeof(kv_driver),
                                 .name = "scribe",
                                 .engine = "a log, wrong between two calls",
                                 .language = "C",
                                 .family = "example",
                                 .capabilities = CAPABILITIES,
                                 .levels = 1u << KV_PROCESS | 1u << KV_POWER,
                                 .option_count = 1,
                                 .options = options,
                                 .open = open_scribe,
                                 .close = close_scribe,
                                 .session = kv_same_session,
                                 .session_end = kv_same_session_end,
                                 .execute = execute,
                                 .maintain = maintain,
                                 .stats = kv_no_stats};

KV_EXPORT(&driver)
