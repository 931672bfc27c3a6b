/* GDBM: an extendible hash file of GNU, for one thread. */
#include "options.h"

#include <limits.h>

struct kv_database {
  GDBM_FILE file;
};

static GDBM_FILE file_of(kv_session *session) { return ((kv_database *)session)->file; }

static datum datum_of(const uint8_t *bytes, uint32_t length) {
  static char nothing[1]; /* a null pointer is not a datum, not even an empty one */
  return (datum){length != 0 ? (char *)bytes : nothing, (int)length};
}

/* Fails an op with the library's message. */
static uint32_t failed(GDBM_FILE file, const kv_op *op, kv_batch *batch, const char *what) {
  const int system = gdbm_check_syserr(gdbm_errno) ? gdbm_last_syserr(file) : 0;
  const uint32_t status = system == ENOSPC ? KV_FULL : KV_ERROR;
  return kv_fail(batch, op, status, "%s: %s%s%s", what, gdbm_strerror(gdbm_errno), system != 0 ? ": " : "",
                 system != 0 ? strerror(system) : "");
}

/* The library returns each value in newly allocated memory. */
static uint32_t get(kv_session *session, kv_op *op, kv_batch *batch) {
  datum found = gdbm_fetch(file_of(session), datum_of(op->key, op->key_length));
  if (found.dptr == NULL)
    return gdbm_errno == GDBM_ITEM_NOT_FOUND ? (uint32_t)KV_NOT_FOUND : failed(file_of(session), op, batch, "get");
  const uint32_t status = kv_deliver(op, found.dptr, (size_t)found.dsize);
  free(found.dptr);
  return status;
}

static uint32_t put(kv_session *session, kv_op *op, kv_batch *batch) {
  const int how = (op->flags & KV_NEW) != 0 ? GDBM_INSERT : GDBM_REPLACE;
  if (op->value_length > INT_MAX) return kv_fail(batch, op, KV_TOO_LARGE, "a value has at most %d bytes", INT_MAX);
  const int answer =
      gdbm_store(file_of(session), datum_of(op->key, op->key_length), datum_of(op->value, op->value_length), how);
  if (answer == 0) return KV_OK;
  return answer > 0 ? (uint32_t)KV_EXISTS : failed(file_of(session), op, batch, "put");
}

static uint32_t delete_row(kv_session *session, kv_op *op, kv_batch *batch) {
  if (gdbm_delete(file_of(session), datum_of(op->key, op->key_length)) == 0) return KV_OK;
  return gdbm_errno == GDBM_ITEM_NOT_FOUND ? (uint32_t)KV_NOT_FOUND : failed(file_of(session), op, batch, "delete");
}

/* Offers the row of `key` if it has the prefix; 0: stop. */
static int push(GDBM_FILE file, kv_rows *rows, datum key) {
  datum value = {NULL, 0};
  if (kv_rows_is_beyond(rows->op, key.dptr, (size_t)key.dsize)) return 1;
  if ((rows->op->flags & KV_KEYS) == 0) {
    value = gdbm_fetch(file, key);
    if (value.dptr == NULL) return gdbm_errno == GDBM_ITEM_NOT_FOUND;
  }
  const int goes_on = kv_rows_push(rows, key.dptr, (size_t)key.dsize, value.dptr, (size_t)value.dsize);
  free(value.dptr);
  return goes_on;
}

/* Prefix scans read all keys, in no order. */
static uint32_t scan(kv_session *session, kv_op *op, kv_batch *batch) {
  GDBM_FILE file = file_of(session);
  const datum last = datum_of(op->key, op->key_length);
  const int is_resumed = (op->flags & KV_RESUME) != 0;
  kv_rows rows = kv_rows_begin(op);
  if (is_resumed && !gdbm_exists(file, last))
    return kv_fail(batch, op, KV_ERROR,
                   "scan: cannot resume: the last row read was deleted, and the rows are unordered");
  datum key = is_resumed ? gdbm_nextkey(file, last) : gdbm_firstkey(file);
  while (key.dptr != NULL) {
    if (!push(file, &rows, key)) break;
    datum next = gdbm_nextkey(file, key);
    free(key.dptr);
    key = next;
  }
  const int is_whole = rows.is_full || (key.dptr == NULL && gdbm_errno == GDBM_ITEM_NOT_FOUND);
  free(key.dptr);
  return is_whole ? rows.status : failed(file, op, batch, "scan");
}

#define CAPABILITIES \
  (KV_CAN_PREFIX | KV_CAN_DELETE | KV_DELETE_TELLS | KV_OVERWRITE | KV_CAN_NEW | KV_SINGLE_WRITER | KV_SINGLE_THREAD)

static uint32_t execute(kv_session *session, kv_batch *batch) {
  static const kv_calls calls = {
      .capabilities = CAPABILITIES, .get = get, .put = put, .remove = delete_row, .scan = scan};
  return kv_run(session, batch, &calls);
}

static const kv_driver driver;

/* The fatal errors that the library would otherwise print. */
static void stay_silent(const char *text) { (void)text; }

static uint32_t open_database(const kv_config *config, kv_opened *opened, kv_database **database) {
  options options = {.is_mapped = 1};
  char path[4096];
  uint32_t status = kv_open_begin(&driver, config, opened);
  if (status == KV_OK) status = kv_pick_level(&driver, config, KV_NONE, opened);
  if (status == KV_OK) status = gdbm_read_options(&driver, config, &options, opened);
  if (status != KV_OK) return status;
  if ((size_t)snprintf(path, sizeof(path), "%s/data.gdbm", config->path) >= sizeof(path))
    return kv_fail_open(opened, KV_ERROR, "the path is too long");
  int mode = (config->flags & KV_CREATE) != 0 ? GDBM_WRCREAT : GDBM_WRITER;
  if ((config->flags & KV_READ_ONLY) != 0) mode = GDBM_READER;
  mode |= GDBM_CLOEXEC | (options.is_synced ? GDBM_SYNC : 0) | (options.is_mapped ? 0 : GDBM_NOMMAP) |
          (options.is_preread ? GDBM_PREREAD : 0);
  kv_database *made = calloc(1, sizeof(kv_database));
  if (made == NULL) return kv_fail_open(opened, KV_ERROR, "out of memory");
  made->file = gdbm_open(path, (int)options.block_size, mode, 0644, stay_silent);
  const int is_open =
      made->file != NULL && (!gdbm_needs_recovery(made->file) || gdbm_recover(made->file, NULL, 0) == 0);
  if (is_open && gdbm_tune(made->file, config, &options, opened)) {
    snprintf(opened->version, sizeof(opened->version), "%d.%d.%d", gdbm_version_number[0], gdbm_version_number[1],
             gdbm_version_number[2]);
    snprintf(opened->compression, sizeof(opened->compression), "none");
    *database = made;
    return KV_OK;
  }
  status = kv_fail_open(opened, KV_ERROR, "open: %s", gdbm_strerror(gdbm_errno));
  if (made->file != NULL) gdbm_close(made->file);
  free(made);
  return status;
}

static uint32_t maintain(kv_database *database, uint32_t work, char *error) {
  int answer = 0; /* nothing runs in the background */
  if (work == KV_FLUSH) answer = gdbm_sync(database->file);
  if (work == KV_COMPACT) answer = gdbm_reorganize(database->file);
  return answer == 0 ? (uint32_t)KV_OK : kv_fail_call(error, KV_ERROR, "%s", gdbm_strerror(gdbm_errno));
}

static uint32_t stats(kv_database *database, char *out, uint64_t size) {
  size_t accesses = 0, hits = 0, cached = 0, buckets = 0;
  gdbm_get_cache_stats(database->file, &accesses, &hits, &cached, NULL, 0);
  gdbm_bucket_count(database->file, &buckets);
  const int length = snprintf(out, size, "cache_accesses=%zu\ncache_hits=%zu\ncached_buckets=%zu\nbuckets=%zu\n",
                              accesses, hits, cached, buckets);
  return length >= 0 && (uint64_t)length < size ? KV_OK : KV_SHORT;
}

static uint32_t close_database(kv_database *database, char *error) {
  const int answer = gdbm_close(database->file);
  free(database);
  return answer == 0 ? (uint32_t)KV_OK : kv_fail_call(error, KV_ERROR, "close: %s", gdbm_strerror(gdbm_errno));
}

static const kv_option option_list[] = {
    {"block_size", "bytes", "0", "size of a block and of a bucket in bytes; 0 = the file system's, as shipped"},
    {"map", "bytes", "0", "bytes of the file that may be mapped at the same time; 0 = all, as shipped"},
    {"mapped", "flag", "true", "read and write through a memory map"},
    {"preread", "flag", "false", "GDBM_PREREAD: fault in all pages of the map at open"},
    {"sync", "flag", "false", "GDBM_SYNC: sync each write"},
    {"coalesce", "flag", "false", "GDBM_SETCOALESCEBLKS: join free blocks, which slows writes"},
    {"central_free", "flag", "false", "GDBM_SETCENTFREE: all free blocks in one list, which slows writes"},
};

static const kv_driver driver = {
    .abi = KV_ABI,
    .size = sizeof(kv_driver),
    .name = "gdbm",
    .engine = "GNU's extendible hash file, for one thread",
    .language = "C",
    .family = "hash",
    .capabilities = CAPABILITIES,
    .levels = 1u << KV_NONE,
    .option_count = sizeof(option_list) / sizeof(option_list[0]),
    .options = option_list,
    .open = open_database,
    .close = close_database,
    .session = kv_same_session,
    .session_end = kv_same_session_end,
    .execute = execute,
    .maintain = maintain,
    .stats = stats,
};

KV_EXPORT(&driver)
