/* What differs between nessDB 1.8.2 and 2.0, each in a file of its own; which is compiled, the library's header says.
 */
#ifndef KVDYNO_NESSDB_VERSION_H
#define KVDYNO_NESSDB_VERSION_H

#include <db.h>

#include "kit.h"

#ifdef __nessDB_H
#define NESSDB_2 1
#define ABILITIES 0 /* what is put again or deleted is as it was before, after close and open */
#define PACKED_KEY_BYTES_MAX 35
#define VALUE_BYTES_MIN 1
#define VALUE_BYTES_MAX (10 << 20)
#define PATH_BYTES_MAX 900
#define OPTION_COUNT 1
#else
#define NESSDB_2 0
#define ABILITIES KV_OVERWRITE /* a delete can lose other rows, after close and open again */
#define PACKED_KEY_BYTES_MAX 63
#define VALUE_BYTES_MIN 0
#define VALUE_BYTES_MAX ((4 << 20) - 1)
#define PATH_BYTES_MAX 240
#define OPTION_COUNT 1
#endif

/* Of keys as the core gives them: each 7 bits are a byte of the library's, whose keys are strings of C. */
#define KEY_BYTES_MAX (PACKED_KEY_BYTES_MAX * 7 / 8)

extern const kv_option nessdb_options[];

/* Whether the files that the library would read are its own and whole: it ends the process over others. */
uint32_t nessdb_check_files(const char *folder, int is_new, kv_opened *opened);

/* Opens the library's database. `must_look`: a put must first look whether its key is there. */
uint32_t nessdb_open(const kv_driver *driver, const kv_config *config, const char *folder, kv_opened *opened,
                     struct nessdb **database, int *must_look);

/* The library's own report: lines `name:value`. Into `text`, NUL-terminated. */
void nessdb_report(struct nessdb *database, char *text, size_t size);

/* Gives back a value that the library made. */
void nessdb_free_value(void *value);

/* Reads the first integer of a file; 0: there is no such file, or it is shorter. */
int nessdb_first_integer(const char *folder, const char *name);

#endif
