/* Scans with an iterator of RocksDB. */
#include "database.h"

/* Tells RocksDB where the scan ends, so that it reads no block past it: the bound, or the end of the prefix's rows. */
static void bound(kv_session *session, const kv_op *op) {
  const int is_reverse = (op->flags & KV_REVERSE) != 0;
  const int has_end = op->value_length != 0 && (is_reverse || (op->flags & KV_PREFIX) == 0);
  const char *end = has_end ? (const char *)op->value : NULL;
  rocksdb_readoptions_set_iterate_lower_bound(session->scan_options, is_reverse ? end : NULL, op->value_length);
  rocksdb_readoptions_set_iterate_upper_bound(session->scan_options, is_reverse ? NULL : end, op->value_length);
}

uint32_t scan_rows(kv_session *session, kv_op *op, kv_batch *batch) {
  const int is_reverse = (op->flags & KV_REVERSE) != 0;
  rocksdb_family_t *family = family_of(session, op);
  char *error = NULL;
  if (family == NULL) return no_keyspace(batch, op);
  if (!make_room(session, op->value_length)) return kv_fail(batch, op, KV_ERROR, "out of memory");
  const kv_place place = kv_scan_place(op, (uint8_t *)session->space);
  kv_rows rows = kv_rows_begin(op);
  bound(session, op);
  rocksdb_iterator_t *at = rocksdb_create_iterator_cf(session->database->db, session->scan_options, family);
  if (place.length == 0)
    (is_reverse ? rocksdb_iter_seek_to_last : rocksdb_iter_seek_to_first)(at);
  else
    (is_reverse ? rocksdb_iter_seek_for_prev : rocksdb_iter_seek)(at, (const char *)place.key, place.length);
  while (rocksdb_iter_valid(at)) {
    const rocksdb_slice_t key = rocksdb_iter_key_slice(at), value = rocksdb_iter_value_slice(at);
    const int is_left_out = place.is_exclusive && kv_compare(key.data, key.size, place.key, place.length) == 0;
    if (!is_left_out && !kv_rows_push(&rows, key.data, key.size, value.data, value.size)) break;
    (is_reverse ? rocksdb_iter_prev : rocksdb_iter_next)(at);
  }
  rocksdb_iter_get_error(at, &error);
  rocksdb_iter_destroy(at);
  return error != NULL ? failed(batch, op, "scan", error) : rows.status;
}
