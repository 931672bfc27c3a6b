/* A store in memory that knows all states of its rows, and whose gets return one that is `lag` states old. It counts what it does, so
 * that a test can compare: its statistics have the stale gets and their ages, by the stamps of the kit.
 *
 * A state is old only if a newer one was acknowledged in an earlier call. With `declares=no` it does the same without saying so. */
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

static const kv_option options[] = {
    {"lag", "count", "1", "how many states old a get is"},
    {"every", "count", "7", "one of so many gets is old"},
    {"declares", "choice:yes|no", "yes", "whether it says that its reads may be stale"},
    {"fault", "choice:none|other|corrupt|weak", "none",
     "returns the value of another key, or a changed one; or is old also where the newest was asked for"}};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static row *rows[ROWS]; /* ascending by key */
static uint32_t count;
static uint64_t lag, every, gets;
static char declares[8], fault[16];
/* What was done. Ages are in ticks. */
static uint64_t stale, missed, versions, most_versions, longest;

/* What a call did, until its stamps are known. */
typedef struct done {
  row *row;
  uint32_t state;
  uint64_t newer; /* a stale get: when the first newer state was acknowledged */
} done;

struct kv_session {
  done ops[4096];
  kv_batch *batch;
};

static row *find(const uint8_t *key, uint32_t length, uint32_t *place) {
  uint32_t low = 0, high = count;
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
static uint32_t seen(const row *found, int old) {
  const state *last = &found->states[found->count - 1];
  if (!old || last->acknowledged == 0) return found->count;
  return found->count > lag ? found->count - (uint32_t)lag : 0;
}

static uint32_t get(kv_session *session, kv_op *op, kv_batch *batch) {
  uint32_t place, status = KV_NOT_FOUND;
  int is_strong = (op->flags & KV_STRONG) != 0 && strcmp(fault, "weak");
  pthread_mutex_lock(&lock);
  row *found = find(op->key, op->key_length, &place);
  if (found != NULL) {
    int is_old = !is_strong && ++gets % every == 0;
    uint32_t at = seen(found, is_old), last = found->count;
    if (is_there(found, at)) {
      const state *shown = &found->states[at - 1];
      row *other = rows[(place + 1) % count];
      if (is_old && !strcmp(fault, "other") && is_there(other, other->count)) shown = &other->states[other->count - 1];
      status = kv_deliver(op, shown->value, shown->length);
      if (is_old && !strcmp(fault, "corrupt") && op->length != 0) op->out[op->length - 1] ^= 1;
    }
    if (at != last && (is_there(found, at) || is_there(found, last))) {
      done *own = &session->ops[op - batch->ops];
      own->newer = found->states[at].acknowledged;
      stale++;
      versions += last - at;
      if (last - at > most_versions) most_versions = last - at;
      missed += status == KV_NOT_FOUND;
    }
  }
  pthread_mutex_unlock(&lock);
  return status;
}

static uint32_t write_one(kv_session *session, kv_op *op, kv_batch *batch) {
  uint32_t place, status = KV_OK;
  pthread_mutex_lock(&lock);
  row *found = find(op->key, op->key_length, &place);
  if (found == NULL && op->kind == KV_DELETE) {
    pthread_mutex_unlock(&lock);
    return KV_NOT_FOUND;
  }
  if (found == NULL && count < ROWS && (found = calloc(1, sizeof(row))) != NULL) {
    found->key = malloc(op->key_length);
    memcpy(found->key, op->key, found->length = op->key_length);
    memmove(rows + place + 1, rows + place, (count++ - place) * sizeof(row *));
    rows[place] = found;
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
  pthread_mutex_unlock(&lock);
  return status;
}

static uint32_t scan(kv_session *session, kv_op *op, kv_batch *batch) {
  uint8_t space[4096];
  uint32_t at;
  (void)session, (void)batch;
  kv_place place = kv_scan_place(op, space);
  kv_rows written = kv_rows_begin(op);
  int is_old = (op->flags & KV_STRONG) == 0;
  pthread_mutex_lock(&lock);
  for (find(place.key, place.length, &at); at < count; at++) {
    const row *next = rows[at];
    uint32_t state = seen(next, is_old);
    if (!is_there(next, state)) continue;
    if (!kv_rows_push(&written, next->key, next->length, next->states[state - 1].value, next->states[state - 1].length)) break;
  }
  pthread_mutex_unlock(&lock);
  return written.status;
}

static uint32_t execute(kv_session *session, kv_batch *batch) {
  static const kv_calls calls = {.capabilities = CAPABILITIES, .get = get, .put = write_one, .remove = write_one, .scan = scan};
  memset(session->ops, 0, batch->count * sizeof(done));
  uint32_t status = kv_run(session, batch, &calls);
  pthread_mutex_lock(&lock);
  for (uint32_t i = 0; i < batch->done; i++) {
    done *own = &session->ops[i];
    if (own->row != NULL) own->row->states[own->state - 1].acknowledged = batch->ops[i].end;
    if (own->newer != 0 && batch->ops[i].start - own->newer > longest) longest = batch->ops[i].start - own->newer;
  }
  pthread_mutex_unlock(&lock);
  return status;
}

static const kv_driver driver;
static char handle;

static uint32_t open_laggard(const kv_config *config, kv_opened *opened, kv_database **database) {
  uint32_t status = kv_open_begin(&driver, config, opened);
  lag = 1, every = 7;
  snprintf(declares, sizeof(declares), "yes");
  snprintf(fault, sizeof(fault), "none");
  for (uint32_t i = 0; i < config->setting_count; i++) {
    const kv_setting *own = &config->settings[i];
    if (!strcmp(own->name, "lag")) lag = strtoull(own->value, NULL, 10);
    if (!strcmp(own->name, "every")) every = strtoull(own->value, NULL, 10);
    if (!strcmp(own->name, "declares")) snprintf(declares, sizeof(declares), "%s", own->value);
    if (!strcmp(own->name, "fault")) snprintf(fault, sizeof(fault), "%s", own->value);
  }
  opened->level = KV_NONE;
  snprintf(opened->version, sizeof(opened->version), "1");
  snprintf(opened->settings, sizeof(opened->settings), "lag=%llu\n%s", (unsigned long long)lag,
           strcmp(declares, "yes") ? "" : "class=distributed, one machine\nstale_reads=possible\n");
  *database = (kv_database *)&handle;
  return status;
}

static uint32_t session_of(kv_database *database, const kv_arena *arena, kv_session **session, char *error) {
  (void)database, (void)arena, (void)error;
  *session = calloc(1, sizeof(kv_session));
  return *session != NULL ? KV_OK : KV_ERROR;
}

static uint32_t session_end(kv_session *session, char *error) {
  (void)error;
  free(session);
  return KV_OK;
}

static uint32_t stats(kv_database *database, char *out, uint64_t size) {
  (void)database;
  int length = snprintf(out, size, "stale=%llu\nmissed=%llu\nversions=%llu\nmost_versions=%llu\nlongest_ticks=%llu\n",
                        (unsigned long long)stale, (unsigned long long)missed, (unsigned long long)versions,
                        (unsigned long long)most_versions, (unsigned long long)longest);
  return (uint64_t)length < size ? KV_OK : KV_SHORT;
}

static uint32_t close_laggard(kv_database *database, char *error) {
  (void)database, (void)error;
  for (uint32_t i = 0; i < count; i++) {
    for (uint32_t state = 0; state < rows[i]->count; state++) free(rows[i]->states[state].value);
    free(rows[i]->states);
    free(rows[i]->key);
    free(rows[i]);
  }
  count = 0;
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
