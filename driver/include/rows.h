/* The part of the C kit that delivers values, finds the start of a scan and writes its rows. kit.h includes it. */
#ifndef KVDYNO_ROWS_H
#define KVDYNO_ROWS_H

#include "driver.h"

#include <string.h>

/* KV_TOUCH's digest (see driver.h). */
KV_INLINE uint64_t kv_digest(const void *value, size_t length) {
  const uint8_t *bytes = (const uint8_t *)value;
  uint64_t sum = 0;
  size_t i;
  for (; length >= 8; bytes += 8, length -= 8) {
    uint64_t word;
    memcpy(&word, bytes, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    sum += word;
  }
  for (i = 0; i < length; i++) sum += (uint64_t)bytes[i] << (8 * i);
  return sum;
}

/* Delivers a value: copies it into the caller's buffer, or digests it in place if requested. */
KV_INLINE uint32_t kv_deliver(kv_op *op, const void *value, size_t length) {
  op->length = length;
  if ((op->flags & KV_TOUCH) != 0) {
    op->detail = kv_digest(value, length);
    return KV_OK;
  }
  if (length > op->out_size) {
    op->needed = length;
    op->length = 0;
    return KV_SHORT;
  }
  if (length != 0) memcpy(op->out, value, length);
  return KV_OK;
}

/* memcmp order, shorter first. */
KV_INLINE int kv_compare(const void *a, size_t a_length, const void *b, size_t b_length) {
  const size_t shared = a_length < b_length ? a_length : b_length;
  const int order = shared != 0 ? memcmp(a, b, shared) : 0;
  return order != 0 ? order : (a_length > b_length) - (a_length < b_length);
}

/* Where a scan's cursor starts. Forward: at the first key >= `key`. Reverse: at the last key <= `key`, or < `key` if
 * `is_exclusive`. With length 0: at the first or last key of the keyspace. */
typedef struct kv_place {
  const uint8_t *key;
  uint32_t length;
  int is_exclusive;
} kv_place;

/* Where the scan `op` starts. `space` has op->value_length bytes, which may be used for the key. With KV_RESUME the
 * cursor may be at the last row written: the row writer skips it. */
KV_INLINE kv_place kv_scan_place(const kv_op *op, uint8_t *space) {
  kv_place place = {op->key, op->key_length, 0};
  if (op->key_length != 0 || (op->flags & KV_PREFIX) == 0) return place;
  place.key = op->value;
  place.length = op->value_length;
  if ((op->flags & KV_REVERSE) != 0) { /* below the smallest key above all keys with the prefix */
    place.is_exclusive = 1;
    while (place.length != 0 && op->value[place.length - 1] == 0xff) place.length--;
    if (place.length != 0) {
      memcpy(space, op->value, place.length);
      space[place.length - 1]++;
      place.key = space;
    }
  }
  return place;
}

/* Writes rows into an op's out buffer. */
typedef struct kv_rows {
  kv_op *op;
  int is_full;
  uint32_t status; /* KV_OK or KV_SHORT: what the scan returns */
} kv_rows;

/* A writer for the rows of a scan. */
KV_INLINE kv_rows kv_rows_begin(kv_op *op) {
  kv_rows rows = {op, op->limit == 0, KV_OK};
  op->rows = 0;
  op->length = 0;
  return rows;
}

/* Whether a row with this key ends the scan: it is past the bound or lacks the prefix. */
KV_INLINE int kv_rows_is_beyond(const kv_op *op, const void *key, size_t length) {
  int order;
  if ((op->flags & KV_PREFIX) != 0)
    return length < op->value_length || (op->value_length != 0 && memcmp(key, op->value, op->value_length) != 0);
  if (op->value_length == 0) return 0;
  order = kv_compare(key, length, op->value, op->value_length);
  return (op->flags & KV_REVERSE) != 0 ? order <= 0 : order >= 0;
}

/* Offers the next row, in the scan's direction; 0: stop. Ends at the limit, the bound, the prefix or the end of the
 * buffer; skips the row named by KV_RESUME; omits values if only keys are requested. */
KV_INLINE int kv_rows_push(kv_rows *rows, const void *key, size_t key_length, const void *value, size_t value_length) {
  kv_op *op = rows->op;
  uint32_t lengths[2];
  uint64_t size;
  if (rows->is_full || kv_rows_is_beyond(op, key, key_length)) return 0;
  if ((op->flags & KV_RESUME) != 0 && key_length == op->key_length && key_length != 0 &&
      memcmp(key, op->key, key_length) == 0)
    return 1;
  if ((op->flags & KV_KEYS) != 0) value_length = 0;
  size = 8 + (uint64_t)key_length + value_length;
  if (op->length + size > op->out_size) {
    op->needed = size;
    rows->status = KV_SHORT;
    rows->is_full = 1;
    return 0;
  }
  lengths[0] = (uint32_t)key_length;
  lengths[1] = (uint32_t)value_length;
  memcpy(op->out + op->length, lengths, 8);
  memcpy(op->out + op->length + 8, key, key_length);
  if (value_length != 0) memcpy(op->out + op->length + 8 + key_length, value, value_length);
  op->length += size;
  op->rows += 1;
  rows->is_full = op->rows >= op->limit;
  return !rows->is_full;
}

/* ---- Held scans (rule 8) ------------------------------------------------------------------------------------ */

/* The scan that an iterator is held for. The driver owns the iterator; one per session is enough. */
typedef struct kv_held {
  int is_held;
  uint8_t slot;
  uint16_t keyspace, flags;
} kv_held;

enum { KV_HELD_FLAGS = KV_REVERSE | KV_PREFIX | KV_KEYS };

/* Whether the scan `op` continues, with the next row, the held iterator, which is at a row with this key. */
KV_INLINE int kv_goes_on(const kv_held *held, const kv_op *op, const void *key, size_t length) {
  const uint32_t both = KV_RESUME | KV_HOLD;
  return held->is_held && (op->flags & both) == both && op->slot == held->slot && op->keyspace == held->keyspace &&
         (op->flags & KV_HELD_FLAGS) == held->flags && length == op->key_length && memcmp(key, op->key, length) == 0;
}

/* After the rows of a call: whether to keep the iterator, which is then at the last row that was written. */
KV_INLINE int kv_keep(kv_held *held, const kv_rows *rows) {
  const kv_op *op = rows->op;
  held->is_held = (op->flags & KV_HOLD) != 0 && rows->is_full && rows->status == KV_OK && op->rows != 0;
  held->slot = op->slot;
  held->keyspace = op->keyspace;
  held->flags = op->flags & KV_HELD_FLAGS;
  return held->is_held;
}

#endif
