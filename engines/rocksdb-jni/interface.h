/* The part of RocksDB's C interface that this driver uses: the library in the Maven artifact has no headers. */
#ifndef KVDYNO_ROCKSDB_JNI_INTERFACE_H
#define KVDYNO_ROCKSDB_JNI_INTERFACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rocksdb_t rocksdb_t;
typedef struct rocksdb_options_t rocksdb_options_t;
typedef struct rocksdb_block_based_table_options_t rocksdb_table_t;
typedef struct rocksdb_cache_t rocksdb_cache_t;
typedef struct rocksdb_filterpolicy_t rocksdb_filter_t;
typedef struct rocksdb_mergeoperator_t rocksdb_mergeoperator_t;
typedef struct rocksdb_readoptions_t rocksdb_readoptions_t;
typedef struct rocksdb_writeoptions_t rocksdb_writeoptions_t;
typedef struct rocksdb_flushoptions_t rocksdb_flushoptions_t;
typedef struct rocksdb_wait_for_compact_options_t rocksdb_wait_t;
typedef struct rocksdb_writebatch_t rocksdb_writebatch_t;
typedef struct rocksdb_iterator_t rocksdb_iterator_t;
typedef struct rocksdb_pinnableslice_t rocksdb_pinned_t;
typedef struct rocksdb_column_family_handle_t rocksdb_family_t;

typedef struct rocksdb_slice_t {
  const char *data;
  size_t size;
} rocksdb_slice_t;

/* Options. */
rocksdb_options_t *rocksdb_options_create(void);
void rocksdb_options_destroy(rocksdb_options_t *options);
void rocksdb_options_set_create_if_missing(rocksdb_options_t *options, unsigned char on);
void rocksdb_options_set_create_missing_column_families(rocksdb_options_t *options, unsigned char on);
void rocksdb_options_set_error_if_exists(rocksdb_options_t *options, unsigned char on);
void rocksdb_options_set_write_buffer_size(rocksdb_options_t *options, size_t bytes);
void rocksdb_options_set_max_write_buffer_number(rocksdb_options_t *options, int count);
void rocksdb_options_set_target_file_size_base(rocksdb_options_t *options, uint64_t bytes);
void rocksdb_options_set_max_bytes_for_level_base(rocksdb_options_t *options, uint64_t bytes);
void rocksdb_options_set_max_open_files(rocksdb_options_t *options, int count);
void rocksdb_options_set_compression(rocksdb_options_t *options, int type);
void rocksdb_options_set_compaction_style(rocksdb_options_t *options, int style);
void rocksdb_options_increase_parallelism(rocksdb_options_t *options, int threads);
int rocksdb_options_get_max_background_jobs(rocksdb_options_t *options);
void rocksdb_options_set_use_fsync(rocksdb_options_t *options, int on);
void rocksdb_options_set_use_direct_reads(rocksdb_options_t *options, unsigned char on);
void rocksdb_options_set_use_direct_io_for_flush_and_compaction(rocksdb_options_t *options, unsigned char on);
void rocksdb_options_set_block_based_table_factory(rocksdb_options_t *options, rocksdb_table_t *table);
void rocksdb_options_set_merge_operator(rocksdb_options_t *options, rocksdb_mergeoperator_t *merge);
rocksdb_table_t *rocksdb_block_based_options_create(void);
void rocksdb_block_based_options_destroy(rocksdb_table_t *table);
void rocksdb_block_based_options_set_block_size(rocksdb_table_t *table, size_t bytes);
void rocksdb_block_based_options_set_block_cache(rocksdb_table_t *table, rocksdb_cache_t *cache);
void rocksdb_block_based_options_set_filter_policy(rocksdb_table_t *table, rocksdb_filter_t *filter);
void rocksdb_block_based_options_set_cache_index_and_filter_blocks(rocksdb_table_t *table, unsigned char on);
void rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(rocksdb_table_t *table, unsigned char on);
rocksdb_filter_t *rocksdb_filterpolicy_create_bloom_full(double bits_per_key);
rocksdb_cache_t *rocksdb_cache_create_lru(size_t bytes);
void rocksdb_cache_destroy(rocksdb_cache_t *cache);
size_t rocksdb_cache_get_usage(const rocksdb_cache_t *cache);
size_t rocksdb_cache_get_pinned_usage(const rocksdb_cache_t *cache);
typedef char *rocksdb_full_merge(void *state, const char *key, size_t key_length, const char *value,
                                 size_t value_length, const char *const *operands, const size_t *lengths, int count,
                                 unsigned char *is_done, size_t *length);
typedef char *rocksdb_partial_merge(void *state, const char *key, size_t key_length, const char *const *operands,
                                    const size_t *lengths, int count, unsigned char *is_done, size_t *length);
rocksdb_mergeoperator_t *rocksdb_mergeoperator_create(
    void *state, void (*destructor)(void *state), rocksdb_full_merge *full, rocksdb_partial_merge *partial,
    void (*delete_value)(void *state, const char *value, size_t length), const char *(*name)(void *state));
rocksdb_readoptions_t *rocksdb_readoptions_create(void);
void rocksdb_readoptions_destroy(rocksdb_readoptions_t *options);
void rocksdb_readoptions_set_iterate_upper_bound(rocksdb_readoptions_t *options, const char *key, size_t length);
void rocksdb_readoptions_set_iterate_lower_bound(rocksdb_readoptions_t *options, const char *key, size_t length);
rocksdb_writeoptions_t *rocksdb_writeoptions_create(void);
void rocksdb_writeoptions_destroy(rocksdb_writeoptions_t *options);
void rocksdb_writeoptions_set_sync(rocksdb_writeoptions_t *options, unsigned char on);
void rocksdb_writeoptions_disable_WAL(rocksdb_writeoptions_t *options, int on);

/* Databases. Errors are texts that must be freed. */
rocksdb_t *rocksdb_open_column_families(const rocksdb_options_t *options, const char *path, int count,
                                        const char *const *names, const rocksdb_options_t *const *family_options,
                                        rocksdb_family_t **families, char **error);
void rocksdb_column_family_handle_destroy(rocksdb_family_t *family);
void rocksdb_close(rocksdb_t *db);
void rocksdb_free(void *pointer);
int rocksdb_property_int_cf(rocksdb_t *db, rocksdb_family_t *family, const char *name, uint64_t *number);
rocksdb_flushoptions_t *rocksdb_flushoptions_create(void);
void rocksdb_flushoptions_destroy(rocksdb_flushoptions_t *options);
void rocksdb_flush_cfs(rocksdb_t *db, const rocksdb_flushoptions_t *options, rocksdb_family_t **families, int count,
                       char **error);
void rocksdb_compact_range_cf(rocksdb_t *db, rocksdb_family_t *family, const char *from, size_t from_length,
                              const char *to, size_t to_length);
rocksdb_wait_t *rocksdb_wait_for_compact_options_create(void);
void rocksdb_wait_for_compact_options_destroy(rocksdb_wait_t *options);
void rocksdb_wait_for_compact(rocksdb_t *db, rocksdb_wait_t *options, char **error);

/* Ops. */
unsigned char rocksdb_get_into_buffer_cf(rocksdb_t *db, const rocksdb_readoptions_t *options, rocksdb_family_t *family,
                                         const char *key, size_t key_length, char *buffer, size_t size, size_t *length,
                                         unsigned char *is_found, char **error);
rocksdb_pinned_t *rocksdb_get_pinned_cf(rocksdb_t *db, const rocksdb_readoptions_t *options, rocksdb_family_t *family,
                                        const char *key, size_t key_length, char **error);
void rocksdb_batched_multi_get_cf(rocksdb_t *db, const rocksdb_readoptions_t *options, rocksdb_family_t *family,
                                  size_t count, const char *const *keys, const size_t *lengths,
                                  rocksdb_pinned_t **values, char **errors, const bool is_sorted);
const char *rocksdb_pinnableslice_value(const rocksdb_pinned_t *pinned, size_t *length);
void rocksdb_pinnableslice_destroy(rocksdb_pinned_t *pinned);
void rocksdb_put_cf(rocksdb_t *db, const rocksdb_writeoptions_t *options, rocksdb_family_t *family, const char *key,
                    size_t key_length, const char *value, size_t value_length, char **error);
void rocksdb_delete_cf(rocksdb_t *db, const rocksdb_writeoptions_t *options, rocksdb_family_t *family, const char *key,
                       size_t key_length, char **error);
void rocksdb_merge_cf(rocksdb_t *db, const rocksdb_writeoptions_t *options, rocksdb_family_t *family, const char *key,
                      size_t key_length, const char *value, size_t value_length, char **error);
void rocksdb_write(rocksdb_t *db, const rocksdb_writeoptions_t *options, rocksdb_writebatch_t *batch, char **error);
rocksdb_writebatch_t *rocksdb_writebatch_create(void);
void rocksdb_writebatch_destroy(rocksdb_writebatch_t *batch);
void rocksdb_writebatch_clear(rocksdb_writebatch_t *batch);
void rocksdb_writebatch_put_cf(rocksdb_writebatch_t *batch, rocksdb_family_t *family, const char *key,
                               size_t key_length, const char *value, size_t value_length);
void rocksdb_writebatch_merge_cf(rocksdb_writebatch_t *batch, rocksdb_family_t *family, const char *key,
                                 size_t key_length, const char *value, size_t value_length);
void rocksdb_writebatch_delete_cf(rocksdb_writebatch_t *batch, rocksdb_family_t *family, const char *key,
                                  size_t key_length);
rocksdb_iterator_t *rocksdb_create_iterator_cf(rocksdb_t *db, const rocksdb_readoptions_t *options,
                                               rocksdb_family_t *family);
void rocksdb_iter_destroy(rocksdb_iterator_t *iterator);
unsigned char rocksdb_iter_valid(const rocksdb_iterator_t *iterator);
void rocksdb_iter_seek_to_first(rocksdb_iterator_t *iterator);
void rocksdb_iter_seek_to_last(rocksdb_iterator_t *iterator);
void rocksdb_iter_seek(rocksdb_iterator_t *iterator, const char *key, size_t length);
void rocksdb_iter_seek_for_prev(rocksdb_iterator_t *iterator, const char *key, size_t length);
void rocksdb_iter_next(rocksdb_iterator_t *iterator);
void rocksdb_iter_prev(rocksdb_iterator_t *iterator);
rocksdb_slice_t rocksdb_iter_key_slice(const rocksdb_iterator_t *iterator);
rocksdb_slice_t rocksdb_iter_value_slice(const rocksdb_iterator_t *iterator);
void rocksdb_iter_get_error(const rocksdb_iterator_t *iterator, char **error);

#endif
