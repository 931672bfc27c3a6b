/* The smallest complete driver: a sorted array of rows behind a mutex. Copy it to start a driver. */
#include "kit.h"

#include <pthread.h>

typedef struct row {
  uint32_t key_length, value_length;
  uint8_t bytes[]; /* the key, then the value */
} row;

struct kv_database {
  pthread_mutex_t lock;
  row **rows; /* ascending by key */
  size_t count, room;
};

enum { KEY_SIZE_MAX = 65535 };

static row *new_row(const kv_op *op) {
  row *made = malloc(sizeof(row) + (size_t)op->key_length + op->value_length);
  if (made == NULL) return NULL;
  made->key_length = op->key_length;
  made->value_length = op->value_length;
  memcpy(made->bytes, op->key, op->key_length);
  if (op->value_length != 0) memcpy(made->bytes + op->key_length, op->value, op->value_length);
  return made;
}

/* The index of the first row whose key is not below `key`, and whether that row has this key. */
static size_t find(const kv_database *database, const uint8_t *key, uint32_t length, int *is_there) {
  size_t low = 0, high = database->count;
  *is_there = 0;
  while (low < high) {
    size_t middle = (low + high) / 2;
    const row *at = database->rows[middle];
    int order = kv_compare(at->bytes, at->key_length, key, length);
    if (order == 0) *is_there = 1;
    if (order < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static int make_room(kv_database *database, size_t more) {
  if (database->count + more <= database->room) return 1;
  size_t room = database->room + database->room / 2 + more;
  row **rows = realloc(database->rows, room * sizeof(row *));
  if (rows == NULL) return 0;
  database->rows = rows;
  database->room = room;
  return 1;
}

/* Puts `fresh`, for which there is room, or deletes if it is null. Cannot fail. */
static uint32_t apply(kv_database *database, const kv_op *op, row *fresh) {
  int is_there;
  size_t at = find(database, op->key, op->key_length, &is_there);
  row **rows = database->rows + at;
  if (is_there && (op->flags & KV_NEW) != 0) {
    free(fresh);
    return KV_EXISTS;
  }
  if (is_there) free(*rows);
  if (fresh != NULL && !is_there) memmove(rows + 1, rows, (database->count++ - at) * sizeof(row *));
  if (fresh != NULL)
    *rows = fresh;
  else if (is_there)
    memmove(rows, rows + 1, (--database->count - at) * sizeof(row *));
  return fresh != NULL || is_there ? KV_OK : KV_NOT_FOUND;
}

static uint32_t get(kv_session *session, kv_op *op, kv_batch *batch) {
  kv_database *database = (kv_database *)session;
  uint32_t status = KV_NOT_FOUND;
  int is_there;
  (void)batch;
  pthread_mutex_lock(&database->lock);
  size_t at = find(database, op->key, op->key_length, &is_there);
  if (is_there) {
    const row *found = database->rows[at];
    status = kv_deliver(op, found->bytes + found->key_length, found->value_length);
  }
  pthread_mutex_unlock(&database->lock);
  return status;
}

/* Writes all of a group, or nothing if one op fails: everything that may fail is done before the first row changes. */
static uint32_t group(kv_session *session, kv_op *ops, uint32_t count, int atomic, kv_batch *batch) {
  kv_database *database = (kv_database *)session;
  uint32_t i, ready = 0, status = KV_OK;
  if (!atomic) return KV_NOT_RUN;
  row **fresh = calloc(count, sizeof(row *));
  if (fresh == NULL) return kv_fail(batch, ops, KV_ERROR, "out of memory");
  pthread_mutex_lock(&database->lock);
  if (!make_room(database, count)) status = kv_fail(batch, ops, KV_ERROR, "out of memory");
  for (; ready < count && status == KV_OK; ready++) {
    kv_op *op = &ops[ready];
    if (op->kind != KV_PUT && op->kind != KV_DELETE)
      status = kv_fail(batch, op, KV_UNSUPPORTED, "a transaction may have only puts and deletes");
    else if (op->key_length == 0 || op->key_length > KEY_SIZE_MAX)
      status = kv_fail(batch, op, KV_TOO_LARGE, "a key must have 1 to %d bytes", KEY_SIZE_MAX);
    else if (op->kind == KV_PUT && (fresh[ready] = new_row(op)) == NULL)
      status = kv_fail(batch, op, KV_ERROR, "out of memory");
  }
  for (i = 0; i < count && status == KV_OK; i++) ops[i].status = apply(database, &ops[i], fresh[i]);
  pthread_mutex_unlock(&database->lock);
  if (status != KV_OK)
    for (i = 0; i < count; i++) free(fresh[i]);
  free(fresh);
  return status;
}

/* A single put or delete is a group of one. */
static uint32_t write_one(kv_session *session, kv_op *op, kv_batch *batch) {
  uint32_t status = group(session, op, 1, 1, batch);
  return status == KV_OK ? op->status : status;
}

static uint32_t scan(kv_session *session, kv_op *op, kv_batch *batch) {
  kv_database *database = (kv_database *)session;
  const int is_reverse = (op->flags & KV_REVERSE) != 0;
  uint8_t space[KEY_SIZE_MAX];
  int is_there;
  if (op->value_length > sizeof(space))
    return kv_fail(batch, op, KV_TOO_LARGE, "the bound is longer than a key may be");
  kv_place place = kv_scan_place(op, space);
  kv_rows rows = kv_rows_begin(op);
  pthread_mutex_lock(&database->lock);
  size_t at = find(database, place.key, place.length, &is_there);
  if (is_reverse) at = place.length == 0 ? database->count : at + (is_there && !place.is_exclusive);
  while (is_reverse ? at-- > 0 : at < database->count) {
    const row *next = database->rows[at];
    const uint8_t *value = next->bytes + next->key_length;
    if (!kv_rows_push(&rows, next->bytes, next->key_length, value, next->value_length)) break;
    if (!is_reverse) at++;
  }
  pthread_mutex_unlock(&database->lock);
  return rows.status;
}

#define CAPABILITIES                                                                                           \
  (KV_ORDERED | KV_CAN_REVERSE | KV_CAN_PREFIX | KV_CAN_DELETE | KV_DELETE_TELLS | KV_OVERWRITE | KV_CAN_NEW | \
   KV_TRANSACTION | KV_IN_MEMORY)

static uint32_t execute(kv_session *session, kv_batch *batch) {
  static const kv_calls calls = {
      .capabilities = CAPABILITIES, .get = get, .put = write_one, .remove = write_one, .scan = scan, .group = group};
  return kv_run(session, batch, &calls);
}

static const kv_driver driver;

static uint32_t open_database(const kv_config *config, kv_opened *opened, kv_database **database) {
  uint64_t room;
  uint32_t status = kv_open_begin(&driver, config, opened);
  if (status == KV_OK) status = kv_pick_level(&driver, config, KV_NONE, opened);
  if (status == KV_OK) status = kv_setting_number(&driver, config, "room", &room, opened);
  if (status != KV_OK) return status;
  kv_database *made = calloc(1, sizeof(kv_database));
  if (made == NULL || room > SIZE_MAX / sizeof(row *) || !make_room(made, room)) {
    free(made);
    return kv_fail_open(opened, KV_ERROR, "out of memory");
  }
  pthread_mutex_init(&made->lock, NULL);
  kv_opened_setting(opened, "room", "%zu", made->room);
  snprintf(opened->version, sizeof(opened->version), "1");
  snprintf(opened->compression, sizeof(opened->compression), "none");
  *database = made;
  return KV_OK;
}

static uint32_t maintain(kv_database *database, uint32_t work, char *error) {
  (void)database, (void)error;
  return work == KV_COMPACT ? KV_UNSUPPORTED : KV_OK; /* nothing is buffered, nothing runs in the background */
}

static uint32_t close_database(kv_database *database, char *error) {
  (void)error;
  for (size_t i = 0; i < database->count; i++) free(database->rows[i]);
  pthread_mutex_destroy(&database->lock);
  free(database->rows);
  free(database);
  return KV_OK;
}

static const kv_option options[] = {{"room", "count", "1024", "rows to reserve space for at open"}};

/* clang-format off */
static const kv_driver driver = {
    .abi = KV_ABI, .size = sizeof(kv_driver),
    .name = "example", .engine = "a sorted array behind a mutex; the C driver to copy",
    .language = "C", .family = "example", /* excludes it from comparisons of all engines; yours is lsm, b+tree ... */
    .capabilities = CAPABILITIES, .levels = 1u << KV_NONE, .key_size_max = KEY_SIZE_MAX,
    .option_count = 1, .options = options,
    .open = open_database, .close = close_database,
    .session = kv_same_session, .session_end = kv_same_session_end,
    .execute = execute, .maintain = maintain, .stats = kv_no_stats};

KV_EXPORT(&driver)
