/* The differences between nessDB 1.8.2 and 2.0, each in a separate file; the library's header determines which one is
 * compiled. */
#ifndef KVDYNO_NESSDB_VERSION_H
#define KVDYNO_NESSDB_VERSION_H

#include <db.h>

#include "kit.h"

#ifdef __nessDB_H
#define NESSDB_2 1
#define ABILITIES KV_NO_EMPTY_VALUES /* no KV_OVERWRITE: after close and open, rows have their old values */
#define PACKED_KEY_BYTES_MAX 35
#define VALUE_BYTES_MIN 1
#define VALUE_BYTES_MAX (10 << 20)
#define PATH_BYTES_MAX 900
#define OPTION_COUNT 1
#else
#define NESSDB_2 0
#define ABILITIES KV_OVERWRITE /* a delete can lose other rows after close and open */
#define PACKED_KEY_BYTES_MAX 63
#define VALUE_BYTES_MIN 0
#define VALUE_BYTES_MAX ((4 << 20) - 1)
#define PATH_BYTES_MAX 240
#define OPTION_COUNT 1
#endif

/* For keys as the core passes them: each 7 bits become a byte of the library, whose keys are C strings. */
#define KEY_BYTES_MAX (PACKED_KEY_BYTES_MAX * 7 / 8)

extern const kv_option nessdb_options[];

/* Whether the files that the library would read are its own and intact: it ends the process on any others. */
uint32_t nessdb_check_files(const char *folder, int is_new, kv_opened *opened);

/* Opens the library's database. `must_look`: a put must first check whether its key exists. */
uint32_t nessdb_open(const kv_driver *driver, const kv_config *config, const char *folder, kv_opened *opened,
                     struct nessdb **database, int *must_look);

/* The library's report: lines `name:value`. Into `text`, NUL-terminated. */
void nessdb_report(struct nessdb *database, char *text, size_t size);

/* Frees a value that the library allocated. */
void nessdb_free_value(void *value);

/* Reads the first integer of a file; 0: the file does not exist, or it is shorter. */
int nessdb_first_integer(const char *folder, const char *name);

#endif
