/* The options of the GDBM driver and their effective values. */
#ifndef GDBM_OPTIONS_H
#define GDBM_OPTIONS_H

#include "kit.h"

#include <gdbm.h>

typedef struct options {
  int is_synced, is_mapped, is_preread, is_coalesced, has_central_free_list;
  uint64_t block_size, map;
} options;

uint32_t gdbm_read_options(const kv_driver *driver, const kv_config *config, options *options, kv_opened *opened);

/* Applies the options to an open file and reports the effective values; false if the library refuses. */
int gdbm_tune(GDBM_FILE file, const kv_config *config, options *options, kv_opened *opened);

#endif
