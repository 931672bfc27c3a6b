/* nessDB 1.8.2: open, its files, and its statistics. */
#include "version.h"

#if !NESSDB_2

#include <dirent.h>

const kv_option nessdb_options[] = {
    {"log", "flag", "true", "keep a log of the rows in memory, and read it at open"},
};

/* Whether a file of rows has a valid end: the library aborts otherwise. */
static int is_whole(const char *folder, const char *name) {
  char path[1024];
  int mark = 0;
  snprintf(path, sizeof(path), "%s/ndbs/%s", folder, name);
  FILE *file = fopen(path, "re");
  if (file == NULL) return 0;
  const int is_read = fseek(file, -(long)sizeof(mark), SEEK_END) == 0 && fread(&mark, sizeof(mark), 1, file) == 1;
  fclose(file);
  return is_read && mark == 2011;
}

uint32_t nessdb_check_files(const char *folder, int is_new, kv_opened *opened) {
  char path[1024];
  uint32_t status = KV_OK;
  const int magic = nessdb_first_integer(folder, "ndbs/ness.db");
  if (is_new && magic == 0) return KV_OK;
  if (is_new) return kv_fail_open(opened, KV_ERROR, "%s already has a database", folder);
  if (magic != 2011) return kv_fail_open(opened, KV_ERROR, "there is no nessDB 1.8 database in %s", folder);
  snprintf(path, sizeof(path), "%s/ndbs", folder);
  DIR *entries = opendir(path);
  if (entries == NULL) return kv_fail_open(opened, KV_ERROR, "cannot read %s: %s", path, strerror(errno));
  for (const struct dirent *entry; status == KV_OK && (entry = readdir(entries)) != NULL;)
    if (strstr(entry->d_name, ".sst") != NULL && !is_whole(folder, entry->d_name))
      status = kv_fail_open(opened, KV_ERROR, "the file of rows %s/%s is corrupt", path, entry->d_name);
  closedir(entries);
  return status;
}

uint32_t nessdb_open(const kv_driver *driver, const kv_config *config, const char *folder, kv_opened *opened,
                     struct nessdb **database, int *must_look) {
  int has_log;
  *must_look = 0;
  const uint32_t status = kv_setting_flag(driver, config, "log", &has_log, opened);
  if (status != KV_OK) return status;
  *database = db_open(folder, 0, has_log); /* without its cache, which finds deleted keys with empty values */
  kv_opened_setting(opened, "log", "%s", has_log ? "true" : "false");
  snprintf(opened->compression, sizeof(opened->compression), "none");
  return KV_OK;
}

void nessdb_report(struct nessdb *database, char *text, size_t size) { snprintf(text, size, "%s", db_info(database)); }

void nessdb_free_value(void *value) { free(value); }

#endif
