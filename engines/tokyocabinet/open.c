/* Opens a Tokyo Cabinet database: options, durability level, and the report of what is in effect. */
#include "cabinet.h"

static uint32_t refuse(kv_opened *opened, const char *name, uint64_t least, uint64_t most) {
  return kv_fail_open(opened, KV_ERROR, "option %s: expected %llu to %llu", name, (unsigned long long)least,
                      (unsigned long long)most);
}

static bool has_option(const kv_driver *driver, const char *name) {
  for (uint32_t i = 0; i < driver->option_count; i++)
    if (strcmp(driver->options[i].name, name) == 0) return true;
  return false;
}

/* Reads the driver's options into the tuning. */
static uint32_t read_options(const kv_driver *driver, const kv_config *config, tuning *tuning, kv_opened *opened) {
  const struct {
    const char *name;
    uint64_t *number, least, most;
  } numbers[] = {
      {"buckets", &tuning->buckets, 0, INT64_MAX},
      {"map", &tuning->map, 0, INT64_MAX},
      {"defragment", &tuning->defragment, 0, INT32_MAX},
      {"alignment_power", &tuning->alignment_power, 0, 16},
      {"free_block_power", &tuning->free_block_power, 0, 20},
      {"page_size", &tuning->page_size, 256, 1 << 30},
      {"leaf_rows", &tuning->leaf_rows, 4, INT32_MAX},
      {"node_links", &tuning->node_links, 4, INT32_MAX},
      {"cached_records", &tuning->cached_records, 0, INT32_MAX},
  };
  static const struct {
    const char *name;
    uint8_t features;
  } compressions[] = {{"none", 0}, {"deflate", BDBTDEFLATE}, {"bzip2", BDBTBZIP}, {"tcbs", BDBTTCBS}};
  const char *compression = kv_setting_text(driver, config, "compression");
  uint32_t status = KV_OK;
  int is_large = 0;
  size_t i;
  for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]) && status == KV_OK; i++) {
    if (!has_option(driver, numbers[i].name)) continue; /* only the other kind has it */
    status = kv_setting_number(driver, config, numbers[i].name, numbers[i].number, opened);
    if (status == KV_OK && (*numbers[i].number < numbers[i].least || *numbers[i].number > numbers[i].most))
      status = refuse(opened, numbers[i].name, numbers[i].least, numbers[i].most);
  }
  if (status == KV_OK) status = kv_setting_flag(driver, config, "large", &is_large, opened);
  if (status != KV_OK) return status;
  tuning->features = is_large ? BDBTLARGE : 0;
  for (i = 0; i < 4; i++) {
    if (strcmp(compression, compressions[i].name) != 0) continue;
    tuning->features |= compressions[i].features;
    return KV_OK;
  }
  return kv_fail_open(opened, KV_ERROR, "option compression: expected none, deflate, bzip2 or tcbs, got `%s`",
                      compression);
}

static uint32_t open_file(kv_database *made, const kv_config *config, const tuning *tuning, kv_opened *opened) {
  char path[4096];
  if ((size_t)snprintf(path, sizeof(path), "%s/%s", config->path, made->kind->file) >= sizeof(path))
    return kv_fail_open(opened, KV_ERROR, "the path is too long");
  made->db = made->kind->make();
  if (made->kind->open(made->db, path, tuning)) return KV_OK;
  return kv_fail_open(opened, KV_ERROR, "open: %s", tcerrmsg(made->kind->error(made->db)));
}

uint32_t tokyo_open(const kv_driver *driver, const kind *kind, const kv_config *config, kv_opened *opened,
                    kv_database **database) {
  struct tuning tuning = {.page_size = 1, .cache_bytes = config->cache_bytes, .expected_rows = config->expected_rows};
  pthread_rwlockattr_t fair;
  uint32_t status = kv_open_begin(driver, config, opened);
  if (status == KV_OK) status = kv_pick_level(driver, config, KV_NONE, opened);
  if (status == KV_OK) status = read_options(driver, config, &tuning, opened);
  if (status != KV_OK) return status;
  if (tuning.cache_bytes == 0) tuning.cache_bytes = 1024 * tuning.page_size; /* as shipped */
  tuning.is_shared = config->threads != 1;
  tuning.mode = (config->flags & KV_READ_ONLY) != 0 ? BDBOREADER : BDBOWRITER;
  tuning.mode |= BDBOLCKNB | ((config->flags & KV_CREATE) != 0 ? BDBOCREAT : 0);
  if (opened->level == KV_POWER) tuning.mode |= BDBOTSYNC;
  kv_database *made = calloc(1, sizeof(kv_database));
  if (made == NULL) return kv_fail_open(opened, KV_ERROR, "out of memory");
  made->kind = kind;
  made->is_shared = tuning.is_shared;
  made->is_logged = opened->level != KV_NONE;
  status = open_file(made, config, &tuning, opened);
  if (status != KV_OK) {
    if (made->db != NULL) kind->free(made->db);
    free(made);
    return status;
  }
  pthread_rwlockattr_init(&fair);
  pthread_rwlockattr_setkind_np(&fair, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
  pthread_rwlock_init(&made->lock, &fair);
  pthread_rwlockattr_destroy(&fair);
  snprintf(opened->version, sizeof(opened->version), "%s", tcversion);
  kind->report(made->db, opened);
  kv_opened_setting(opened, "mutex", "%s", tuning.is_shared ? "true" : "false");
  kv_opened_setting(opened, "transaction_per_write", "%s", made->is_logged ? "true" : "false");
  kv_opened_setting(opened, "transaction_sync", "%s", opened->level == KV_POWER ? "true" : "false");
  *database = made;
  return KV_OK;
}
