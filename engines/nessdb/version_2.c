/* nessDB 2.0: open, its files, and its statistics. */
#include "version.h"

#if NESSDB_2

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

const kv_option nessdb_options[] = {
    {"look", "flag", "true", "check before each put whether its key exists; use false if each key is put once"},
};

/* Whether another process has the file open: the library then aborts. */
static int is_locked(const char *folder) {
  char path[1024];
  snprintf(path, sizeof(path), "%s/ness.DB", folder);
  const int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return 0;
  const int is_taken = flock(file, LOCK_EX | LOCK_NB) != 0;
  close(file);
  return is_taken;
}

uint32_t nessdb_check_files(const char *folder, int is_new, kv_opened *opened) {
  int towers = 0;
  const int magic = nessdb_first_integer(folder, "ness.DB");
  if (is_new && magic == 0) return KV_OK;
  if (is_new) return kv_fail_open(opened, KV_ERROR, "%s already has a database", folder);
  if (magic != 20121212) return kv_fail_open(opened, KV_ERROR, "there is no nessDB 2.0 database in %s", folder);
  if (is_locked(folder)) return kv_fail_open(opened, KV_ERROR, "the database in %s is open elsewhere", folder);
  DIR *entries = opendir(folder);
  if (entries == NULL) return kv_fail_open(opened, KV_ERROR, "cannot read %s: %s", folder, strerror(errno));
  for (const struct dirent *entry; (entry = readdir(entries)) != NULL;)
    towers += strstr(entry->d_name, ".TOWER") != NULL;
  closedir(entries);
  if (towers > 2) return kv_fail_open(opened, KV_ERROR, "%s has %d .TOWER files, nessDB supports two", folder, towers);
  return KV_OK;
}

uint32_t nessdb_open(const kv_driver *driver, const kv_config *config, const char *folder, kv_opened *opened,
                     struct nessdb **database, int *must_look) {
  const uint32_t status = kv_setting_flag(driver, config, "look", must_look, opened);
  if (status != KV_OK) return status;
  *database = db_open(folder);
  kv_opened_setting(opened, "look", "%s", *must_look ? "true" : "false");
  snprintf(opened->compression, sizeof(opened->compression), "quicklz from 1 KiB");
  return KV_OK;
}

void nessdb_report(struct nessdb *database, char *text, size_t size) {
  struct slice report = {text, (int)size};
  db_stats(database, &report);
}

void nessdb_free_value(void *value) { db_free_data(value); }

#endif
