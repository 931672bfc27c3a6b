/* The driver of WiredTiger: a B-tree, or a log-structured merge tree of B-trees, with snapshot transactions. */
#include <sched.h>

#include "database.h"

enum { TRIES = 2000, TRIES_AWAKE = 64 };
static const char CONFLICT_TEXT[] = "every attempt conflicted with other transactions";

KV_INLINE WT_ITEM item(const uint8_t *bytes, uint32_t length) {
  return (WT_ITEM){.data = length != 0 ? (const void *)bytes : "", .size = length};
}

/* An op's failure. WT_ROLLBACK requires a retry of the complete transaction. */
static uint32_t failed(kv_session *session, kv_batch *batch, const kv_op *op, int code) {
  char text[KV_TEXT];
  if (code == WT_ROLLBACK) {
    session->must_retry = 1;
    return KV_CONFLICT;
  }
  return kv_fail(batch, op, code == ENOSPC ? KV_FULL : KV_ERROR, "%s", wiredtiger_text(session->database, code, text));
}

KV_INLINE uint32_t get(kv_session *session, kv_op *op, kv_batch *batch) {
  WT_CURSOR *cursor = session->cursors[op->keyspace].plain;
  const WT_ITEM key = item(op->key, op->key_length);
  WT_ITEM value;
  cursor->set_key(cursor, &key);
  int code = cursor->search(cursor);
  if (code == WT_NOTFOUND) return KV_NOT_FOUND;
  if (code == 0) code = cursor->get_value(cursor, &value);
  const uint32_t status = code == 0 ? kv_deliver(op, value.data, value.size) : failed(session, batch, op, code);
  cursor->reset(cursor); /* otherwise it would keep its page in the cache */
  return status;
}

/* Moves a cursor to the first row of a scan. */
static int stand(WT_CURSOR *cursor, const kv_op *op, uint8_t *space) {
  const int is_reverse = (op->flags & KV_REVERSE) != 0;
  const kv_place place = kv_scan_place(op, space);
  const WT_ITEM key = item(place.key, place.length);
  int order;
  if (place.length == 0) {
    cursor->reset(cursor); /* a put leaves an LSM cursor on its row */
    return is_reverse ? cursor->prev(cursor) : cursor->next(cursor);
  }
  cursor->set_key(cursor, &key);
  const int code = cursor->search_near(cursor, &order);
  if (code != 0) return code;
  if (!is_reverse) return order < 0 ? cursor->next(cursor) : 0;
  return order > 0 || (order == 0 && place.is_exclusive) ? cursor->prev(cursor) : 0;
}

static uint32_t scan(kv_session *session, kv_op *op, kv_batch *batch) {
  WT_CURSOR *cursor = session->cursors[op->keyspace].plain;
  int (*const step)(WT_CURSOR *) = (op->flags & KV_REVERSE) != 0 ? cursor->prev : cursor->next;
  WT_ITEM key, value = {0};
  uint8_t few[1024], *space = op->value_length <= sizeof(few) ? few : malloc(op->value_length);
  if (space == NULL) return kv_fail(batch, op, KV_ERROR, "out of memory");
  kv_rows rows = kv_rows_begin(op);
  int code = stand(cursor, op, space);
  for (; code == 0; code = step(cursor)) {
    code = cursor->get_key(cursor, &key);
    if (code == 0 && (op->flags & KV_KEYS) == 0) code = cursor->get_value(cursor, &value);
    if (code != 0 || !kv_rows_push(&rows, key.data, key.size, value.data, value.size)) break;
  }
  const uint32_t status = code == 0 || code == WT_NOTFOUND ? rows.status : failed(session, batch, op, code);
  cursor->reset(cursor);
  if (space != few) free(space);
  return status;
}

KV_INLINE uint32_t put(kv_session *session, kv_op *op, kv_batch *batch) {
  const int is_new = (op->flags & KV_NEW) != 0;
  WT_CURSOR *cursor = is_new ? session->cursors[op->keyspace].exact : session->cursors[op->keyspace].plain;
  const WT_ITEM key = item(op->key, op->key_length), value = item(op->value, op->value_length);
  cursor->set_key(cursor, &key);
  cursor->set_value(cursor, &value);
  const int code = cursor->insert(cursor);
  if (code == 0) return KV_OK;
  return code == WT_DUPLICATE_KEY ? (uint32_t)KV_EXISTS : failed(session, batch, op, code);
}

/* An LSM tree would have to read to find out whether the key existed, so it does not report that. */
static uint32_t take_out(kv_session *session, kv_op *op, kv_batch *batch) {
  const int is_blind = session->database->is_lsm;
  WT_CURSOR *cursor = is_blind ? session->cursors[op->keyspace].plain : session->cursors[op->keyspace].exact;
  const WT_ITEM key = item(op->key, op->key_length);
  cursor->set_key(cursor, &key);
  const int code = cursor->remove(cursor);
  if (code == WT_NOTFOUND) return KV_NOT_FOUND;
  if (code != 0) return failed(session, batch, op, code);
  cursor->reset(cursor);
  return KV_OK;
}

static uint32_t once(kv_session *session, kv_op *op, kv_batch *batch) {
  if (op->keyspace >= session->database->keyspaces) return KV_UNSUPPORTED;
  switch (op->kind) {
  case KV_GET:
    return get(session, op, batch);
  case KV_SCAN:
    return scan(session, op, batch);
  case KV_PUT:
    return put(session, op, batch);
  case KV_DELETE:
    return take_out(session, op, batch);
  default:
    return kv_fail(batch, op, KV_UNSUPPORTED, "a transaction may have only gets, scans, puts and deletes");
  }
}

/* Whether to retry what WiredTiger rolled back; gives the other transaction time to end. */
static int is_tried_again(kv_session *session, kv_op *op) {
  if (!session->must_retry || op->retries >= TRIES) return 0;
  session->must_retry = 0;
  op->retries++;
  if (op->retries < TRIES_AWAKE)
    sched_yield();
  else
    nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
  return 1;
}

/* A single op is an implicit transaction of WiredTiger, which mostly retries it itself. */
KV_INLINE uint32_t alone(kv_session *session, kv_op *op, kv_batch *batch) {
  uint32_t status;
  session->must_retry = 0;
  do status = once(session, op, batch);
  while (__builtin_expect(status == KV_CONFLICT, 0) && is_tried_again(session, op));
  if (__builtin_expect(status == KV_CONFLICT, 0)) kv_fail(batch, op, status, "%s", CONFLICT_TEXT);
  return status;
}

static uint32_t one(kv_session *session, kv_op *op, kv_batch *batch) { return alone(session, op, batch); }

/* Joined ops are one transaction on one snapshot. */
static uint32_t group(kv_session *session, kv_op *ops, uint32_t count, int atomic, kv_batch *batch) {
  WT_SESSION *transaction = session->session;
  int code, is_whole;
  (void)atomic;
  do {
    session->must_retry = 0;
    code = transaction->begin_transaction(transaction, NULL);
    if (code != 0) return failed(session, batch, ops, code);
    is_whole = kv_each(session, ops, count, batch, once);
    code = is_whole ? transaction->commit_transaction(transaction, NULL)
                    : transaction->rollback_transaction(transaction, NULL);
    if (code == WT_ROLLBACK) session->must_retry = 1; /* a commit that fails has rolled back */
  } while (is_tried_again(session, ops));
  if (session->must_retry) return kv_fail(batch, ops, KV_CONFLICT, "%s", CONFLICT_TEXT);
  return code == 0 ? KV_OK : failed(session, batch, ops, code);
}

static uint32_t execute(kv_session *session, kv_batch *batch) {
  static const kv_calls calls = {
      .capabilities = CAPABILITIES, .get = one, .put = one, .remove = one, .scan = one, .group = group};
  return kv_run(session, batch, &calls);
}

#define COMMON_ENTRIES                                                                                            \
  .abi = KV_ABI, .size = sizeof(kv_driver), .language = "C", .options = wiredtiger_options,                       \
  .levels = 1u << KV_NONE | 1u << KV_PROCESS | 1u << KV_POWER, .session = wiredtiger_session, .execute = execute, \
  .session_end = wiredtiger_session_end, .maintain = wiredtiger_maintain, .stats = wiredtiger_statistics,         \
  .close = wiredtiger_close

const kv_driver wiredtiger_btree = {COMMON_ENTRIES,
                                    .name = "wiredtiger",
                                    .engine = "B-tree with snapshot transactions and a log",
                                    .family = "b+tree",
                                    .capabilities = CAPABILITIES | KV_DELETE_TELLS,
                                    .option_count = BTREE_OPTIONS,
                                    .open = wiredtiger_open_btree};

const kv_driver wiredtiger_lsm = {COMMON_ENTRIES,
                                  .name = "wiredtiger-lsm",
                                  .engine = "log-structured merge tree of WiredTiger's B-trees",
                                  .family = "lsm",
                                  .capabilities = CAPABILITIES,
                                  .option_count = BTREE_OPTIONS + LSM_OPTIONS,
                                  .open = wiredtiger_open_lsm};

KV_EXPORT(&wiredtiger_btree, &wiredtiger_lsm)
