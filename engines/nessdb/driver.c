/* nessDB, 1.8.2 or 2.0, through its C interface, which is the same for both except for the functions of version.h. */
#include <sys/stat.h>

#include "version.h"

enum { FOLDER_SIZE = 1024 }; /* the library copies this many bytes of the path, whatever its length */

struct kv_database {
  struct nessdb *db;
  int must_look; /* before a put: check whether its key exists */
  char folder[FOLDER_SIZE];
};

int nessdb_first_integer(const char *folder, const char *name) {
  char path[FOLDER_SIZE + 32];
  int number = 0;
  snprintf(path, sizeof(path), "%s/%s", folder, name);
  FILE *file = fopen(path, "re");
  if (file == NULL) return 0;
  if (fread(&number, sizeof(number), 1, file) != 1) number = 0;
  fclose(file);
  return number;
}

/* The library's keys are C strings, ours may have any bytes: 7 bits of them per byte, whose first bit is set. */
typedef struct packed {
  struct slice slice;
  char bytes[PACKED_KEY_BYTES_MAX + 1];
} packed;

static uint32_t pack(const kv_op *op, packed *key, kv_batch *batch) {
  uint32_t word = 0, bits = 0, length = 0;
  if (op->key_length == 0 || op->key_length > KEY_BYTES_MAX)
    return kv_fail(batch, op, KV_TOO_LARGE, "a key must have 1 to %d bytes", KEY_BYTES_MAX);
  for (uint32_t i = 0; i < op->key_length; i++) {
    word = word << 8 | op->key[i];
    for (bits += 8; bits >= 7; bits -= 7) key->bytes[length++] = (char)(0x80 | (word >> (bits - 7) & 0x7f));
  }
  if (bits != 0) key->bytes[length++] = (char)(0x80 | (word << (7 - bits) & 0x7f));
  key->bytes[length] = 0;
  key->slice.data = key->bytes;
  key->slice.len = (int)length;
  return KV_OK;
}

static uint32_t get(kv_session *session, kv_op *op, kv_batch *batch) {
  kv_database *database = (kv_database *)session;
  struct slice value = {NULL, 0};
  packed key;
  uint32_t status = pack(op, &key, batch);
  if (status != KV_OK) return status;
  if (db_get(database->db, &key.slice, &value) != 1) return KV_NOT_FOUND;
  status = kv_deliver(op, value.data, (size_t)value.len);
  nessdb_free_value(value.data);
  return status;
}

static uint32_t put(kv_session *session, kv_op *op, kv_batch *batch) {
  kv_database *database = (kv_database *)session;
  struct slice value = {(char *)op->value, (int)op->value_length};
  packed key;
  const uint32_t status = pack(op, &key, batch);
  if (status != KV_OK) return status;
  if ((VALUE_BYTES_MIN != 0 && op->value_length == 0) || op->value_length > VALUE_BYTES_MAX)
    return kv_fail(batch, op, KV_TOO_LARGE, "a value must have %d to %d bytes", VALUE_BYTES_MIN, VALUE_BYTES_MAX);
  if ((database->must_look || (op->flags & KV_NEW) != 0) && db_exists(database->db, &key.slice)) return KV_EXISTS;
  if (db_add(database->db, &key.slice, &value) != 1)
    return kv_fail(batch, op, KV_ERROR, "put: nessDB reported a failure");
  return KV_OK;
}

static uint32_t remove_row(kv_session *session, kv_op *op, kv_batch *batch) {
  kv_database *database = (kv_database *)session;
  packed key;
  const uint32_t status = pack(op, &key, batch);
  if (status != KV_OK) return status;
  db_remove(database->db, &key.slice);
  return KV_OK;
}

#define CAPABILITIES (ABILITIES | KV_CAN_NEW | KV_SINGLE_THREAD)

static uint32_t execute(kv_session *session, kv_batch *batch) {
  static const kv_calls calls = {.capabilities = CAPABILITIES, .get = get, .put = put, .remove = remove_row};
  return kv_run(session, batch, &calls);
}

/* Finds `name` and a colon in the library's report; returns its value, up to the end of the line. */
static int find_value(const char *report, const char *name, char *value, size_t size) {
  const char *at = strstr(report, name);
  if (at == NULL) return 0;
  at += strlen(name);
  const size_t length = strcspn(at, "\r\n");
  snprintf(value, size, "%.*s", (int)length, at);
  return length != 0;
}

static const kv_driver driver;

static uint32_t open_database(const kv_config *config, kv_opened *opened, kv_database **database) {
  char report[2048] = "";
  struct stat folder;
  uint32_t status = kv_open_begin(&driver, config, opened);
  if (status == KV_OK) status = kv_pick_level(&driver, config, KV_NONE, opened);
  if (status != KV_OK) return status;
  if (stat(config->path, &folder) != 0 || !S_ISDIR(folder.st_mode))
    return kv_fail_open(opened, KV_ERROR, "%s is not a folder", config->path);
  if (strlen(config->path) > PATH_BYTES_MAX)
    return kv_fail_open(opened, KV_ERROR, "the path has more than %d bytes, the limit of nessDB", PATH_BYTES_MAX);
  kv_database *made = calloc(1, sizeof(kv_database));
  if (made == NULL) return kv_fail_open(opened, KV_ERROR, "out of memory");
  snprintf(made->folder, sizeof(made->folder), "%s", config->path);
  status = nessdb_check_files(made->folder, (config->flags & KV_CREATE) != 0, opened);
  if (status == KV_OK) status = nessdb_open(&driver, config, made->folder, opened, &made->db, &made->must_look);
  if (status == KV_OK && made->db == NULL) status = kv_fail_open(opened, KV_ERROR, "open: nessDB reported a failure");
  if (status != KV_OK) {
    free(made);
    return status;
  }
  kv_opened_setting(opened, "value_size_max", "%d", VALUE_BYTES_MAX);
  nessdb_report(made->db, report, sizeof(report));
  find_value(report, "version:", opened->version, sizeof(opened->version));
  *database = made;
  return KV_OK;
}

/* The library's counters, whose names all begin with this. */
static uint32_t stats(kv_database *database, char *out, uint64_t size) {
  char report[2048] = "";
  uint64_t used = 0;
  nessdb_report(database->db, report, sizeof(report));
  if (size != 0) out[0] = 0;
  for (const char *at = report; (at = strstr(at, "total_")) != NULL; at += strcspn(at, "\n")) {
    char value[32];
    const int name_length = (int)strcspn(at, ":(\n");
    const char *colon = at + strcspn(at, ":\n");
    if (*colon != ':' || !find_value(colon, ":", value, sizeof(value))) continue;
    const int length = snprintf(out + used, size - used, "%.*s=%s\n", name_length, at, value);
    if (length < 0 || used + (uint64_t)length >= size) return KV_SHORT;
    used += (uint64_t)length;
  }
  return KV_OK;
}

static uint32_t close_database(kv_database *database, char *error) {
  (void)error;
  db_close(database->db);
  free(database);
  return KV_OK;
}

static const kv_driver driver = {
    .abi = KV_ABI,
    .size = sizeof(kv_driver),
    .name = "nessdb",
    .engine = NESSDB_2 ? "2.0, levels of sorted keys merged in place; insert-only"
                       : "1.8.2, log-structured merge tree under a skip list",
    .language = "C",
    .family = "lsm",
    .capabilities = CAPABILITIES,
    .levels = 1u << KV_NONE,
    .key_size_max = KEY_BYTES_MAX,
    .option_count = OPTION_COUNT,
    .options = nessdb_options,
    .open = open_database,
    .close = close_database,
    .session = kv_same_session,
    .session_end = kv_same_session_end,
    .execute = execute,
    .maintain = kv_no_maintain,
    .stats = stats,
};

KV_EXPORT(&driver)
