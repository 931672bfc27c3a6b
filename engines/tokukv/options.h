/* The options of TokuKV, as numbers. */
#ifndef KVDYNO_TOKUKV_OPTIONS_H
#define KVDYNO_TOKUKV_OPTIONS_H

#include "tokukv.h"

typedef struct tokukv_wishes {
  TOKU_COMPRESSION_METHOD compression;
  uint64_t node_size, basement_size, fanout, checkpoint_period_s, cleaner_period_s, cleaner_iterations;
  uint64_t log_sync_period_ms, lock_timeout_ms, lock_memory;
  int direct_io, prelock, single_transaction, child_transactions;
  int transactions; /* the driver has transactions, and so the option prelock */
} tokukv_wishes;

uint32_t tokukv_read_options(const kv_driver *driver, const kv_config *config, tokukv_wishes *wanted,
                             kv_opened *opened);

/* The name of a method; empty: unknown. */
const char *tokukv_compression(TOKU_COMPRESSION_METHOD method);

/* folder.c: refuses an unsuitable folder. */
uint32_t tokukv_check_folder(const kv_config *config, const tokukv_wishes *wanted, kv_opened *opened);

/* status.c: version, cache, compression and effective settings. */
void tokukv_report(const kv_database *database, const tokukv_wishes *wanted, kv_opened *opened);

#endif
