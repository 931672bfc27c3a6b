/* The kit for kvdyno drivers in C: the timed loop, and the code that every driver would otherwise repeat.
 *
 * A driver puts its functions into a constant kv_calls and calls kv_run from its execute entry: the loop is
 * inlined around them, so that only the call to the engine is timed. driver/README.md is the guide for authors.
 * C11 with the GNU builtins of gcc and clang; also valid as C++17.
 */
#ifndef KVDYNO_KIT_H
#define KVDYNO_KIT_H

#if defined(__STRICT_ANSI__) && !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L /* clock_gettime, with -std=c11 */
#endif

#include "driver.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define KV_INLINE static inline __attribute__((always_inline, unused))
#define KV_OUTLINE static __attribute__((noinline, unused))
#define KV_PRINTF(text, first) __attribute__((__format__(__printf__, text, first)))

/* ---- Texts -------------------------------------------------------------------------------------------------- */

/* Whether a byte continues a character. */
KV_INLINE int kv_continues(char byte) { return ((unsigned char)byte & 0xC0) == 0x80; }

/* Formats into a field of `size` bytes. Of a text that is too long, a part of the beginning and the end are kept, cut
 * at character boundaries, with `..` between them: errors say first where, and at the end what went wrong. */
KV_OUTLINE KV_PRINTF(3, 0) void kv_write_text(char *field, size_t size, const char *format, va_list arguments) {
  char whole[2048];
  int length = vsnprintf(whole, sizeof(whole), format, arguments);
  size_t end = length < 0 ? 0 : (size_t)length, head = size / 3, tail;
  if (end >= sizeof(whole)) {
    end = sizeof(whole) - 1;
    while (end > 0 && kv_continues(whole[end - 1])) end--;             /* the tail of a character */
    if (end > 0 && ((unsigned char)whole[end - 1] & 0x80) != 0) end--; /* and its first byte */
  }
  if (end < size) {
    memcpy(field, whole, end);
    field[end] = 0;
    return;
  }
  while (head > 0 && kv_continues(whole[head])) head--;
  tail = end - (size - head - 3);
  while (tail < end && kv_continues(whole[tail])) tail++;
  memcpy(field, whole, head);
  memcpy(field + head, "..", 2);
  memcpy(field + head + 2, whole + tail, end - tail);
  field[head + 2 + end - tail] = 0;
}

/* Fails an op: `return kv_fail(batch, op, KV_ERROR, "put: %s", text)`. The first text of a batch is kept. */
KV_OUTLINE KV_PRINTF(4, 5) uint32_t
    kv_fail(kv_batch *batch, const kv_op *op, uint32_t status, const char *format, ...) {
  if (batch->error[0] == 0) {
    va_list arguments;
    va_start(arguments, format);
    kv_write_text(batch->error, sizeof(batch->error), format, arguments);
    va_end(arguments);
    batch->error_op = (uint32_t)(op - batch->ops);
  }
  return status;
}

/* Fails session, session_end, maintain or close; `error` has KV_TEXT bytes or is null. */
KV_OUTLINE KV_PRINTF(3, 4) uint32_t kv_fail_call(char *error, uint32_t status, const char *format, ...) {
  if (error != NULL) {
    va_list arguments;
    va_start(arguments, format);
    kv_write_text(error, KV_TEXT, format, arguments);
    va_end(arguments);
  }
  return status;
}

/* Fails open. */
#define kv_fail_open(opened, ...) kv_fail_call((opened)->error, __VA_ARGS__)

/* ---- The timed loop ----------------------------------------------------------------------------------------- */

/* Runs one op and returns its status. */
typedef uint32_t kv_call(kv_session *session, kv_op *op, kv_batch *batch);

/* Runs a joined group. KV_OK: each op has its status. KV_NOT_RUN: the driver does not handle such groups specially, and
 * the kit runs the ops one by one (not allowed for an atomic group). Any other status applies to all ops, which had no
 * effect. */
typedef uint32_t kv_group_call(kv_session *session, kv_op *ops, uint32_t count, int atomic, kv_batch *batch);

/* The functions of a driver. A null call means KV_UNSUPPORTED; a null group means that no group is special. */
typedef struct kv_calls {
  uint64_t capabilities; /* as in the table: the kit refuses ops that need others */
  kv_call *get;
  kv_call *put;
  kv_call *remove;
  kv_call *scan;
  kv_call *merge;
  kv_call *control; /* KV_BEGIN, KV_COMMIT, KV_ABORT, KV_DROP */
  kv_group_call *group;
  kv_call *push;
  kv_call *pop;
} kv_calls;

/* One read of the batch's clock, in ticks. */
KV_INLINE uint64_t kv_ticks(uint32_t clock) {
  struct timespec moment;
#if defined(__x86_64__)
  if (clock == KV_CLOCK_COUNTER) return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  if (clock == KV_CLOCK_COUNTER) {
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
  }
#else
  (void)clock;
#endif
  clock_gettime(CLOCK_MONOTONIC, &moment);
  return (uint64_t)moment.tv_sec * 1000000000u + (uint64_t)moment.tv_nsec;
}

/* One read of the batch's clock after all preceding instructions have ended. A plain read of the counter may run ahead
 * of them, so their time would count as that of whatever follows. The monotonic clock is ordered by itself. */
KV_INLINE uint64_t kv_ordered_ticks(uint32_t clock) {
#if defined(__x86_64__)
  if (clock == KV_CLOCK_COUNTER) __builtin_ia32_lfence();
#elif defined(__aarch64__)
  if (clock == KV_CLOCK_COUNTER) __asm__ volatile("isb" ::: "memory");
#endif
  return kv_ticks(clock);
}

/* The op flags that need a capability which is not in `capabilities`. */
KV_INLINE uint32_t kv_refused_flags(uint64_t capabilities) {
  return ((capabilities & KV_CAN_NEW) ? 0u : (uint32_t)KV_NEW) |
         ((capabilities & KV_CAN_REVERSE) ? 0u : (uint32_t)KV_REVERSE) |
         ((capabilities & KV_CAN_PREFIX) ? 0u : (uint32_t)KV_PREFIX) |
         ((capabilities & KV_CAN_HOLD) ? 0u : (uint32_t)KV_HOLD) |
         ((capabilities & KV_CAN_TOUCH) ? 0u : (uint32_t)KV_TOUCH) |
         ((capabilities & KV_MERGE_APPEND) ? 0u : (uint32_t)KV_APPEND);
}

/* Whether an op needs a capability that is not declared: no driver may silently do what it does not declare. */
KV_INLINE int kv_is_refused(const kv_op *op, uint64_t capabilities) {
  if ((op->flags & kv_refused_flags(capabilities)) != 0) return 1;
  if (!(capabilities & KV_KEYSPACES) && op->keyspace != 0) return 1;
  if (!(capabilities & KV_TIME_TO_LIVE) && op->kind == KV_PUT && op->limit != 0) return 1;
  if (!(capabilities & KV_CAN_DELETE) && op->kind == KV_DELETE) return 1;
  if (!(capabilities & KV_ORDERED) && op->kind == KV_SCAN && !(op->flags & KV_PREFIX)) return 1;
  if (!(capabilities & KV_MERGE_ADD) && op->kind == KV_MERGE && !(op->flags & KV_APPEND)) return 1;
  if (!(capabilities & KV_CAN_LONG_TRANSACTION) && op->kind >= KV_BEGIN && op->kind <= KV_ABORT) return 1;
  if (!(capabilities & KV_CAN_HOLD) && op->kind == KV_DROP) return 1;
  if (!(capabilities & KV_LISTS) && op->kind >= KV_PUSH) return 1;
  return op->kind == KV_NOTHING || op->kind > KV_POP;
}

/* ---- Bytes that an engine keeps (KV_KEEPS_KEY and KV_KEEPS_VALUE in driver.h) ---- */

/* Whether a driver with these capabilities gets copies for this op. */
KV_INLINE int kv_is_kept(const kv_op *op, uint64_t capabilities) {
  if (!(capabilities & (KV_KEEPS_KEY | KV_KEEPS_VALUE))) return 0;
  return op->kind == KV_PUT || op->kind == KV_DELETE || op->kind == KV_MERGE || op->kind == KV_PUSH;
}

/* A copy from malloc of at least one byte; null if out of memory. */
KV_OUTLINE const uint8_t *kv_copied(const uint8_t *bytes, uint32_t length) {
  uint8_t *made = (uint8_t *)malloc(length != 0 ? length : 1);
  if (made != NULL && length != 0) memcpy(made, bytes, length);
  return made;
}

/* Points an op to copies of what the engine keeps. The core's pointers are saved meanwhile in the fields of the stamps,
 * which are written after the call. Returns 0 if out of memory; nothing is changed then. */
KV_OUTLINE int kv_own(kv_op *op, uint64_t capabilities) {
  const uint8_t *key = op->key, *value = op->value;
  if (capabilities & KV_KEEPS_KEY) key = kv_copied(op->key, op->key_length);
  if (capabilities & KV_KEEPS_VALUE) value = kv_copied(op->value, op->value_length);
  if (key == NULL || value == NULL) {
    if (capabilities & KV_KEEPS_KEY) free((void *)key);
    if (capabilities & KV_KEEPS_VALUE) free((void *)value);
    return 0;
  }
  op->start = (uint64_t)(uintptr_t)op->key;
  op->end = (uint64_t)(uintptr_t)op->value;
  op->key = key;
  op->value = value;
  return 1;
}

/* Restores the op as it was sent; the driver owns the copies. */
KV_INLINE void kv_disown(kv_op *op) {
  op->key = (const uint8_t *)(uintptr_t)op->start;
  op->value = (const uint8_t *)(uintptr_t)op->end;
}

/* Runs one op that the driver supports. */
KV_INLINE uint32_t kv_call_one(kv_session *session, kv_op *op, kv_batch *batch, const kv_calls *calls) {
  kv_call *call = NULL;
  switch (op->kind) {
  case KV_GET:
    return calls->get != NULL ? calls->get(session, op, batch) : (uint32_t)KV_UNSUPPORTED;
  case KV_PUT:
    return calls->put != NULL ? calls->put(session, op, batch) : (uint32_t)KV_UNSUPPORTED;
  case KV_DELETE:
    call = calls->remove;
    break;
  case KV_SCAN:
    call = calls->scan;
    break;
  case KV_MERGE:
    call = calls->merge;
    break;
  case KV_BEGIN:
  case KV_COMMIT:
  case KV_ABORT:
  case KV_DROP:
    call = calls->control;
    break;
  case KV_PUSH:
    call = calls->push;
    break;
  case KV_POP:
    call = calls->pop;
    break;
  }
  return call != NULL ? call(session, op, batch) : (uint32_t)KV_UNSUPPORTED;
}

/* Runs one op. */
KV_INLINE uint32_t kv_run_one(kv_session *session, kv_op *op, kv_batch *batch, const kv_calls *calls) {
  uint32_t status;
  op->retries = 0;
  if (kv_is_refused(op, calls->capabilities)) return KV_UNSUPPORTED;
  if (!kv_is_kept(op, calls->capabilities)) return kv_call_one(session, op, batch, calls);
  if (!kv_own(op, calls->capabilities)) return kv_fail(batch, op, KV_ERROR, "out of memory");
  status = kv_call_one(session, op, batch, calls);
  kv_disown(op);
  return status;
}

/* Runs a group that the driver supports. KV_NOT_RUN: the driver does not handle it specially, and its ops run one by
 * one unless the group is atomic. */
KV_INLINE uint32_t kv_call_group(kv_session *session, kv_batch *batch, const kv_calls *calls, uint32_t first,
                                 uint32_t count, int atomic) {
  kv_op *ops = batch->ops + first;
  uint32_t status, owned, i;
  for (owned = 0; owned < count; owned++)
    if (kv_is_kept(&ops[owned], calls->capabilities) && !kv_own(&ops[owned], calls->capabilities)) break;
  if (owned == count) {
    status = calls->group(session, ops, count, atomic, batch);
    if (status == KV_NOT_RUN && !atomic) {
      for (i = 0; i < count; i++) {
        ops[i].status = kv_call_one(session, &ops[i], batch, calls);
        __atomic_store_n(&batch->done, first + i + 1, __ATOMIC_RELEASE);
      }
      status = KV_OK;
    }
  } else {
    status = kv_fail(batch, ops, KV_ERROR, "out of memory");
    for (i = 0; i < owned; i++) {
      if (!kv_is_kept(&ops[i], calls->capabilities)) continue;
      if (calls->capabilities & KV_KEEPS_KEY) free((void *)ops[i].key);
      if (calls->capabilities & KV_KEEPS_VALUE) free((void *)ops[i].value);
    }
  }
  for (i = 0; i < owned; i++)
    if (kv_is_kept(&ops[i], calls->capabilities)) kv_disown(&ops[i]);
  return status;
}

/* Whether no further op may start at tick `now`. */
KV_INLINE int kv_is_over(const kv_batch *batch, uint64_t now) {
  return (batch->deadline != 0 && now >= batch->deadline) || __atomic_load_n(batch->stop, __ATOMIC_RELAXED) != 0;
}

/* Spins from tick `now` until `due`, the deadline or the stop word; returns the tick that saw it. */
KV_OUTLINE uint64_t kv_spin_until(kv_batch *batch, uint64_t due, uint64_t from) {
  for (;;) {
    uint64_t now = kv_ticks(batch->clock);
    if (now >= due || kv_is_over(batch, now)) {
      batch->waited += now - from;
      return now;
    }
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
  }
}

/* Runs the group of `count` ops at `first`, which began at tick `start`; returns the tick at which it ended. */
KV_OUTLINE uint64_t kv_run_group(kv_session *session, kv_batch *batch, const kv_calls *calls, uint32_t first,
                                 uint32_t count, uint64_t start) {
  kv_op *ops = batch->ops + first;
  const int atomic = (ops[0].flags & KV_ATOMIC) != 0;
  uint32_t status = KV_NOT_RUN;
  uint64_t end;
  uint32_t i;
  int is_refused = calls->group == NULL || (atomic && !(calls->capabilities & KV_TRANSACTION));
  for (i = 0; i < count; i++) {
    ops[i].retries = 0;
    is_refused |= kv_is_refused(&ops[i], calls->capabilities);
  }
  if (!is_refused) status = kv_call_group(session, batch, calls, first, count, atomic);
  if (status == KV_NOT_RUN && !atomic) {
    for (i = 0; i < count; i++) {
      ops[i].status = kv_run_one(session, &ops[i], batch, calls);
      __atomic_store_n(&batch->done, first + i + 1, __ATOMIC_RELEASE);
    }
  } else if (status != KV_OK) {
    if (status == KV_NOT_RUN)
      status = kv_fail(batch, ops, KV_UNSUPPORTED, "this engine does not support such transactions");
    for (i = 0; i < count; i++) ops[i].status = status;
  }
  end = kv_ordered_ticks(batch->clock);
  for (i = 0; i < count; i++) {
    ops[i].start = start;
    ops[i].end = end;
  }
  return end;
}

/* Runs a batch (rules 3, 6 and 7 of driver.h). `calls` must be a constant, so that the calls are inlined. Returns
 * KV_OK, or KV_ERROR when an op failed with a text. */
KV_INLINE uint32_t kv_run(kv_session *session, kv_batch *batch, const kv_calls *calls) {
  kv_op *const ops = batch->ops;
  const uint32_t count = batch->count;
  const uint32_t clock = batch->clock;
  uint64_t now = kv_ticks(clock);
  uint32_t next = 0;
  batch->start = now;
  __atomic_store_n(&batch->done, 0u, __ATOMIC_RELAXED);
  while (next < count && !kv_is_over(batch, now)) {
    kv_op *op = &ops[next];
    if (op->due > now) {
      now = kv_spin_until(batch, op->due, now);
      if (kv_is_over(batch, now)) break;
    }
    if ((op->flags & KV_JOIN) == 0) {
      uint32_t status = kv_run_one(session, op, batch, calls);
      /* What the last op has left unfinished would belong to no op. */
      uint64_t end = next + 1 == count ? kv_ordered_ticks(clock) : kv_ticks(clock);
      op->start = now;
      op->end = end;
      op->status = status;
      now = end;
      next += 1;
    } else {
      uint32_t after = next;
      while (after + 1 < count && (ops[after].flags & KV_JOIN) != 0) after++;
      after += 1;
      now = kv_run_group(session, batch, calls, next, after - next, now);
      next = after;
    }
    __atomic_store_n(&batch->done, next, __ATOMIC_RELEASE);
  }
  return batch->error[0] != 0 ? KV_ERROR : KV_OK;
}

/* Runs `one` on each op of a group, as part of a transaction, and sets the statuses. 1: commit. 0: an op was short or
 * failed and the others are KV_ABORTED; undo, and return KV_OK from the group call. */
KV_INLINE int kv_each(kv_session *session, kv_op *ops, uint32_t count, kv_batch *batch, kv_call *one) {
  uint32_t i, j;
  for (i = 0; i < count; i++) {
    ops[i].status = one(session, &ops[i], batch);
    if (ops[i].status <= KV_EXISTS) continue;
    for (j = 0; j < count; j++)
      if (j != i) ops[j].status = KV_ABORTED;
    return 0;
  }
  return 1;
}

/* Whether a group only reads. */
KV_INLINE int kv_only_reads(const kv_op *ops, uint32_t count) {
  uint32_t i;
  for (i = 0; i < count; i++)
    if (ops[i].kind != KV_GET && ops[i].kind != KV_SCAN) return 0;
  return 1;
}

#include "rows.h"

/* ---- Open --------------------------------------------------------------------------------------------------- */

/* Refuses options that the driver does not have. */
KV_OUTLINE uint32_t kv_check_settings(const kv_driver *driver, const kv_config *config, kv_opened *opened) {
  uint32_t i, j;
  for (i = 0; i < config->setting_count; i++) {
    for (j = 0; j < driver->option_count; j++)
      if (strcmp(config->settings[i].name, driver->options[j].name) == 0) break;
    if (j == driver->option_count)
      return kv_fail_open(opened, KV_ERROR, "no option named `%s`", config->settings[i].name);
  }
  return KV_OK;
}

/* Every open begins with this: checks the ABI and the options, and reports the table's capabilities and no cache
 * setting as effective; the driver corrects both. */
KV_OUTLINE uint32_t kv_open_begin(const kv_driver *driver, const kv_config *config, kv_opened *opened) {
  opened->capabilities = driver->capabilities;
  opened->cache_bytes = UINT64_MAX;
  if (config->abi != KV_ABI)
    return kv_fail_open(opened, KV_ERROR, "the config has ABI %u, this driver has ABI %u", config->abi, KV_ABI);
  return kv_check_settings(driver, config, opened);
}

/* Picks the weakest of the driver's levels at or above the requested one and reports it in opened->level; KV_DEFAULT
 * means `authors`. KV_UNSUPPORTED with a text if the level cannot be reached. */
KV_OUTLINE uint32_t kv_pick_level(const kv_driver *driver, const kv_config *config, uint32_t authors,
                                  kv_opened *opened) {
  static const char *const names[] = {"none", "process", "power"};
  const char *strongest = "none";
  uint32_t level;
  if (config->level == KV_DEFAULT) {
    opened->level = authors;
    return KV_OK;
  }
  for (level = KV_NONE; level <= KV_POWER; level++) {
    if ((driver->levels & (1ull << level)) == 0) continue;
    if (level >= config->level) {
      opened->level = level;
      return KV_OK;
    }
    strongest = names[level];
  }
  return kv_fail_open(opened, KV_UNSUPPORTED,
                      "cannot reach durability level `%s`; the strongest level of this engine is `%s`",
                      config->level == KV_POWER ? "power" : "process", strongest);
}

/* The value of an option: the given one, otherwise its default; empty for an option that is not declared. */
KV_OUTLINE const char *kv_setting_text(const kv_driver *driver, const kv_config *config, const char *name) {
  uint32_t i;
  for (i = 0; i < config->setting_count; i++)
    if (strcmp(config->settings[i].name, name) == 0) return config->settings[i].value;
  for (i = 0; i < driver->option_count; i++)
    if (strcmp(driver->options[i].name, name) == 0) return driver->options[i].default_value;
  return "";
}

/* A "count" or "bytes" option; the core has converted 64M to digits. */
KV_OUTLINE uint32_t kv_setting_number(const kv_driver *driver, const kv_config *config, const char *name,
                                      uint64_t *number, kv_opened *opened) {
  const char *text = kv_setting_text(driver, config, name);
  char *end = NULL;
  errno = 0;
  *number = strtoull(text, &end, 10);
  if (text[0] < '0' || text[0] > '9' || *end != 0 || errno != 0)
    return kv_fail_open(opened, KV_ERROR, "option %s: expected a number, got `%s`", name, text);
  return KV_OK;
}

/* A "flag" option: `true` or `false`. */
KV_OUTLINE uint32_t kv_setting_flag(const kv_driver *driver, const kv_config *config, const char *name, int *flag,
                                    kv_opened *opened) {
  const char *text = kv_setting_text(driver, config, name);
  *flag = strcmp(text, "true") == 0;
  if (!*flag && strcmp(text, "false") != 0)
    return kv_fail_open(opened, KV_ERROR, "option %s: expected true or false, got `%s`", name, text);
  return KV_OK;
}

/* Reports an effective setting as `name=value`; also settings that the user cannot change. */
KV_OUTLINE KV_PRINTF(3, 4) void kv_opened_setting(kv_opened *opened, const char *name, const char *format, ...) {
  const size_t used = strlen(opened->settings);
  const size_t room = sizeof(opened->settings) - used;
  char value[256];
  va_list arguments;
  va_start(arguments, format);
  kv_write_text(value, sizeof(value), format, arguments);
  va_end(arguments);
  if (strlen(name) + strlen(value) + 3 <= room) snprintf(opened->settings + used, room, "%s=%s\n", name, value);
}

/* For a table whose engine has no statistics. */
KV_OUTLINE uint32_t kv_no_stats(kv_database *database, char *out, uint64_t size) {
  (void)database;
  if (size != 0) out[0] = 0;
  return KV_OK;
}

/* For a table whose engine has no flush, no compaction and no background work to wait for. */
KV_OUTLINE uint32_t kv_no_maintain(kv_database *database, uint32_t work, char *error) {
  (void)database, (void)work, (void)error;
  return KV_UNSUPPORTED;
}

/* For a table whose sessions have no state: the session is the database. */
KV_OUTLINE uint32_t kv_same_session(kv_database *database, const kv_arena *arena, kv_session **session, char *error) {
  (void)arena, (void)error;
  *session = (kv_session *)database;
  return KV_OK;
}

/* The end of such a session. */
KV_OUTLINE uint32_t kv_same_session_end(kv_session *session, char *error) {
  (void)session, (void)error;
  return KV_OK;
}

/* Exports a plug-in's drivers: KV_EXPORT(&one, &other) at the end of a file. */
#define KV_EXPORT(...)                                                                \
  __attribute__((visibility("default"))) const kv_drivers *kv_plugin(void) {          \
    static const kv_driver *const list[] = {__VA_ARGS__};                             \
    static const kv_drivers drivers = {KV_ABI, sizeof(list) / sizeof(list[0]), list}; \
    return &drivers;                                                                  \
  }

#endif
