/* Reads the options of the GDBM driver, applies them, and queries the effective values from the library. */
#include "options.h"

#include <limits.h>

uint32_t gdbm_read_options(const kv_driver *driver, const kv_config *config, options *options, kv_opened *opened) {
  uint32_t status = kv_setting_number(driver, config, "block_size", &options->block_size, opened);
  if (status == KV_OK) status = kv_setting_number(driver, config, "map", &options->map, opened);
  if (status == KV_OK) status = kv_setting_flag(driver, config, "sync", &options->is_synced, opened);
  if (status == KV_OK) status = kv_setting_flag(driver, config, "mapped", &options->is_mapped, opened);
  if (status == KV_OK) status = kv_setting_flag(driver, config, "preread", &options->is_preread, opened);
  if (status == KV_OK) status = kv_setting_flag(driver, config, "coalesce", &options->is_coalesced, opened);
  if (status == KV_OK)
    status = kv_setting_flag(driver, config, "central_free", &options->has_central_free_list, opened);
  if (status == KV_OK && options->block_size > INT_MAX)
    status = kv_fail_open(opened, KV_ERROR, "option block_size: at most %d", INT_MAX);
  return status;
}

int gdbm_tune(GDBM_FILE file, const kv_config *config, options *options, kv_opened *opened) {
  size_t buckets = 0, map = options->map;
  int block_size = 0, is_done = 1;
  is_done &= gdbm_setopt(file, GDBM_GETBLOCKSIZE, &block_size, sizeof(block_size)) == 0;
  if (!is_done || block_size == 0) return 0;
  if (config->cache_bytes != 0) {
    buckets = config->cache_bytes / (size_t)block_size;
    if (buckets < 2) buckets = 2;
    is_done &= gdbm_setopt(file, GDBM_SETCACHESIZE, &buckets, sizeof(buckets)) == 0;
  }
  if (map != 0 && options->is_mapped) is_done &= gdbm_setopt(file, GDBM_SETMAXMAPSIZE, &map, sizeof(map)) == 0;
  is_done &= gdbm_setopt(file, GDBM_SETCOALESCEBLKS, &options->is_coalesced, sizeof(int)) == 0;
  is_done &= gdbm_setopt(file, GDBM_SETCENTFREE, &options->has_central_free_list, sizeof(int)) == 0;
  is_done &= gdbm_setopt(file, GDBM_GETCACHESIZE, &buckets, sizeof(buckets)) == 0;
  is_done &= gdbm_setopt(file, GDBM_GETMMAP, &options->is_mapped, sizeof(int)) == 0;
  is_done &= gdbm_setopt(file, GDBM_GETMAXMAPSIZE, &map, sizeof(map)) == 0;
  if (config->cache_bytes != 0) opened->cache_bytes = buckets * (size_t)block_size;
  if (config->cache_bytes != 0)
    kv_opened_setting(opened, "cached_buckets", "%zu", buckets);
  else
    kv_opened_setting(opened, "cached_buckets", "auto");
  kv_opened_setting(opened, "block_size", "%d", block_size);
  kv_opened_setting(opened, "map", "%zu", map);
  kv_opened_setting(opened, "sync", "%s", options->is_synced ? "true" : "false");
  kv_opened_setting(opened, "mapped", "%s", options->is_mapped ? "true" : "false");
  kv_opened_setting(opened, "preread", "%s", options->is_preread ? "true" : "false");
  kv_opened_setting(opened, "coalesce", "%s", options->is_coalesced ? "true" : "false");
  kv_opened_setting(opened, "central_free", "%s", options->has_central_free_list ? "true" : "false");
  return is_done;
}
