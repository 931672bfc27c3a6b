/* A store in memory that knows all states of its rows, and whose gets return
 * one that is `lag` states old. It counts what it does, so that a test can
 * compare: its statistics have the stale gets and their ages, by the stamps of
 * the kit.
 *
 * A state is old only if a newer one was acknowledged in an earlier call. With
 * `declares=no` it does the same without saying so. */
#include "kit.h"

#include <pthread.h>

#define CAPABILITIES (KV_CAN_DELETE | KV_OVERWRITE | KV_DELETE_TELLS | KV_ORDERED | KV_IN_MEMORY)

enum { ROWS = 1 << 17 };

typedef struct state {
  uint8_t *value; /* null: deleted */
  uint32_t length;
  uint64_t acknowledged; /* tick; 0: not yet */
} state;

typedef struct row {
  uint8_t *key;
  uint32_t length, count, room;
  state *states;
} row;

static const kv_option options[] = {{"lag", "count", "1", "how many states old a get is"},
                                    {"every", "count", "7", "one of so many gets is old"},
                                    {"declares", "choice:yes|no", "yes", "whether it says that its reads may be stale"},
                                    {"fault", "choice:none|other|corrupt|weak", "none",
                                     "returns the value of another key, or a changed one; or is old also where "
                                     "the newest was asked for"}};

enum { NONE, OTHER, CORRUPT, WEAK }; /* faults */

struct kv_database {
  pthread_mutex_t lock;
  row *rows[ROWS]; /* ascending by key */
  uint32_t count, fault;
  uint64_t lag, every, gets;
  /* What was done. Ages are in ticks. */
  uint64_t stale, missed, versions, most_versions, longest;
};

/* What a call did, until its stamps are known. */
typedef struct done {
  row *row;
  uint32_t state;
  uint64_t newer; /* a stale get: when the first newer state was acknowledged */
} done;

struct kv_session {
  kv_database *database;
  done ops[4096];
};

static row *find(const kv_database *own, const uint8_t *key, uint32_t length, uint32_t *place) {
  row *const *rows = own->rows;
  uint32_t low = 0, high = own->count;
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    int order = kv_compare(rows[middle]->key, rows[middle]->length, key, length);
    if (order == 0) return *place = middle, rows[middle];
    if (order < 0)
      low = middle + 1;
    else
      high = middle;
  }
  *place = low;
  return NULL;
}

static int is_there(const row *found, uint32_t at) { return at > 0 && found->states[at - 1].value != NULL; }

/* The number of states that a reader sees; `old`: fewer than there are. */
static uint32_t seen(const kv_database *own, const row *found, int old) {
  const state *last = &found->states[found->count - 1];
  if (!old || last->acknowledged == 0) return found->count;
  return found->count > own->lag ? found->count - (uint32_t)own->lag : 0;
}

static uint32_t get(kv_session *session, kv_op *op, kv_batch *batch) {
  kv_database *own = session->database;
  uint32_t place, status = KV_NOT_FOUND;
  int is_strong = (op->flags & KV_STRONG) != 0 && own->fault != WEAK;
  pthread_mutex_lock(&own->lock);
  row *found = find(own, op->key, op->key_length, &place);
  if (found != NULL) {
    int is_old = !is_strong && ++own->gets % own->every == 0;
    uint32_t at = seen(own, found, is_old), last = found->count;
    if (is_there(found, at)) {
      const state *shown = &found->states[at - 1];
      row *other = own->rows[(place + 1) % own->count];
      if (is_old && own->fault == OTHER && is_there(other, other->count)) shown = &other->states[other->count - 1];
      status = kv_deliver(op, shown->value, shown->length);
      if (is_old && own->fault == CORRUPT && op->length != 0) op->out[op->length - 1] ^= 1;
    }
    if (at != last && (is_there(found, at) || is_there(found, last))) {
      session->ops[op - batch->ops].newer = found->states[at].acknowledged;
      own->stale++;
      own->versions += last - at;
      if (last - at > own->most_versions) own->most_versions = last - at;
      own->missed += status == KV_NOT_FOUND;
    }
  }
  pthread_mutex_unlock(&own->lock);
  return status;
}

static uint32_t write_one(kv_session *session, kv_op *op, kv_batch *batch) {
  kv_database *own = session->database;
  uint32_t place, status = KV_OK;
  pthread_mutex_lock(&own->lock);
  row *found = find(own, op->key, op->key_length, &place);
  if (found == NULL && op->kind == KV_DELETE) {
    pthread_mutex_unlock(&own->lock);
    return KV_NOT_FOUND;
  }
  if (found == NULL && own->count < ROWS && (found = calloc(1, sizeof(row))) != NULL) {
    found->key = malloc(op->key_length);
    memcpy(found->key, op->key, found->length = op->key_length);
    memmove(own->rows + place + 1, own->rows + place, (own->count++ - place) * sizeof(row *));
    own->rows[place] = found;
  }
  if (found != NULL && found->count == found->room) {
    found->room = 2 * found->room + 4;
    found->states = realloc(found->states, found->room * sizeof(state));
  }
  if (found == NULL) {
    status = kv_fail(batch, op, KV_FULL, "more rows than this example has room for");
  } else {
    state *fresh = &found->states[found->count++];
    *fresh = (state){NULL, 0, 0};
    if (op->kind == KV_DELETE && !is_there(found, found->count - 1)) status = KV_NOT_FOUND;
    if (op->kind == KV_PUT) {
      fresh->value = malloc(op->value_length + 1);
      memcpy(fresh->value, op->value, fresh->length = op->value_length);
    }
    session->ops[op - batch->ops] = (done){found, found->count, 0};
  }
  pthread_mutex_unlock(&own->lock);
  return status;
}

static uint32_t scan(kv_session *session, kv_op *op, kv_batch *batch) {
  uint8_t space[1 << 16];
  uint32_t at;
  kv_database *own = session->database;
  (void)batch;
  kv_place place = kv_scan_place(op, space);
  kv_rows written = kv_rows_begin(op);
  int is_old = (op->flags & KV_STRONG) == 0 || own->fault == WEAK;
  pthread_mutex_lock(&own->lock);
  for (find(own, place.key, place.length, &at); at < own->count; at++) {
    const row *next = own->rows[at];
    uint32_t state = seen(own, next, is_old);
    if (!is_there(next, state)) continue;
    if (!kv_rows_push(&written, next->key, next->length, next->states[state - 1].value, next->states[state - 1].length))
      break;
  }
  pthread_mutex_unlock(&own->lock);
  return written.status;
}

static uint32_t execute(kv_session *session, kv_batch *batch) {
  static const kv_calls calls = {
      .capabilities = CAPABILITIES, .get = get, .put = write_one, .remove = write_one, .scan = scan};
  memset(session->ops, 0, batch->count * sizeof(done));
  uint32_t status = kv_run(session, batch, &calls);
  kv_database *database = session->database;
  pthread_mutex_lock(&database->lock);
  for (uint32_t i = 0; i < batch->done; i++) {
    done *own = &session->ops[i];
    if (own->row != NULL) own->row->states[own->state - 1].acknowledged = batch->ops[i].end;
    if (own->newer == 0) continue;
    uint64_t age = batch->ops[i].start - own->newer;
    if (age > database->longest) database->longest = age;
  }
  pthread_mutex_unlock(&database->lock);
  return status;
}

static const kv_driver driver;

/* The place of an option's value among its choices. */
static uint32_t choice(const kv_config *config, const char *name, const char *const *choices, uint32_t *place,
                       kv_opened *opened) {
  const char *value = kv_setting_text(&driver, config, name);
  for (*place = 0; choices[*place] != NULL; ++*place)
    if (strcmp(choices[*place], value) == 0) return KV_OK;
  return kv_fail_open(opened, KV_ERROR, "option %s: got `%s`", name, value);
}

static uint32_t open_laggard(const kv_config *config, kv_opened *opened, kv_database **database) {
  uint64_t lag, every;
  uint32_t declares, fault;
  uint32_t status = kv_open_begin(&driver, config, opened);
  if (status == KV_OK) status = kv_pick_level(&driver, config, KV_NONE, opened);
  if (status == KV_OK) status = kv_setting_number(&driver, config, "lag", &lag, opened);
  if (status == KV_OK) status = kv_setting_number(&driver, config, "every", &every, opened);
  if (status == KV_OK) status = choice(config, "declares", (const char *[]){"yes", "no", NULL}, &declares, opened);
  if (status == KV_OK)
    status = choice(config, "fault", (const char *[]){"none", "other", "corrupt", "weak", NULL}, &fault, opened);
  if (status != KV_OK) return status;
  kv_database *made = calloc(1, sizeof(kv_database));
  if (made == NULL) return kv_fail_open(opened, KV_ERROR, "out of memory");
  pthread_mutex_init(&made->lock, NULL);
  made->lag = lag, made->every = every == 0 ? 1 : every, made->fault = fault;
  for (uint32_t i = 0; i < driver.option_count; i++)
    kv_opened_setting(opened, options[i].name, "%s", kv_setting_text(&driver, config, options[i].name));
  if (declares == 0) {
    kv_opened_setting(opened, "class", "distributed, one machine");
    kv_opened_setting(opened, "stale_reads", "possible");
  }
  snprintf(opened->version, sizeof(opened->version), "1");
  *database = made;
  return KV_OK;
}

static uint32_t session_of(kv_database *database, const kv_arena *arena, kv_session **session, char *error) {
  (void)arena, (void)error;
  *session = calloc(1, sizeof(kv_session));
  if (*session == NULL) return KV_ERROR;
  (*session)->database = database;
  return KV_OK;
}

static uint32_t session_end(kv_session *session, char *error) {
  (void)error;
  free(session);
  return KV_OK;
}

static uint32_t stats(kv_database *own, char *out, uint64_t size) {
  int length =
      snprintf(out, size,
               "stale=%llu\nmissed=%llu\nversions=%llu\nmost_versions=%llu\nlongest_"
               "ticks=%llu\n",
               (unsigned long long)own->stale, (unsigned long long)own->missed, (unsigned long long)own->versions,
               (unsigned long long)own->most_versions, (unsigned long long)own->longest);
  return (uint64_t)length < size ? KV_OK : KV_SHORT;
}

static uint32_t close_laggard(kv_database *own, char *error) {
  (void)error;
  for (uint32_t i = 0; i < own->count; i++) {
    for (uint32_t state = 0; state < own->rows[i]->count; state++) free(own->rows[i]->states[state].value);
    free(own->rows[i]->states);
    free(own->rows[i]->key);
    free(own->rows[i]);
  }
  free(own);
  return KV_OK;
}

static const kv_driver driver = {.abi = KV_ABI,
                                 .size = sizeof(kv_driver),
                                 .name = "laggard",
                                 .engine = "returns states that are not the newest",
                                 .language = "C",
                                 .family = "example",
                                 .capabilities = CAPABILITIES,
                                 .levels = 1u << KV_NONE,
                                 .option_count = 4,
                                 .options = options,
                                 .open = open_laggard,
                                 .close = close_laggard,
                                 .session = session_of,
                                 .session_end = session_end,
                                 .execute = execute,
                                 .maintain = kv_no_maintain,
                                 .stats = stats};

KV_EXPORT(&driver)
