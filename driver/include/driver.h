/* The boundary between kvdyno and an engine: one C header for drivers in every language.
 *
 * The rules:
 *
 *  1. A plug-in exports one symbol, `kv_plugin`, a function that returns a list of driver tables. The list and
 *     each table begin with KV_ABI; the loader refuses any other number and prints both.
 *  2. A table has eight entries: open, session, execute, session_end, maintain, stats, close, and drive, which may be
 *     null. New abilities become new op kinds, op flags and capability bits, never new entries.
 *  3. `execute(session, batch)` is the only hot call (but see rule 12). The driver runs the ops of the batch in order, stores
 *     `done` after each, and stops before the next op once `*stop` is not zero or `deadline` has passed.
 *     `done` is less than `count` only for these two reasons or because of an error. Only an error may leave it
 *     inside a joined group. Ops that were not reached keep the status KV_NOT_RUN, which the core sets. An op is
 *     two cache lines: the core writes the first and the driver reads it; only the driver writes the second. The
 *     core can therefore send an op again.
 *  4. Each op gets a status. KV_OK, KV_NOT_FOUND and KV_EXISTS are answers; they do not abort a group.
 *     KV_SHORT: the out buffer is too small, and `needed` is the size that is enough; a short op, or a group with
 *     a short op, has had no effect. KV_CONFLICT: the driver gave up after retries (`retries` counts them).
 *     KV_ERROR: an error, with a text in the batch. KV_TOO_LARGE: the input is invalid for the engine.
 *     KV_UNSUPPORTED: the engine lacks the ability.
 *     Answers to a get or pop are KV_OK, KV_NOT_FOUND and KV_SHORT; to a put KV_OK and, with KV_NEW, KV_EXISTS; to a
 *     delete KV_OK and what KV_DELETE_TELLS adds; to a scan KV_OK and KV_SHORT; to any other op KV_OK. Every other
 *     status is a failure.
 *  5. Input bytes belong to the caller until execute returns. Values read are copied into the caller's out
 *     buffer inside the timed call: every engine delivers the same thing. Only with KV_TOUCH set does a driver
 *     that declares KV_CAN_TOUCH digest the bytes in place instead (see kv_touch), into `detail`. All of a
 *     session's memory (batch, ops, keys, values, out) is in one arena, given by base and size, so that a
 *     driver in another process can map it.
 *  6. KV_JOIN ties an op to the next one: the group may share one engine call or one commit (group commit,
 *     multi-get). KV_JOIN|KV_ATOMIC makes the group a transaction. A group ends with the first op without
 *     KV_JOIN, is within one batch and is timed as one: all its ops have the same start and end.
 *     A transaction over several calls (KV_BEGIN, KV_COMMIT, KV_ABORT) is a capability.
 *  7. The kit stamps each op with one clock read: the end of one op is the start of the next, and the batch has
 *     the first start. The kit spins until an op's due tick; the op then starts at the read that saw it, or when the
 *     previous op ended, whichever is later. The read after the last op of a batch, and after a group, waits until all
 *     preceding instructions have ended. The spin also ends at the stop word and the deadline. A group is due
 *     with its first op. The core sleeps, the kit only spins. The ticks of such spins belong to no op; they are added
 *     to `waited` and count as the harness's time.
 *     The loop is written once per language (kit.h for C); a driver is only the calls to its engine.
 *  8. A scan starts at `key` (forward: first key >= key; reverse: last key <= key; an empty key is the first or
 *     last of the keyspace) and writes rows {u32 key length, u32 value length, key, value} without padding
 *     into the out buffer until `limit` rows, the bound (`value`: exclusive end; with KV_PREFIX: the
 *     prefix every key must have), or the end. If the buffer fills before that, the status is KV_SHORT,
 *     `rows` and `length` report what was written, and `needed` is the size of the row that did not fit; the
 *     core sends the op again with KV_RESUME and, as `key`, the last key written, which the driver
 *     skips. Rows are never delivered by callback. With KV_HOLD the iterator stays open as `slot`. KV_RESUME with
 *     KV_HOLD and the same slot continues with that iterator if it is still at `key`, and otherwise searches for the
 *     first row after `key`. A driver may release the iterator at any time, and must do so where it would hide what
 *     the session itself writes (each write, group, begin, commit and abort; a held scan may show another session's
 *     writes or the state in which it began). KV_DROP releases it and is KV_OK also where nothing is held; the end
 *     of the session releases it too.
 *  9. A session is used by one thread at a time; a database by many. The core never opens two sessions of an
 *     engine that declares KV_SINGLE_WRITER in one thread. Drivers never print, exit or catch signals. Errors
 *     inside (panic, exception) become KV_ERROR, once per batch. Nothing runs after close.
 * 10. The config holds what is requested (see kv_config); the driver fills kv_opened with what is in effect. The
 *     durability level is a minimum: the driver picks the weakest it has at or above it, reports it, and fails
 *     only when it cannot reach it. Options are name=value; open fails on an unknown one. Environment variables
 *     that must be set before a library is loaded are listed in engine.toml. An engine whose values have a limit reports
 *     it as the effective setting `value_size_max`, in bytes: a key of key_size_max bytes, as requested, and a value of
 *     that size can be stored together. The core refuses a workload with larger values before its first phase.
 *     A read sees every write that was acknowledged before it began. Only a store whose copies may lag can differ, and
 *     then the effective setting `stale_reads=possible` says so: a get or scan without KV_STRONG may return an older value
 *     of its key, or miss a key that was written. A value of another key, or one that was never written, is a fault as
 *     ever. The core sets KV_STRONG on every read that is not measured, and only for such a store; every other driver
 *     ignores it.
 * 11. Capabilities are declared in the table, narrowed at open by options, and proven by `kvdyno prove --only rules`. An op
 *     that needs what an engine lacks is KV_UNSUPPORTED (the kit returns it for ops that need an undeclared
 *     capability); the core emulates it only where the report says so.
 * 12. `drive(session, turn, context)` is for engines whose runtime is not C's, such as Go's, where a call from C costs
 *     much. The driver runs the session's loop in its own runtime: `turn(context, KV_OK)` returns the first batch; the
 *     driver runs it as execute does, and `turn(context, status)`, with what execute would have returned, takes the
 *     answers and returns the next batch. If turn returns null, drive returns KV_OK. Turns come one after the other, on
 *     any thread, and only during drive; when drive returns, nothing of its loop runs any more. Nothing unwinds through
 *     turn or drive, and turn never calls the driver. The core calls drive once or more in a session, and execute
 *     only before and after.
 *
 * All integers are native-endian; all structs have the same layout on every 64-bit platform (checked below).
 */
#ifndef KVDYNO_DRIVER_H
#define KVDYNO_DRIVER_H

#include <stdint.h>

#ifdef __cplusplus
#define KV_SAME(condition, text) static_assert(condition, text)
extern "C" {
#else
#define KV_SAME(condition, text) _Static_assert(condition, text)
#endif

#define KV_ABI 2u

/* Durability levels, from the weakest to the strongest. A requested level is a minimum. */
enum kv_level {
  KV_NONE = 0,    /* may lose anything */
  KV_PROCESS = 1, /* an acknowledged write survives kill -9: it reached the kernel */
  KV_POWER = 2,   /* it survives power loss: on stable storage before the acknowledgement */
  KV_DEFAULT = 3  /* only as a request: what the engine's authors ship; the effective level is one of the above */
};

/* Kinds of op. */
enum kv_kind {
  KV_NOTHING = 0,
  KV_GET = 1,
  KV_PUT = 2,    /* insert or overwrite; with KV_NEW: insert only, otherwise KV_EXISTS; `limit` = seconds to live, 0 = forever */
  KV_DELETE = 3, /* KV_NOT_FOUND for an absent key if the driver declares KV_DELETE_TELLS, otherwise KV_OK */
  KV_SCAN = 4,   /* rule 8; flags KV_REVERSE, KV_PREFIX, KV_KEYS, KV_RESUME, KV_HOLD */
  KV_MERGE = 5,  /* add the little-endian u64 in `value` to the stored one (absent = 0), or with KV_APPEND append the bytes */
  KV_BEGIN = 6,  /* a transaction over several calls; with KV_CAN_LONG_TRANSACTION */
  KV_COMMIT = 7,
  KV_ABORT = 8,
  KV_DROP = 9,   /* release what `slot` holds */
  KV_PUSH = 10,  /* add `value` at the right end of the list named `key`, which is created if needed; with KV_LISTS */
  KV_POP = 11    /* remove the value at the left end, into `out`; KV_NOT_FOUND: the list is empty or absent; with KV_LISTS */
};

/* Flags of an op. */
enum kv_flag {
  KV_JOIN = 1 << 0,    /* tied to the next op (rule 6) */
  KV_ATOMIC = 1 << 1,  /* KV_JOIN on all ops of the group except the last, and KV_ATOMIC on all: a transaction */
  KV_NEW = 1 << 2,     /* put: the key must be absent */
  KV_REVERSE = 1 << 3, /* scan downward */
  KV_PREFIX = 1 << 4,  /* scan: `value` is the prefix that every row's key must have */
  KV_KEYS = 1 << 5,    /* scan: rows without values (value length 0) */
  KV_RESUME = 1 << 6,  /* scan: continue after `key`, or with the iterator in `slot` */
  KV_HOLD = 1 << 7,    /* scan: keep the iterator in `slot` */
  KV_TOUCH = 1 << 8,   /* get: digest in place, copy nothing (rule 5) */
  KV_APPEND = 1 << 9,  /* merge: append bytes */
  KV_STRONG = 1 << 10  /* get, scan: must see every write that was acknowledged before (rule 10) */
};

/* Status of an op. */
enum kv_status {
  KV_OK = 0,
  KV_NOT_FOUND = 1,
  KV_EXISTS = 2,
  KV_SHORT = 3,
  KV_CONFLICT = 4,
  KV_ABORTED = 5,
  KV_FULL = 6, /* no space: disk, map or configured limit */
  KV_TOO_LARGE = 7,
  KV_UNSUPPORTED = 8,
  KV_NOT_RUN = 9,
  KV_ERROR = 10
};

/* One op: two cache lines. */
typedef struct kv_op {
  /* written by the core */
  uint8_t kind;
  uint8_t slot;          /* a held iterator or snapshot of the session */
  uint16_t flags;
  uint16_t keyspace;
  uint16_t split;        /* this many leading bytes of the key name a collection; 0 = none */
  const uint8_t *key;
  const uint8_t *value;  /* bytes to write; a scan's bound or prefix; a merge's operand */
  uint8_t *out;
  uint32_t key_length;
  uint32_t value_length;
  uint32_t out_size;
  uint32_t limit;        /* scan: rows, UINT32_MAX = to the end; put: seconds to live */
  uint64_t due;          /* the op must not start before this tick; 0 = none */
  uint64_t user;         /* the core's own */
  /* written by the driver */
  uint64_t start;        /* tick */
  uint64_t end;          /* tick */
  uint64_t length;       /* bytes written to out, or length of the value for KV_TOUCH */
  uint64_t needed;       /* with KV_SHORT */
  uint64_t detail;       /* digest (KV_TOUCH), or the engine's own error number */
  uint32_t rows;
  uint32_t retries;      /* zeroed by the kit before the op */
  uint32_t status;       /* enum kv_status */
  uint32_t reserved[3];
} kv_op;

KV_SAME(sizeof(kv_op) == 128, "an op is two cache lines");

#define KV_TEXT 232

/* The argument of execute. It is in the session's arena. */
typedef struct kv_batch {
  kv_op *ops;
  uint32_t count;
  uint32_t done;                  /* ops acknowledged so far; zeroed by the kit, then stored with release order after each op or group */
  uint64_t start;                 /* tick at which the first op could start; written by the kit */
  uint64_t deadline;              /* no op is started after this tick; 0 = none */
  const uint32_t *stop;           /* not zero: start no further op; never null */
  uint64_t waited;                /* ticks that belong to no op (rule 7); the kit adds to it */
  uint32_t clock;                 /* enum kv_clock */
  uint32_t error_op;              /* index of the op that `error` belongs to */
  char error[KV_TEXT];            /* text of the first error of the batch, NUL-terminated; empty = none */
} kv_batch;

KV_SAME(sizeof(kv_batch) == 288, "layout of kv_batch");

/* The clock that ticks are read from. */
enum kv_clock {
  KV_CLOCK_MONOTONIC = 0, /* CLOCK_MONOTONIC, nanoseconds */
  KV_CLOCK_COUNTER = 1    /* x86-64: rdtsc; aarch64: cntvct_el0 */
};

/* Capabilities (rule 11). */
#define KV_ORDERED (1ull << 0)               /* scans in byte order, forward */
#define KV_CAN_REVERSE (1ull << 1)
#define KV_CAN_PREFIX (1ull << 2)            /* prefix scans; on an unordered engine rows come in any order */
#define KV_MULTI_GET (1ull << 3)             /* joined gets share one engine call */
#define KV_TRANSACTION (1ull << 4)           /* JOIN|ATOMIC groups of writes */
#define KV_TRANSACTION_READS (1ull << 5)     /* gets inside such groups see the group's writes */
#define KV_MERGE_ADD (1ull << 6)             /* native add */
#define KV_MERGE_APPEND (1ull << 7)          /* native append */
#define KV_CAN_DELETE (1ull << 8)
#define KV_DELETE_TELLS (1ull << 9)          /* delete of an absent key returns KV_NOT_FOUND */
#define KV_OVERWRITE (1ull << 10)            /* put replaces */
#define KV_CAN_NEW (1ull << 11)              /* KV_NEW is supported, atomically */
#define KV_KEYSPACES (1ull << 12)
#define KV_COLLECTIONS (1ull << 13)          /* `split` is supported natively */
#define KV_TIME_TO_LIVE (1ull << 14)
#define KV_FIXED_KEY_SIZE (1ull << 15)
/* Keeps the key or value bytes of puts, deletes, merges and pushes: the kit passes copies to it, made in the
 * op's time. In C and C++ a copy is from malloc, and the driver must free it whatever the result of the op; in Go the
 * collector frees it. In Rust a borrow ends with the batch, so a driver cannot keep the bytes and makes its own copy. */
#define KV_KEEPS_KEY (1ull << 16)
#define KV_KEEPS_VALUE (1ull << 17)
#define KV_IN_MEMORY (1ull << 18)            /* nothing remains after close */
#define KV_SINGLE_WRITER (1ull << 19)        /* writers wait for each other */
#define KV_SCAN_BLOCKS_WRITES (1ull << 20)   /* a held scan blocks writers */
#define KV_CAN_HOLD (1ull << 21)             /* iterators may be held in slots */
#define KV_CAN_LONG_TRANSACTION (1ull << 22)
#define KV_CAN_TOUCH (1ull << 23)
#define KV_SINGLE_THREAD (1ull << 24)        /* correct with only one session at a time */
#define KV_STORES_NOTHING (1ull << 25)       /* a baseline: answers immediately, stores nothing */
#define KV_INDEXES (1ull << 26)              /* maintains the rows of secondary indexes itself (see kv_index) */
#define KV_LISTS (1ull << 27)                /* KV_PUSH and KV_POP; no key names both a list and a row; never in transactions */
#define KV_EVICTS (1ull << 28)               /* a cache: a row that was written may disappear at any time, without notice. It
                                                returns the last value written or KV_NOT_FOUND, never an older value, another
                                                key's value or part of one; of a few rows far within its budget it keeps some */
#define KV_LIVE_STATS (1ull << 29)           /* stats may be called while sessions run ops, and waits for none of them */
#define KV_NO_EMPTY_VALUES (1ull << 30)      /* a value has at least 1 byte: a put or push of none is KV_TOO_LARGE. Every other
                                                engine stores values of 0 bytes, which are not absent keys */

/* An option of a driver: name=value. */
typedef struct kv_option {
  const char *name;
  const char *type;          /* "bytes", "count", "flag", "choice:a|b|c", "text" */
  const char *default_value; /* text */
  const char *help;          /* one line */
} kv_option;

typedef struct kv_setting {
  const char *name;
  const char *value;
} kv_setting;

/* A secondary index: rows of `keyspace` are also entered in `index_keyspace` under the bytes
 * [from, from+length) of the row's value followed by the primary key. An index row's value is empty, or the complete value
 * of the primary row if it is clustering. Rows of `keyspace` have values of at least from+length bytes. With KV_INDEXES
 * a put or delete in `keyspace` changes the index rows too, all or nothing; index keyspaces are then read (get, scan),
 * never written by ops. Without it the core writes them itself. */
typedef struct kv_index {
  uint16_t keyspace;
  uint16_t index_keyspace;
  uint32_t from;
  uint32_t length;
  uint32_t clustering;       /* not zero: the index row holds the complete value */
} kv_index;

/* Open flags. */
enum kv_open_flag {
  KV_CREATE = 1 << 0,        /* the folder is empty: create a database */
  KV_READ_ONLY = 1 << 1
};

/* What is requested at open. All pointers belong to the caller and are valid until open returns. */
typedef struct kv_config {
  uint32_t abi;
  uint32_t size;             /* sizeof(kv_config) of the caller */
  const char *path;          /* an existing folder that only this trial uses, NUL-terminated UTF-8 */
  uint32_t level;            /* enum kv_level, a minimum */
  uint32_t flags;            /* enum kv_open_flag */
  uint64_t cache_bytes;      /* budget for the engine's own caches; 0 = engine's default */
  uint64_t expected_rows;    /* 0 = unknown */
  uint64_t disk_limit_bytes; /* the database may grow to this; 0 = unknown */
  uint32_t key_size_max;
  uint32_t key_size_fixed;   /* not zero: every key has this size */
  uint32_t value_size_max;
  uint32_t threads;          /* sessions that will be open at once */
  uint32_t keyspaces;        /* at least 1 */
  uint32_t index_count;
  const kv_index *indexes;
  const kv_setting *settings;
  uint32_t setting_count;
  uint32_t kinds;            /* bit 1<<kind for each kind that will be used */
  uint32_t op_flags;         /* flags that will be used */
  uint32_t clock;            /* enum kv_clock */
} kv_config;

KV_SAME(sizeof(kv_config) == 104, "layout of kv_config");

/* What is in effect after open. Zeroed by the core before the call. */
typedef struct kv_opened {
  uint32_t size;             /* sizeof(kv_opened) of the caller */
  uint32_t level;            /* effective level: KV_NONE, KV_PROCESS or KV_POWER */
  uint64_t capabilities;     /* effective capabilities: the table's, narrowed */
  uint64_t cache_bytes;      /* effective; UINT64_MAX = the engine has no such setting */
  char version[64];          /* of the engine's library */
  char compression[32];      /* effective: "none", "lz4" ...; empty = unknown */
  char settings[2048];       /* effective options, "name=value\n" each */
  char error[KV_TEXT];       /* why open failed */
} kv_opened;

KV_SAME(sizeof(kv_opened) == 2400, "layout of kv_opened");

typedef struct kv_database kv_database;
typedef struct kv_session kv_session;

/* A session's memory: it holds the batch, ops, keys, values and out buffers. */
typedef struct kv_arena {
  uint8_t *base;
  uint64_t size;
} kv_arena;

enum kv_work {
  KV_FLUSH = 0,   /* write out buffers; afterwards everything acknowledged is on stable storage if the level allows it */
  KV_COMPACT = 1, /* full compaction, where the engine has one */
  KV_SETTLE = 2   /* wait until background work is done, so that reads are steady; KV_UNSUPPORTED if the end cannot be detected */
};

/* The core's side of a driven session (rule 12): the status of the batch just run, KV_OK at first; returns the next
 * batch, or null at the end. */
typedef kv_batch *kv_turn(void *context, uint32_t status);

typedef struct kv_driver {
  uint32_t abi;
  uint32_t size;             /* sizeof(kv_driver) */
  const char *name;          /* [a-z0-9][a-z0-9_.-]{0,63} */
  const char *engine;        /* one line of description */
  const char *language;      /* of the engine: "C", "C++", "Rust", "Go" */
  const char *family;        /* "b+tree", "lsm", "hash", "memory", "none" ... */
  uint64_t capabilities;
  uint64_t levels;           /* bit 1<<level for each level that the engine itself has */
  uint32_t key_size_max;     /* 0 = at least 65536 bytes */
  uint32_t option_count;
  const kv_option *options;
  /* Each returns an enum kv_status; open writes its error text to kv_opened, the others to `error`, KV_TEXT bytes. */
  uint32_t (*open)(const kv_config *config, kv_opened *opened, kv_database **database);
  uint32_t (*session)(kv_database *database, const kv_arena *arena, kv_session **session, char *error);
  uint32_t (*execute)(kv_session *session, kv_batch *batch);
  uint32_t (*session_end)(kv_session *session, char *error);
  uint32_t (*maintain)(kv_database *database, uint32_t work, char *error);
  /* Writes "name=value\n" lines, NUL-terminated; returns KV_SHORT if `size` was too small. */
  uint32_t (*stats)(kv_database *database, char *out, uint64_t size);
  uint32_t (*close)(kv_database *database, char *error); /* frees the database even when it fails */
  uint32_t (*drive)(kv_session *session, kv_turn *turn, void *context); /* rule 12; null: the core calls execute */
} kv_driver;

typedef struct kv_drivers {
  uint32_t abi;
  uint32_t count;
  const kv_driver *const *drivers;
} kv_drivers;

/* The one symbol of a plug-in. */
const kv_drivers *kv_plugin(void);
typedef const kv_drivers *(*kv_plugin_entry)(void);

/* KV_TOUCH's digest: the wrapping sum of the little-endian u64 words of the value, the last one zero-filled. */

#ifdef __cplusplus
}
#endif
#endif
