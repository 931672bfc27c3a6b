/* The merge operator: adds little-endian numbers of 64 bits, and appends bytes. */
#include "database.h"

/* A value that is not eight bytes long counts as 0, as with RocksDB's own operator for numbers: when the operator sees
 * a value, the merge was acknowledged long before. */
static uint64_t number_of(const char *bytes, size_t length) {
  uint64_t number = 0;
  if (length == sizeof(number)) memcpy(&number, bytes, sizeof(number));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  number = __builtin_bswap64(number);
#endif
  return number;
}

static void write_number(uint64_t number, char *bytes) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  number = __builtin_bswap64(number);
#endif
  memcpy(bytes, &number, sizeof(number));
}

static char *full_merge(void *state, const char *key, size_t key_length, const char *value, size_t value_length,
                        const char *const *operands, const size_t *lengths, int count, unsigned char *is_done,
                        size_t *length) {
  size_t room = value_length + 8;
  (void)state, (void)key, (void)key_length;
  for (int i = 0; i < count; i++) room += lengths[i];
  char *merged = malloc(room);
  *is_done = merged != NULL;
  *length = 0;
  if (merged == NULL) return NULL;
  if (value_length != 0) memcpy(merged, value, value_length);
  *length = value_length;
  for (int i = 0; i < count; i++) {
    const char *operand = operands[i] + 1;
    const size_t operand_length = lengths[i] - 1;
    if (operands[i][0] == MERGE_APPEND) {
      memcpy(merged + *length, operand, operand_length);
      *length += operand_length;
    } else {
      write_number(number_of(merged, *length) + number_of(operand, operand_length), merged);
      *length = sizeof(uint64_t);
    }
  }
  return merged;
}

/* Combines several operands into one; they must be of the same kind. */
static char *partial_merge(void *state, const char *key, size_t key_length, const char *const *operands,
                           const size_t *lengths, int count, unsigned char *is_done, size_t *length) {
  size_t room = 1;
  uint64_t sum = 0;
  (void)state, (void)key, (void)key_length;
  *is_done = 0;
  *length = 0;
  for (int i = 0; i < count; i++) {
    if (operands[i][0] != operands[0][0]) return NULL;
    sum += number_of(operands[i] + 1, lengths[i] - 1);
    room += lengths[i];
  }
  char *merged = malloc(room + sizeof(sum));
  if (merged == NULL) return NULL;
  *is_done = 1;
  merged[(*length)++] = operands[0][0];
  if (operands[0][0] == MERGE_ADD) {
    write_number(sum, merged + 1);
    *length += sizeof(sum);
    return merged;
  }
  for (int i = 0; i < count; i++) {
    memcpy(merged + *length, operands[i] + 1, lengths[i] - 1);
    *length += lengths[i] - 1;
  }
  return merged;
}

static void free_value(void *state, const char *value, size_t length) {
  (void)state, (void)length;
  free((void *)(uintptr_t)value);
}

static void free_nothing(void *state) { (void)state; }

static const char *name_of(void *state) {
  (void)state;
  return "kvdyno.add-or-append";
}

rocksdb_mergeoperator_t *new_merge_operator(void) {
  return rocksdb_mergeoperator_create(NULL, free_nothing, full_merge, partial_merge, free_value, name_of);
}
