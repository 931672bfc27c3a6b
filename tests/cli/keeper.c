/* An engine that keeps the bytes that it is given and copies none of them: the kit must. A hash table behind a lock. */
#include <pthread.h>

#include "kit.h"

enum { BUCKETS = 1 << 12 };

typedef struct row {
  struct row *next;
  const uint8_t *key, *value; /* the kit's copies, from malloc */
  uint32_t key_length, value_length;
} row;

struct kv_database {
  pthread_mutex_t lock;
  row *buckets[BUCKETS];
};

/* Where the row of a key hangs, or would. */
static row **find(kv_database *database, const kv_op *op) {
  uint32_t hash = 2166136261u;
  for (uint32_t i = 0; i < op->key_length; i++) hash = (hash ^ op->key[i]) * 16777619u;
  row **at = &database->buckets[hash % BUCKETS];
  while (*at != NULL && kv_compare((*at)->key, (*at)->key_length, op->key, op->key_length) != 0) at = &(*at)->next;
  return at;
}

static uint32_t get(kv_session *session, kv_op *op, kv_batch *batch) {
  kv_database *database = (kv_database *)session;
  (void)batch;
  pthread_mutex_lock(&database->lock);
  row *found = *find(database, op);
  uint32_t status = found != NULL ? kv_deliver(op, found->value, found->value_length) : KV_NOT_FOUND;
  pthread_mutex_unlock(&database->lock);
  return status;
}

static uint32_t change(kv_database *database, kv_op *op) {
  row **at = find(database, op), *there = *at;
  if (op->kind == KV_DELETE) {
    if (there != NULL) {
      *at = there->next;
      free((void *)there->key), free((void *)there->value), free(there);
    }
    free((void *)op->key), free((void *)op->value);
    return there != NULL ? KV_OK : KV_NOT_FOUND;
  }
  if (there != NULL) {
    free((void *)op->key), free((void *)there->value);
  } else {
    there = *at = calloc(1, sizeof *there);
    if (there == NULL) abort();
    there->key = op->key, there->key_length = op->key_length;
  }
  there->value = op->value, there->value_length = op->value_length;
  return KV_OK;
}

static uint32_t write_one(kv_session *session, kv_op *op, kv_batch *batch) {
  kv_database *database = (kv_database *)session;
  (void)batch;
  pthread_mutex_lock(&database->lock);
  uint32_t status = change(database, op);
  pthread_mutex_unlock(&database->lock);
  return status;
}

/* Groups of writes share the lock; with others nothing special is done. */
static uint32_t group(kv_session *session, kv_op *ops, uint32_t count, int atomic, kv_batch *batch) {
  kv_database *database = (kv_database *)session;
  (void)atomic, (void)batch;
  for (uint32_t i = 0; i < count; i++)
    if (ops[i].kind != KV_PUT && ops[i].kind != KV_DELETE) return KV_NOT_RUN;
  pthread_mutex_lock(&database->lock);
  for (uint32_t i = 0; i < count; i++) ops[i].status = change(database, &ops[i]);
  pthread_mutex_unlock(&database->lock);
  return KV_OK;
}

#define CAPABILITIES (KV_IN_MEMORY | KV_OVERWRITE | KV_CAN_DELETE | KV_DELETE_TELLS | KV_KEEPS_KEY | KV_KEEPS_VALUE)

static uint32_t execute(kv_session *session, kv_batch *batch) {
  static const kv_calls calls = {
      .capabilities = CAPABILITIES, .get = get, .put = write_one, .remove = write_one, .group = group};
  return kv_run(session, batch, &calls);
}

static const kv_driver driver;

static uint32_t open_keeper(const kv_config *config, kv_opened *opened, kv_database **database) {
  uint32_t status = kv_open_begin(&driver, config, opened);
  if (status == KV_OK) status = kv_pick_level(&driver, config, KV_NONE, opened);
  if (status != KV_OK) return status;
  *database = calloc(1, sizeof **database);
  if (*database == NULL) return kv_fail_open(opened, KV_ERROR, "out of memory");
  pthread_mutex_init(&(*database)->lock, NULL);
  snprintf(opened->version, sizeof(opened->version), "1");
  return KV_OK;
}

static uint32_t close_keeper(kv_database *database, char *error) {
  (void)error;
  for (uint32_t i = 0; i < BUCKETS; i++)
    for (row *at = database->buckets[i], *next; at != NULL; at = next) {
      next = at->next;
      free((void *)at->key), free((void *)at->value), free(at);
    }
  pthread_mutex_destroy(&database->lock);
  free(database);
  return KV_OK;
}

static const kv_driver driver = {.abi = KV_ABI,
                                 .size = sizeof(kv_driver),
                                 .name = "keeper",
                                 .engine = "keeps the bytes that it is given",
                                 .language = "C",
                                 .family = "example",
                                 .capabilities = CAPABILITIES,
                                 .levels = 1u << KV_NONE,
                                 .open = open_keeper,
                                 .session = kv_same_session,
                                 .execute = execute,
                                 .session_end = kv_same_session_end,
                                 .maintain = kv_no_maintain,
                                 .stats = kv_no_stats,
                                 .close = close_keeper};

KV_EXPORT(&driver)
