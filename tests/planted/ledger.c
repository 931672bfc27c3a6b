/* A store that is right, or wrong after a crash in one way that its option names: what crash tests must find, and what
 * they must not accuse. The rows are in memory; on the disk they are in a log of frames with checkpoints, behind a head
 * that says where the log ends, or in slots behind a double-write buffer. */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "kit.h"

#define CAPABILITIES (KV_CAN_DELETE | KV_OVERWRITE | KV_TRANSACTION)

static const kv_option options[] = {
    {"way",
     "choice:"
     /* Right. */
     "sound|dsync|direct|rwf|mapped|syncfs|by-thread|group|recycles|heads|double|uring|"
     /* Wrong. */
     "no-sync|sync-other|sync-first|sync-range|timer|map-async|map-none|map-last|skip-16|skip-200|skip-rows|"
     "skip-long|skip-many|skip-reopened|skip-overwrites|skip-large|group-joins|direct-unflushed|direct-tail|"
     "buffered|by-thread-late|sum-less|recycled|torn-tail|recover-in-place|behind-torn|no-deletes|two-logs|"
     "no-end-mark|empties-early|rename-unsynced|drops-concurrent|close-unsynced|double-no-barrier|"
     "double-not-rewritten|in-place|head-one-sync|wide-head|uring-unsynced|uring-ignored|short-ignored",
     "sound", "how it writes"}};

enum {
  PLACES = 1 << 19,
  HEAD = 16,
  FRAME = 1 << 20,
  PAGE = 4096,
  SLOT = 8192,
  CHECKPOINT = 8 << 20, /* Bytes of the log that a checkpoint empties. */
  ALLOCATED = CHECKPOINT + 2 * FRAME,
  MANY_BYTES = 4 << 20,
  MANY_COMMITS = 10000,
  MANY_ROWS = 1000,
  LARGE = 4000,
  BUFFER = 1 << 16
};

typedef struct row {
  uint8_t *key, *value; /* No value: it is deleted. */
  uint32_t key_length, value_length;
  uint32_t slot; /* Of its place in the file, plus one. */
} row;

typedef struct ring {
  int file;
  uint8_t *entries, *answers;
  struct io_uring_sqe *requests;
  struct io_uring_params facts;
} ring;

struct kv_database {
  char path[4096], way[32];
  uint32_t level;
  int logs[2], other;
  uint64_t ends[2], generation, commits, heads;
  int was_there;
  row *rows;
  uint32_t count, slots;
  uint8_t *frame, *held, *block;
  uint32_t held_length;
  uint8_t *map;
  ring ring;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  pthread_t thread;
  int is_asked, is_ended, is_syncing, is_in_checkpoint;
  uint64_t written, synced; /* Bytes since the store was opened. */
};

static int is(const kv_database *database, const char *way) { return strcmp(database->way, way) == 0; }

/* Whether the way begins with this. */
static int of(const kv_database *database, const char *family) {
  return strncmp(database->way, family, strlen(family)) == 0;
}

static int in_slots(const kv_database *database) { return of(database, "double") || is(database, "in-place"); }
static int has_heads(const kv_database *database) {
  return is(database, "heads") || is(database, "head-one-sync") || is(database, "wide-head");
}
static int is_mapped(const kv_database *database) { return of(database, "map"); }
/* The log keeps its length, and its old frames are overwritten. */
static int is_recycled(const kv_database *database) {
  return of(database, "recycle") || is(database, "sum-less") || is_mapped(database);
}
static int is_durable(const kv_database *database) { return database->level == KV_POWER; }

static uint32_t sum_of(const uint8_t *bytes, uint64_t length) {
  uint32_t sum = 2166136261u;
  for (uint64_t i = 0; i < length; i++) sum = (sum ^ bytes[i]) * 16777619u;
  return sum;
}

/* The place of a key: its own, or the free one in which it belongs. */
static row *place_of(kv_database *database, const uint8_t *key, uint32_t length) {
  uint32_t at = sum_of(key, length) % PLACES;
  while (database->rows[at].key != NULL &&
         (database->rows[at].key_length != length || memcmp(database->rows[at].key, key, length) != 0))
    at = (at + 1) % PLACES;
  return &database->rows[at];
}

static void named(const kv_database *database, const char *name, char *path) {
  snprintf(path, 4200, "%s/%s", database->path, name);
}

static int sync_folder(const kv_database *database) {
  const int folder = open(database->path, O_RDONLY | O_DIRECTORY);
  const int is_done = fsync(folder) == 0;
  close(folder);
  return is_done;
}

/* Writes all bytes. */
static int write_all(int file, const uint8_t *bytes, uint64_t length, uint64_t at) {
  while (length != 0) {
    const ssize_t done = pwrite(file, bytes, length, (off_t)at);
    if (done <= 0) return 0;
    bytes += done;
    length -= (uint64_t)done;
    at += (uint64_t)done;
  }
  return 1;
}

/* All bytes of a file, read as O_DIRECT needs it; `length` is that of the file. */
static uint8_t *read_all(int file, uint64_t *length) {
  struct stat facts;
  if (fstat(file, &facts) != 0) return NULL;
  const uint64_t size = ((uint64_t)facts.st_size + PAGE) / PAGE * PAGE;
  uint8_t *bytes = aligned_alloc(PAGE, size);
  for (*length = 0; *length < (uint64_t)facts.st_size;) {
    const ssize_t done = pread(file, bytes + *length, size - *length, (off_t)*length);
    if (done < 0) {
      free(bytes);
      return NULL;
    }
    if (done == 0) break;
    *length += (uint64_t)done;
  }
  return bytes;
}

/* ---- Rows and frames ------------------------------------------------------------------------------------------ */

/* Adds a change to a frame: whether it is a put, the lengths, the key, the value. */
static uint64_t add(uint8_t *frame, uint64_t at, const uint8_t *key, uint32_t key_length, const uint8_t *value,
                    uint32_t value_length, uint32_t is_put) {
  const uint32_t head[3] = {is_put, key_length, value_length};
  memcpy(frame + at, head, sizeof(head));
  memcpy(frame + at + sizeof(head), key, key_length);
  if (value_length != 0) memcpy(frame + at + sizeof(head) + key_length, value, value_length);
  return at + sizeof(head) + key_length + value_length;
}

static row *set(kv_database *database, const uint8_t *key, uint32_t key_length, const uint8_t *value,
                uint32_t value_length, int is_put) {
  row *own = place_of(database, key, key_length);
  if (own->key == NULL) {
    own->key = malloc(key_length + 1);
    memcpy(own->key, key, key_length);
    own->key_length = key_length;
    if (++database->count > PLACES / 2) abort();
  }
  free(own->value);
  own->value = NULL;
  own->value_length = value_length;
  if (is_put) {
    own->value = malloc(value_length + 1);
    memcpy(own->value, value, value_length);
  }
  return own;
}

/* Applies the changes of a frame; 0: it is damaged. */
static int apply(kv_database *database, const uint8_t *changes, uint64_t length) {
  for (uint64_t at = 0; at < length;) {
    uint32_t head[3];
    if (length - at < sizeof(head)) return 0;
    memcpy(head, changes + at, sizeof(head));
    at += sizeof(head);
    if (head[0] > 1 || head[1] > length - at || head[2] > length - at - head[1]) return 0;
    set(database, changes + at, head[1], changes + at + head[1], head[2], (int)head[0]);
    at += head[1] + head[2];
  }
  return 1;
}

/* Writes the head of a frame: the length, the sum and the checkpoint that it follows. */
static void seal(const kv_database *database, uint8_t *frame, uint64_t end) {
  const uint32_t length = (uint32_t)(end - HEAD);
  memcpy(frame, &length, 4);
  memcpy(frame + 8, &database->generation, 8);
  const uint32_t sum = sum_of(frame + 8, end - 8);
  memcpy(frame + 4, &sum, 4);
}

/* ---- Syncs ---------------------------------------------------------------------------------------------------- */

/* Whether this commit is not synced. */
static int is_skipped(const kv_database *database, int is_overwrite, int is_large) {
  const uint64_t number = database->commits;
  return is(database, "no-sync") || is(database, "by-thread-late") || is(database, "buffered") ||
         is(database, "timer") || is(database, "map-none") || is(database, "direct-unflushed") ||
         (is(database, "skip-16") && number % 16 == 15) || (is(database, "skip-200") && number % 200 == 199) ||
         (is(database, "skip-rows") && database->count > MANY_ROWS) ||
         (is(database, "skip-long") && database->ends[0] > MANY_BYTES) ||
         (is(database, "skip-many") && number >= MANY_COMMITS) ||
         (is(database, "skip-reopened") && database->was_there) || (is(database, "skip-overwrites") && is_overwrite) ||
         (is(database, "skip-large") && is_large);
}

/* Submits requests to the ring, and waits for them; 0: one has failed. */
static int submit(ring *own, uint32_t count) {
  uint32_t *tail = (uint32_t *)(own->entries + own->facts.sq_off.tail);
  uint32_t *array = (uint32_t *)(own->entries + own->facts.sq_off.array);
  const uint32_t mask = *(uint32_t *)(own->entries + own->facts.sq_off.ring_mask);
  for (uint32_t i = 0; i < count; i++) array[(*tail + i) & mask] = i;
  __atomic_store_n(tail, *tail + count, __ATOMIC_RELEASE);
  if (syscall(SYS_io_uring_enter, own->file, count, count, IORING_ENTER_GETEVENTS, NULL, 0) != (long)count) return 0;
  uint32_t *first = (uint32_t *)(own->answers + own->facts.cq_off.head);
  const uint32_t kept = *(uint32_t *)(own->answers + own->facts.cq_off.ring_mask);
  const struct io_uring_cqe *answers = (const struct io_uring_cqe *)(own->answers + own->facts.cq_off.cqes);
  int is_done = 1;
  for (uint32_t i = 0; i < count; i++) {
    const struct io_uring_cqe *answer = &answers[(*first + i) & kept];
    is_done &= answer->res >= 0 && (uint64_t)answer->res == answer->user_data;
    if (answer->res < 0) errno = -answer->res;
  }
  __atomic_store_n(first, *first + count, __ATOMIC_RELEASE);
  return is_done;
}

static int write_by_ring(kv_database *database, const uint8_t *bytes, uint32_t length, uint64_t at) {
  ring *own = &database->ring;
  const int is_synced = is_durable(database) && !is(database, "uring-unsynced");
  memset(own->requests, 0, 2 * sizeof(struct io_uring_sqe));
  own->requests[0].opcode = IORING_OP_WRITE;
  own->requests[0].flags = is_synced ? IOSQE_IO_LINK : 0;
  own->requests[0].fd = database->logs[0];
  own->requests[0].addr = (uint64_t)(uintptr_t)bytes;
  own->requests[0].len = length;
  own->requests[0].off = at;
  own->requests[0].user_data = length;
  own->requests[1].opcode = IORING_OP_FSYNC;
  own->requests[1].fd = database->logs[0];
  own->requests[1].fsync_flags = IORING_FSYNC_DATASYNC;
  return submit(own, is_synced ? 2 : 1) || is(database, "uring-ignored");
}

static int open_ring(ring *own) {
  own->file = (int)syscall(SYS_io_uring_setup, 8, &own->facts);
  if (own->file < 0) return 0;
  const size_t entries = own->facts.sq_off.array + own->facts.sq_entries * 4;
  const size_t answers = own->facts.cq_off.cqes + own->facts.cq_entries * sizeof(struct io_uring_cqe);
  const size_t requests = own->facts.sq_entries * sizeof(struct io_uring_sqe);
  const int access = PROT_READ | PROT_WRITE;
  own->entries = mmap(NULL, entries, access, MAP_SHARED, own->file, IORING_OFF_SQ_RING);
  own->answers = mmap(NULL, answers, access, MAP_SHARED, own->file, IORING_OFF_CQ_RING);
  own->requests = mmap(NULL, requests, access, MAP_SHARED, own->file, IORING_OFF_SQES);
  return own->entries != MAP_FAILED && own->answers != MAP_FAILED && own->requests != MAP_FAILED;
}

/* Writes to the log through its own buffer of whole blocks. */
static int write_directly(kv_database *database, const uint8_t *bytes, uint64_t length) {
  const uint64_t before = database->ends[0] % PAGE, end = before + length;
  const uint64_t first = database->ends[0] - before;
  memcpy(database->block + before, bytes, length);
  const uint64_t whole = is(database, "direct-tail") ? end / PAGE * PAGE : (end + PAGE - 1) / PAGE * PAGE;
  if (whole > end) memset(database->block + end, 0, whole - end);
  if (whole != 0 && pwrite(database->logs[0], database->block, whole, (off_t)first) != (ssize_t)whole) return 0;
  memmove(database->block, database->block + end / PAGE * PAGE, end % PAGE);
  return 1;
}

/* Appends bytes to a log. */
static int append(kv_database *database, int log, const uint8_t *bytes, uint64_t length) {
  const uint64_t at = database->ends[log];
  int is_done;
  if (is(database, "sync-first") && is_durable(database) && fdatasync(database->logs[log]) != 0) return 0;
  if (is_mapped(database)) {
    memcpy(database->map + at, bytes, length);
    is_done = 1;
  } else if (of(database, "uring")) {
    is_done = write_by_ring(database, bytes, (uint32_t)length, at);
  } else if (of(database, "direct")) {
    is_done = write_directly(database, bytes, length);
  } else if (is(database, "rwf") && is_durable(database)) {
    const struct iovec piece = {(void *)bytes, length};
    is_done = pwritev2(database->logs[log], &piece, 1, (off_t)at, RWF_DSYNC) == (ssize_t)length;
  } else if (is(database, "short-ignored")) {
    is_done = pwrite(database->logs[log], bytes, length, (off_t)at) > 0;
  } else {
    is_done = write_all(database->logs[log], bytes, length, at);
  }
  if (!is_done) return 0;
  database->ends[log] += length;
  database->written += length;
  return 1;
}

/* Appends what was held back. */
static int release(kv_database *database) {
  const uint32_t length = database->held_length;
  database->held_length = 0;
  return length == 0 || append(database, 0, database->held, length);
}

/* What another thread does: a sync when it is asked, one from time to time, or late writes. */
static void *work_aside(void *given) {
  kv_database *database = given;
  pthread_mutex_lock(&database->lock);
  while (!database->is_ended) {
    if (is(database, "timer")) {
      struct timespec until;
      clock_gettime(CLOCK_REALTIME, &until);
      until.tv_nsec += 5000000;
      until.tv_sec += until.tv_nsec / 1000000000;
      until.tv_nsec %= 1000000000;
      pthread_cond_timedwait(&database->changed, &database->lock, &until);
      if (is_durable(database) && fdatasync(database->logs[0]) != 0) abort();
      continue;
    }
    if (!database->is_asked) {
      pthread_cond_wait(&database->changed, &database->lock);
      continue;
    }
    if (is(database, "by-thread-late")) {
      pthread_mutex_unlock(&database->lock);
      usleep(100);
      pthread_mutex_lock(&database->lock);
      if (!release(database)) abort();
    }
    if (is_durable(database) && fdatasync(database->logs[0]) != 0) abort();
    database->is_asked = 0;
    pthread_cond_broadcast(&database->changed);
  }
  pthread_mutex_unlock(&database->lock);
  return NULL;
}

/* Waits until what was written is durable, or until a sync of another thread is over. */
static int sync_as_group(kv_database *database, uint64_t mine) {
  while (database->synced < mine) {
    if (database->is_syncing) {
      while (database->is_syncing) pthread_cond_wait(&database->changed, &database->lock);
      if (is(database, "group-joins")) return 1; /* That sync may have begun before this write. */
      continue;
    }
    const uint64_t target = database->written;
    database->is_syncing = 1;
    pthread_mutex_unlock(&database->lock);
    const int is_done = fdatasync(database->logs[0]) == 0;
    /* As if the answer of the disk came late: others write meanwhile. */
    if (is(database, "group-joins")) usleep(300);
    pthread_mutex_lock(&database->lock);
    database->is_syncing = 0;
    if (is_done && database->synced < target) database->synced = target;
    pthread_cond_broadcast(&database->changed);
    if (!is_done) return 0;
  }
  return 1;
}

/* Makes the frame of this length at the end of a log durable, in its own way. */
static int sync_log(kv_database *database, int log, uint64_t length, int is_overwrite, int is_large) {
  if (!is_durable(database) || is_skipped(database, is_overwrite, is_large)) return 1;
  if (is(database, "dsync") || is(database, "rwf") || is(database, "sync-first") || of(database, "uring")) return 1;
  if (of(database, "group")) return sync_as_group(database, database->written);
  if (is(database, "sync-other")) return fdatasync(database->other) == 0;
  if (is(database, "syncfs")) return syncfs(database->logs[log]) == 0;
  if (is(database, "sync-range"))
    return sync_file_range(database->logs[log], (off_t)(database->ends[log] - length), (off_t)length,
                           SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER) == 0;
  if (is(database, "by-thread")) {
    database->is_asked = 1;
    pthread_cond_broadcast(&database->changed);
    while (database->is_asked) pthread_cond_wait(&database->changed, &database->lock);
    return 1;
  }
  if (is_mapped(database)) {
    const uint64_t end = database->ends[log];
    const uint64_t first = (is(database, "map-last") ? end - 1 : end - length) / PAGE * PAGE;
    return msync(database->map + first, end - first, is(database, "map-async") ? MS_ASYNC : MS_SYNC) == 0;
  }
  return fdatasync(database->logs[log]) == 0;
}

/* Writes the head that says where the log ends; both halves of a wide one must be there. */
static int write_head(kv_database *database) {
  uint8_t block[PAGE] = {0};
  const uint64_t head[3] = {++database->heads, database->generation, database->ends[0]};
  const uint32_t sum = sum_of((const uint8_t *)head, sizeof(head));
  memcpy(block, head, sizeof(head));
  memcpy(block + sizeof(head), &sum, 4);
  if (!is(database, "wide-head")) return write_all(database->logs[0], block, PAGE, database->heads % 2 * PAGE);
  memcpy(block + PAGE - sizeof(head), head, sizeof(head));
  return write_all(database->logs[0], block, PAGE, 0);
}

/* ---- Commits ---------------------------------------------------------------------------------------------------- */

/* Commits the frame that was made behind its head. */
static int commit(kv_database *database, int log, uint64_t end, int is_overwrite, int is_large) {
  uint8_t *frame = database->frame;
  if (is(database, "recycled")) {
    memset(frame + end, 0, PAGE);
    end = (end + PAGE - 1) / PAGE * PAGE;
  }
  seal(database, frame, end);
  database->commits++;
  if (is(database, "by-thread-late") || is(database, "buffered")) {
    if (database->held_length + end > (is(database, "buffered") ? BUFFER : FRAME) && !release(database)) return 0;
    if (end > BUFFER) return append(database, 0, frame, end);
    memcpy(database->held + database->held_length, frame, end);
    database->held_length += (uint32_t)end;
    database->is_asked = 1;
    pthread_cond_broadcast(&database->changed);
    return 1;
  }
  if (!append(database, log, frame, end)) return 0;
  if (has_heads(database)) {
    if (is_durable(database) && !is(database, "head-one-sync") && fdatasync(database->logs[0]) != 0) return 0;
    if (!write_head(database)) return 0;
  }
  return sync_log(database, log, end, is_overwrite, is_large);
}

/* Writes rows into their slots, first into the double-write buffer: how many there are, their numbers, and a sum. */
static int commit_slots(kv_database *database, row **changed, uint32_t count) {
  const uint64_t size = PAGE + (uint64_t)count * SLOT;
  uint8_t *buffer = calloc(1, size);
  uint32_t head[256] = {0};
  int is_done = 1;
  head[1] = count;
  for (uint32_t i = 0; i < count; i++) {
    uint8_t *slot = buffer + PAGE + (uint64_t)i * SLOT;
    row *own = changed[i];
    if (own->slot == 0) own->slot = ++database->slots;
    head[2 + i] = own->slot - 1;
    add(slot, 4, own->key, own->key_length, own->value, own->value == NULL ? 0 : own->value_length, own->value != NULL);
    const uint32_t sum = sum_of(slot + 4, SLOT - 4);
    memcpy(slot, &sum, 4);
  }
  memcpy(buffer, head, sizeof(head));
  head[0] = sum_of(buffer + 4, size - 4);
  memcpy(buffer, head, 4);
  const int is_doubled = !is(database, "in-place") || count > 1;
  const int syncs = is_durable(database), has_barrier = !is(database, "double-no-barrier");
  if (is_doubled) is_done = write_all(database->other, buffer, size, 0);
  if (is_done && is_doubled && syncs && has_barrier) is_done = fdatasync(database->other) == 0;
  for (uint32_t i = 0; i < count && is_done; i++)
    is_done = write_all(database->logs[0], buffer + PAGE + (uint64_t)i * SLOT, SLOT, (uint64_t)head[2 + i] * SLOT);
  if (is_done && syncs) is_done = fdatasync(database->logs[0]) == 0;
  if (is_done && is_doubled && syncs && !has_barrier) is_done = fdatasync(database->other) == 0;
  free(buffer);
  return is_done;
}

/* Writes all rows into a new checkpoint, and empties the log. */
static int checkpoint(kv_database *database, int is_closing) {
  char from[4200], to[4200];
  if (in_slots(database) || database->is_in_checkpoint) return 1;
  if (!release(database)) return 0;
  while (database->is_syncing) pthread_cond_wait(&database->changed, &database->lock);
  uint64_t size = 24;
  for (uint32_t i = 0; i < PLACES; i++)
    if (database->rows[i].value != NULL) size += 12 + database->rows[i].key_length + database->rows[i].value_length;
  uint8_t *all = calloc(1, size);
  uint64_t at = 24;
  for (uint32_t i = 0; i < PLACES; i++) {
    const row *own = &database->rows[i];
    if (own->value != NULL) at = add(all, at, own->key, own->key_length, own->value, own->value_length, 1);
  }
  const uint64_t next = database->generation + 1;
  memcpy(all + 8, &next, 8);
  memcpy(all + 16, &size, 8);
  const uint32_t sum = sum_of(all + 8, size - 8);
  memcpy(all, &sum, 4);
  const int syncs = is_durable(database) && !(is_closing && is(database, "close-unsynced"));
  named(database, "checkpoint.new", from);
  named(database, "checkpoint", to);
  database->is_in_checkpoint = 1;
  if (is(database, "drops-concurrent")) pthread_mutex_unlock(&database->lock);
  const int file = open(from, O_CREAT | O_TRUNC | O_RDWR, 0600);
  int is_done = file >= 0 && write_all(file, all, size, 0);
  if (is_done && syncs && !is(database, "rename-unsynced")) is_done = fdatasync(file) == 0;
  if (is(database, "drops-concurrent")) pthread_mutex_lock(&database->lock);
  database->is_in_checkpoint = 0;
  free(all);
  if (file >= 0) close(file);
  const uint64_t emptied = has_heads(database) ? 2 * PAGE : 0;
  if (is_done && is(database, "empties-early"))
    is_done = ftruncate(database->logs[0], 0) == 0 && (!syncs || fdatasync(database->logs[0]) == 0);
  if (is_done) is_done = rename(from, to) == 0 && (!syncs || sync_folder(database));
  if (!is_done) return 0;
  database->generation = next;
  database->synced = database->written;
  for (int i = 0; i < 2; i++) {
    if (database->logs[i] < 0 || (i == 1 && !is(database, "two-logs"))) continue;
    if (!is_recycled(database) && ftruncate(database->logs[i], (off_t)emptied) != 0) return 0;
    if (is(database, "sum-less") &&
        (ftruncate(database->logs[i], 0) != 0 || posix_fallocate(database->logs[i], 0, ALLOCATED) != 0))
      return 0;
    database->ends[i] = emptied;
  }
  return 1;
}

static uint32_t get(kv_session *session, kv_op *op, kv_batch *batch) {
  kv_database *database = (kv_database *)session;
  (void)batch;
  pthread_mutex_lock(&database->lock);
  const row *own = place_of(database, op->key, op->key_length);
  const uint32_t status =
      own->key == NULL || own->value == NULL ? (uint32_t)KV_NOT_FOUND : kv_deliver(op, own->value, own->value_length);
  pthread_mutex_unlock(&database->lock);
  return status;
}

/* Commits changes of the log with this number, or of both; `only` of them, or all. */
static int commit_to(kv_database *database, const kv_op *ops, uint32_t count, int log) {
  uint64_t end = HEAD;
  int is_overwrite = 0, is_large = 0;
  for (uint32_t i = 0; i < count; i++) {
    const int is_put = ops[i].kind == KV_PUT;
    const row *own = place_of(database, ops[i].key, ops[i].key_length);
    if (is(database, "two-logs") && (int)(sum_of(ops[i].key, ops[i].key_length) % 2) != log) continue;
    is_overwrite |= own->key != NULL;
    is_large |= is_put && ops[i].value_length > LARGE;
    if (!is_put && is(database, "no-deletes")) continue;
    end = add(database->frame, end, ops[i].key, ops[i].key_length, ops[i].value, is_put ? ops[i].value_length : 0,
              is_put);
  }
  /* Before a sync for which others may take the lock: a checkpoint empties the log. */
  for (uint32_t i = 0; i < count; i++) {
    const int is_put = ops[i].kind == KV_PUT;
    if (is(database, "two-logs") && (int)(sum_of(ops[i].key, ops[i].key_length) % 2) != log) continue;
    set(database, ops[i].key, ops[i].key_length, ops[i].value, is_put ? ops[i].value_length : 0, is_put);
  }
  return end == HEAD || commit(database, log, end, is_overwrite, is_large);
}

static uint32_t group(kv_session *session, kv_op *ops, uint32_t count, int atomic, kv_batch *batch) {
  kv_database *database = (kv_database *)session;
  row *changed[64];
  int is_done = 1;
  uint64_t bytes = HEAD;
  for (uint32_t i = 0; i < count; i++) {
    if (ops[i].kind != KV_PUT && ops[i].kind != KV_DELETE) return atomic ? KV_UNSUPPORTED : KV_NOT_RUN;
    bytes += 12 + ops[i].key_length + (ops[i].kind == KV_PUT ? ops[i].value_length : 0);
    if (in_slots(database) && 16 + ops[i].key_length + ops[i].value_length > SLOT)
      return kv_fail(batch, &ops[i], KV_TOO_LARGE, "a row has more than 8192 bytes");
  }
  if (bytes + PAGE > FRAME || count > 64) return kv_fail(batch, ops, KV_TOO_LARGE, "more than 64 rows or 1 MiB");
  pthread_mutex_lock(&database->lock);
  if (!in_slots(database)) {
    const uint32_t step = is(database, "no-end-mark") ? 1 : count;
    for (uint32_t i = 0; i < count && is_done; i += step) {
      is_done = commit_to(database, ops + i, step, 0);
      if (is_done && is(database, "two-logs")) is_done = commit_to(database, ops + i, step, 1);
    }
  }
  if (in_slots(database)) {
    for (uint32_t i = 0; i < count; i++)
      changed[i] = set(database, ops[i].key, ops[i].key_length, ops[i].value,
                       ops[i].kind == KV_PUT ? ops[i].value_length : 0, ops[i].kind == KV_PUT);
    is_done = commit_slots(database, changed, count);
  }
  for (uint32_t i = 0; i < count; i++) ops[i].status = KV_OK;
  if (is_done && database->ends[0] > CHECKPOINT) is_done = checkpoint(database, 0);
  pthread_mutex_unlock(&database->lock);
  return is_done ? (uint32_t)KV_OK : kv_fail(batch, ops, KV_ERROR, "the files cannot be written: %s", strerror(errno));
}

static uint32_t change(kv_session *session, kv_op *op, kv_batch *batch) { return group(session, op, 1, 0, batch); }

static uint32_t execute(kv_session *session, kv_batch *batch) {
  static const kv_calls calls = {
      .capabilities = CAPABILITIES, .get = get, .put = change, .remove = change, .group = group};
  return kv_run(session, batch, &calls);
}

/* ---- Recovery --------------------------------------------------------------------------------------------------- */

/* Reads the checkpoint; 0: it is damaged. */
static int read_checkpoint(kv_database *database) {
  char path[4200];
  uint64_t length, size = 0;
  uint32_t sum;
  named(database, "checkpoint", path);
  const int file = open(path, O_RDONLY);
  if (file < 0) return errno == ENOENT;
  uint8_t *all = read_all(file, &length);
  close(file);
  if (all != NULL && length >= 24) memcpy(&size, all + 16, 8);
  int is_whole = size >= 24 && size == length;
  if (is_whole) {
    memcpy(&sum, all, 4);
    is_whole = sum == sum_of(all + 8, size - 8) && apply(database, all + 24, size - 24);
    memcpy(&database->generation, all + 8, 8);
  }
  free(all);
  return is_whole;
}

/* Where the log ends by its heads, or behind its heads if none is of this checkpoint; 0: the head is damaged. */
static uint64_t end_by_heads(kv_database *database, const uint8_t *all, uint64_t length) {
  uint64_t end = 2 * PAGE, head[3];
  uint32_t sum;
  for (int i = 0; i < 2 && length >= (uint64_t)(i + 1) * PAGE; i++) {
    memcpy(head, all + i * PAGE, sizeof(head));
    memcpy(&sum, all + i * PAGE + sizeof(head), 4);
    if (is(database, "wide-head") && i == 0 && memcmp(head, all + PAGE - sizeof(head), sizeof(head)) != 0) return 0;
    if (sum != sum_of((const uint8_t *)head, sizeof(head)) || head[0] <= database->heads) continue;
    database->heads = head[0];
    end = head[1] == database->generation ? head[2] : 2 * PAGE;
  }
  return end;
}

/* Reads a log, and cuts off what follows the last whole frame. */
static int read_log(kv_database *database, int log) {
  uint64_t length, at = 0;
  const int file = database->logs[log];
  uint8_t *all = read_all(file, &length);
  if (all == NULL) return 0;
  const int has_sums = !has_heads(database) && !is(database, "sum-less") && !is(database, "torn-tail");
  uint64_t end = length;
  if (has_heads(database)) {
    end = end_by_heads(database, all, length);
    if (end == 0 || (end > length && end != 2 * PAGE)) {
      free(all);
      return 0;
    }
    at = 2 * PAGE;
  }
  while (at + HEAD <= end) {
    uint32_t head[2];
    uint64_t generation;
    memcpy(head, all + at, sizeof(head));
    memcpy(&generation, all + at + 8, 8);
    if (head[0] == 0 || head[0] > end - at - HEAD) break;
    if (has_sums && head[1] != sum_of(all + at + 8, head[0] + 8)) break;
    if (generation != database->generation && !is(database, "recycled")) break;
    if (is(database, "recycled")) {
      /* Zeros follow the last change. */
      uint64_t used = head[0];
      while (used > 0 && all[at + HEAD + used - 1] == 0) used--;
      for (uint64_t tried = used; tried <= head[0] && !apply(database, all + at + HEAD, tried); tried++) continue;
    } else if (!apply(database, all + at + HEAD, head[0]) && has_sums) {
      break;
    }
    at += HEAD + head[0];
  }
  database->ends[log] = at;
  int is_done = 1;
  if (is_recycled(database)) {
    is_done = at == 0 || is(database, "recycled") || checkpoint(database, 0);
  } else if (at < length && is(database, "behind-torn")) {
    database->ends[log] = length; /* What is appended there is not read again. */
  } else if (at < length && is(database, "recover-in-place")) {
    is_done = ftruncate(file, 0) == 0 && write_all(file, all, at, 0);
  } else if (at < length) {
    is_done = ftruncate(file, (off_t)at) == 0;
  }
  if (is_done && is_durable(database) && at < length) is_done = fdatasync(file) == 0;
  if (of(database, "direct")) memcpy(database->block, all + at / PAGE * PAGE, at % PAGE);
  free(all);
  return is_done;
}

/* Repeats what is in the double-write buffer, and reads the slots; 0: one is torn. */
static int read_slots(kv_database *database) {
  uint64_t length, size;
  uint32_t head[256], change[3], sum;
  uint8_t *buffer = read_all(database->other, &size), *all = read_all(database->logs[0], &length);
  int is_done = buffer != NULL && all != NULL;
  int is_whole = is_done && size >= PAGE;
  if (is_whole) {
    memcpy(head, buffer, sizeof(head));
    const uint64_t used = PAGE + (uint64_t)head[1] * SLOT;
    is_whole = head[1] <= 64 && used <= size && head[0] == sum_of(buffer + 4, used - 4);
  }
  for (uint32_t i = 0; is_done && is_whole && i < head[1]; i++) {
    const uint64_t at = (uint64_t)head[2 + i] * SLOT;
    const uint8_t *slot = buffer + PAGE + (uint64_t)i * SLOT;
    if (at + SLOT > length) {
      all = realloc(all, at + SLOT);
      if (at > length) memset(all + length, 0, at - length);
      length = at + SLOT;
    }
    memcpy(all + at, slot, SLOT);
    if (!is(database, "double-not-rewritten")) is_done = write_all(database->logs[0], slot, SLOT, at);
  }
  if (is_done && is_durable(database)) is_done = fdatasync(database->logs[0]) == 0;
  for (uint64_t at = 0; is_done && at + SLOT <= length; at += SLOT) {
    memcpy(&sum, all + at, 4);
    memcpy(change, all + at + 4, sizeof(change));
    is_done = sum == sum_of(all + at + 4, SLOT - 4) && change[1] <= 256 && change[2] <= SLOT;
    if (!is_done) break;
    row *own = set(database, all + at + 16, change[1], all + at + 16 + change[1], change[2], (int)change[0]);
    own->slot = ++database->slots;
  }
  free(buffer);
  free(all);
  return is_done;
}

static const kv_driver driver;

static int open_log(kv_database *database, int log, const char *name, int creates) {
  char path[4200];
  int flags = O_RDWR | (creates ? O_CREAT : 0);
  if (is(database, "dsync") && is_durable(database)) flags |= O_DSYNC;
  named(database, name, path);
  int file = open(path, flags | (of(database, "direct") ? O_DIRECT : 0), 0600);
  if (file < 0 && errno == EINVAL) file = open(path, flags, 0600); /* A file system in memory. */
  if (file < 0) return 0;
  database->logs[log] = file;
  struct stat facts;
  if (!is_recycled(database)) return 1;
  if (fstat(file, &facts) != 0 || (facts.st_size < ALLOCATED && posix_fallocate(file, 0, ALLOCATED) != 0)) return 0;
  if (is_durable(database) && fsync(file) != 0) return 0;
  if (!is_mapped(database)) return 1;
  database->map = mmap(NULL, ALLOCATED, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return database->map != MAP_FAILED;
}

static int recover(kv_database *database, int creates) {
  char path[4200];
  struct stat facts;
  named(database, "log", path);
  database->was_there = stat(path, &facts) == 0;
  if (!open_log(database, 0, "log", creates)) return 0;
  if (is(database, "two-logs") && !open_log(database, 1, "log2", creates)) return 0;
  named(database, "other", path);
  database->other = open(path, O_RDWR | O_CREAT, 0600);
  if (database->other < 0 || (is_durable(database) && !sync_folder(database))) return 0;
  if (in_slots(database)) return read_slots(database);
  return read_checkpoint(database) && read_log(database, 0) && (!is(database, "two-logs") || read_log(database, 1));
}

/* Whether `text` is one of the words of a "choice:a|b|c". */
static int is_choice(const char *type, const char *text) {
  const size_t length = strlen(text);
  for (const char *word = strchr(type, ':'); word != NULL && length != 0; word = strchr(word + 1, '|'))
    if (strncmp(word + 1, text, length) == 0 && (word[1 + length] == '|' || word[1 + length] == 0)) return 1;
  return 0;
}

static int has_thread(const kv_database *database) { return of(database, "by-thread") || is(database, "timer"); }

static void release_all(kv_database *database) {
  for (int i = 0; i < 2; i++)
    if (database->logs[i] >= 0) close(database->logs[i]);
  if (database->other >= 0) close(database->other);
  if (database->map != NULL && database->map != MAP_FAILED) munmap(database->map, ALLOCATED);
  if (of(database, "uring")) close(database->ring.file);
  for (uint32_t i = 0; i < PLACES; i++) {
    free(database->rows[i].key);
    free(database->rows[i].value);
  }
  free(database->rows);
  free(database->frame);
  free(database->held);
  free(database->block);
  free(database);
}

static uint32_t open_database(const kv_config *config, kv_opened *opened, kv_database **out) {
  uint32_t status = kv_open_begin(&driver, config, opened);
  if (status == KV_OK) status = kv_pick_level(&driver, config, KV_POWER, opened);
  if (status != KV_OK) return status;
  kv_database *database = calloc(1, sizeof(kv_database));
  snprintf(database->path, sizeof(database->path), "%s", config->path);
  snprintf(database->way, sizeof(database->way), "%s", kv_setting_text(&driver, config, "way"));
  if (!is_choice(options[0].type, database->way)) {
    status = kv_fail_open(opened, KV_ERROR, "option way: there is no `%s`", database->way);
    free(database);
    return status;
  }
  kv_opened_setting(opened, "way", "%s", database->way);
  snprintf(opened->version, sizeof(opened->version), "1");
  snprintf(opened->compression, sizeof(opened->compression), "none");
  database->level = opened->level;
  database->logs[0] = database->logs[1] = database->other = database->ring.file = -1;
  database->rows = calloc(PLACES, sizeof(row));
  database->frame = malloc(FRAME);
  database->held = malloc(2 * FRAME);
  database->block = aligned_alloc(PAGE, FRAME + 2 * PAGE);
  database->ends[0] = has_heads(database) ? 2 * PAGE : 0;
  pthread_mutex_init(&database->lock, NULL);
  pthread_cond_init(&database->changed, NULL);
  if (of(database, "uring") && !open_ring(&database->ring)) {
    release_all(database);
    return kv_fail_open(opened, KV_UNSUPPORTED, "no io_uring: %s", strerror(errno));
  }
  errno = 0;
  if (!recover(database, (config->flags & KV_CREATE) != 0)) {
    kv_fail_open(opened, KV_ERROR, "the files cannot be read, or are damaged: %s", strerror(errno));
    release_all(database);
    return KV_ERROR;
  }
  if (has_thread(database) && pthread_create(&database->thread, NULL, work_aside, database) != 0) abort();
  *out = database;
  return KV_OK;
}

static uint32_t maintain(kv_database *database, uint32_t work, char *error) {
  if (work != KV_FLUSH && work != KV_COMPACT) return KV_UNSUPPORTED;
  pthread_mutex_lock(&database->lock);
  int is_done = work == KV_COMPACT ? checkpoint(database, 0) : release(database) && fsync(database->logs[0]) == 0;
  if (is_done && database->map != NULL && is(database, "mapped")) is_done = fsync(database->logs[0]) == 0;
  pthread_mutex_unlock(&database->lock);
  return is_done ? (uint32_t)KV_OK : kv_fail_call(error, KV_ERROR, "the files cannot be written");
}

static uint32_t close_database(kv_database *database, char *error) {
  pthread_mutex_lock(&database->lock);
  const int is_done = checkpoint(database, 1);
  database->is_ended = 1;
  pthread_cond_broadcast(&database->changed);
  pthread_mutex_unlock(&database->lock);
  if (has_thread(database)) pthread_join(database->thread, NULL);
  release_all(database);
  return is_done ? (uint32_t)KV_OK : kv_fail_call(error, KV_ERROR, "the checkpoint cannot be written");
}

static const kv_driver driver = {.abi = KV_ABI,
                                 .size = sizeof(kv_driver),
                                 .name = "ledger",
                                 .engine = "a log, wrong after a crash",
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
                                 .maintain = maintain,
                                 .stats = kv_no_stats};

KV_EXPORT(&driver)
