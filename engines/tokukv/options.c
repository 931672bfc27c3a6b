/* The options of TokuKV, read and checked. */
#include "options.h"

static const struct {
  const char *name;
  TOKU_COMPRESSION_METHOD method;
} compressions[] = {{"quicklz", TOKU_QUICKLZ_METHOD},
                    {"zlib", TOKU_ZLIB_METHOD},
                    {"lzma", TOKU_LZMA_METHOD},
                    {"snappy", TOKU_SNAPPY_METHOD},
                    {"none", TOKU_NO_COMPRESSION}};

enum { COMPRESSIONS = sizeof(compressions) / sizeof(compressions[0]) };

const char *tokukv_compression(TOKU_COMPRESSION_METHOD method) {
  for (int i = 0; i < COMPRESSIONS; i++)
    if (compressions[i].method == method) return compressions[i].name;
  return method == TOKU_DEFAULT_COMPRESSION_METHOD ? "quicklz" : "";
}

static uint32_t read_compression(const kv_driver *driver, const kv_config *config, tokukv_wishes *wanted,
                                 kv_opened *opened) {
  const char *text = kv_setting_text(driver, config, "compression");
  for (int i = 0; i < COMPRESSIONS; i++) {
    wanted->compression = compressions[i].method;
    if (strcmp(text, compressions[i].name) == 0) return KV_OK;
  }
  return kv_fail_open(opened, KV_ERROR, "option compression: unknown method `%s`", text);
}

static int has_option(const kv_driver *driver, const char *name) {
  for (uint32_t i = 0; i < driver->option_count; i++)
    if (strcmp(driver->options[i].name, name) == 0) return 1;
  return 0;
}

static uint32_t read_numbers(const kv_driver *driver, const kv_config *config, tokukv_wishes *wanted,
                             kv_opened *opened) {
  const struct {
    const char *name;
    uint64_t *number, least, most;
  } numbers[] = {{"node_size", &wanted->node_size, 4096, 1u << 30},
                 {"basement_size", &wanted->basement_size, 1024, 1u << 30},
                 {"fanout", &wanted->fanout, 4, 1024},
                 {"checkpoint_period_s", &wanted->checkpoint_period_s, 0, UINT32_MAX / 1000},
                 {"cleaner_period_s", &wanted->cleaner_period_s, 0, UINT32_MAX / 1000},
                 {"cleaner_iterations", &wanted->cleaner_iterations, 0, UINT32_MAX},
                 {"log_sync_period_ms", &wanted->log_sync_period_ms, 0, UINT32_MAX},
                 {"lock_timeout_ms", &wanted->lock_timeout_ms, 0, UINT32_MAX},
                 {"lock_memory", &wanted->lock_memory, 1 << 20, UINT64_MAX}};
  for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
    const char *name = numbers[i].name;
    if (!has_option(driver, name)) continue;
    const uint32_t status = kv_setting_number(driver, config, name, numbers[i].number, opened);
    if (status != KV_OK) return status;
    const unsigned long long number = *numbers[i].number, least = numbers[i].least, most = numbers[i].most;
    if (number < least || number > most)
      return kv_fail_open(opened, KV_ERROR, "option %s: expected %llu to %llu, got %llu", name, least, most, number);
  }
  return KV_OK;
}

uint32_t tokukv_read_options(const kv_driver *driver, const kv_config *config, tokukv_wishes *wanted,
                             kv_opened *opened) {
  const struct {
    const char *name;
    int *flag;
  } flags[] = {{"direct_io", &wanted->direct_io},
               {"prelock", &wanted->prelock},
               {"single_transaction", &wanted->single_transaction},
               {"child_transactions", &wanted->child_transactions}};
  memset(wanted, 0, sizeof(*wanted));
  uint32_t status = read_compression(driver, config, wanted, opened);
  if (status == KV_OK) status = read_numbers(driver, config, wanted, opened);
  for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]) && status == KV_OK; i++)
    if (has_option(driver, flags[i].name))
      status = kv_setting_flag(driver, config, flags[i].name, flags[i].flag, opened);
  if (status != KV_OK) return status;
  wanted->transactions = has_option(driver, "prelock");
  if (wanted->basement_size > wanted->node_size)
    return kv_fail_open(opened, KV_ERROR, "option basement_size: must not be larger than node_size");
  return KV_OK;
}
