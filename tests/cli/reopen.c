/* An engine that claims level none, and stores its rows as STORES in the environment says:
 *
 * - file: in its folder, at each close: sound.
 * - hoard: so too; each open takes much memory in small pieces, and the close frees all but the last.
 * - memory: in memory that the close leaves as it is.
 * - exit: so too, and in its folder when the process ends.
 * - outside: in the folder that OUTSIDE names, and nothing in its own.
 * - decoy: so too, with a file in its own.
 * - crash: as it should, but a reopen ends the process.
 * - hang: as it should, but a reopen never ends. */
#include <sys/stat.h>
#include <unistd.h>
#include "kit.h"

#define CAPABILITIES (KV_OVERWRITE | KV_SINGLE_THREAD)

/* What a hoard takes: 128 MiB. */
enum { PIECES = 1 << 17, PIECE_BYTES = 1008 };
static uint8_t *pieces[PIECES];

typedef struct row {
  uint32_t key_length, value_length;
  uint8_t *bytes; /* the key, then the value */
} row;

struct kv_database {
  char file[4096];
  row *rows;
  size_t count;
  kv_database *next;
};

static kv_database *left; /* closed, and still here */

static int stores(const char *how) {
  const char *set = getenv("STORES");
  return strcmp(set == NULL ? "file" : set, how) == 0;
}

static row *find(const kv_database *database, const kv_op *op) {
  for (size_t i = 0; i < database->count; i++) {
    row *at = &database->rows[i];
    if (kv_compare(at->bytes, at->key_length, op->key, op->key_length) == 0) return at;
  }
  return NULL;
}

static void add(kv_database *database, row made) {
  database->rows = realloc(database->rows, (database->count + 1) * sizeof(row));
  database->rows[database->count++] = made;
}

static uint32_t get(kv_session *session, kv_op *op, kv_batch *batch) {
  const row *found = find((kv_database *)session, op);
  (void)batch;
  return found == NULL ? (uint32_t)KV_NOT_FOUND : kv_deliver(op, found->bytes + found->key_length, found->value_length);
}

static uint32_t put(kv_session *session, kv_op *op, kv_batch *batch) {
  kv_database *database = (kv_database *)session;
  row made = {op->key_length, op->value_length, malloc((size_t)op->key_length + op->value_length + 1)};
  row *found = find(database, op);
  (void)batch;
  if (op->key_length != 0) memcpy(made.bytes, op->key, op->key_length);
  if (op->value_length != 0) memcpy(made.bytes + op->key_length, op->value, op->value_length);
  if (found == NULL) {
    add(database, made);
  } else {
    free(found->bytes);
    *found = made;
  }
  return KV_OK;
}

static uint32_t execute(kv_session *session, kv_batch *batch) {
  static const kv_calls calls = {.capabilities = CAPABILITIES, .get = get, .put = put};
  return kv_run(session, batch, &calls);
}

static void save(const kv_database *database) {
  FILE *file = fopen(database->file, "w");
  if (file == NULL) return;
  for (size_t i = 0; i < database->count; i++) {
    const row *at = &database->rows[i];
    fwrite(at, sizeof(uint32_t), 2, file);
    fwrite(at->bytes, 1, (size_t)at->key_length + at->value_length, file);
  }
  fclose(file);
}

static void load(kv_database *database) {
  FILE *file = fopen(database->file, "r");
  uint32_t lengths[2];
  if (file == NULL) return;
  while (fread(lengths, sizeof(uint32_t), 2, file) == 2) {
    row made = {lengths[0], lengths[1], malloc((size_t)lengths[0] + lengths[1] + 1)};
    if (fread(made.bytes, 1, (size_t)lengths[0] + lengths[1], file) == 0) break;
    add(database, made);
  }
  fclose(file);
}

static void save_all(void) {
  for (const kv_database *one = left; one != NULL; one = one->next) save(one);
}

static const kv_driver driver;

static uint32_t open_database(const kv_config *config, kv_opened *opened, kv_database **database) {
  static int is_told;
  struct stat facts;
  uint32_t status = kv_open_begin(&driver, config, opened);
  if (status == KV_OK) status = kv_pick_level(&driver, config, KV_NONE, opened);
  if (status != KV_OK) return status;
  if (stat(config->path, &facts) != 0 || !S_ISDIR(facts.st_mode))
    return kv_fail_open(opened, KV_ERROR, "%s is no folder", config->path);
  if (!(config->flags & KV_CREATE) && stores("crash")) abort();
  while (!(config->flags & KV_CREATE) && stores("hang")) pause();
  kv_database *made = calloc(1, sizeof(kv_database));
  const int is_outside = stores("outside") || stores("decoy");
  snprintf(made->file, sizeof(made->file), "%s/rows", is_outside ? getenv("OUTSIDE") : config->path);
  snprintf(opened->version, sizeof(opened->version), "1");
  snprintf(opened->compression, sizeof(opened->compression), "none");
  if (!stores("outside")) {
    char decoy[4096];
    snprintf(decoy, sizeof(decoy), "%s/decoy", config->path);
    FILE *file = fopen(decoy, "w");
    if (file != NULL) fputs("no rows here", file), fclose(file);
  }
  if (stores("exit") && !is_told++) atexit(save_all);
  for (kv_database *one = left; one != NULL; one = one->next)
    if (strcmp(one->file, made->file) == 0) {
      free(made);
      *database = one;
      return KV_OK;
    }
  for (int i = 0; stores("hoard") && i < PIECES; i++) {
    pieces[i] = malloc(PIECE_BYTES);
    if (pieces[i] == NULL) abort();
    memset(pieces[i], i, PIECE_BYTES);
  }
  if (!stores("memory")) load(made);
  *database = made;
  return KV_OK;
}

static uint32_t close_database(kv_database *database, char *error) {
  (void)error;
  if (stores("memory") || stores("exit")) {
    kv_database *one = left;
    while (one != NULL && one != database) one = one->next;
    if (one == NULL) database->next = left, left = database;
    return KV_OK;
  }
  for (int i = 0; stores("hoard") && i < PIECES - 1; i++) free(pieces[i]);
  save(database);
  for (size_t i = 0; i < database->count; i++) free(database->rows[i].bytes);
  free(database->rows);
  free(database);
  return KV_OK;
}

static const kv_driver driver = {.abi = KV_ABI,
                                 .size = sizeof(kv_driver),
                                 .name = "reopen",
                                 .engine = "stores its rows elsewhere than it says",
                                 .language = "C",
                                 .family = "example",
                                 .capabilities = CAPABILITIES,
                                 .levels = 1u << KV_NONE,
                                 .open = open_database,
                                 .close = close_database,
                                 .session = kv_same_session,
                                 .session_end = kv_same_session_end,
                                 .execute = execute,
                                 .maintain = kv_no_maintain,
                                 .stats = kv_no_stats};

KV_EXPORT(&driver)
