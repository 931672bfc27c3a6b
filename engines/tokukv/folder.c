/* Checks a folder before the engine opens it. */
#include "options.h"

#include <dirent.h>

static int begins_as_dictionary(const char *folder, const char *name) {
  char path[4096], magic[8] = "";
  snprintf(path, sizeof(path), "%s/%s", folder, name);
  FILE *file = fopen(path, "rb");
  if (file == NULL) return 0;
  const size_t length = fread(magic, 1, sizeof(magic), file);
  const int is_whole = fseek(file, 0, SEEK_END) == 0 && ftell(file) >= 8192; /* the size of its two headers */
  fclose(file);
  return is_whole && length == sizeof(magic) && memcmp(magic, "tokudata", sizeof(magic)) == 0;
}

/* Refuses what would make the engine stop the process, or open a database in another mode than it was created with. */
uint32_t tokukv_check_folder(const kv_config *config, const tokukv_wishes *wanted, kv_opened *opened) {
  int has_rollback = 0;
  DIR *folder = opendir(config->path);
  if (folder == NULL) return kv_fail_open(opened, KV_ERROR, "%s: %s", config->path, strerror(errno));
  for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder))
    has_rollback |= strcmp(entry->d_name, "tokudb.rollback") == 0;
  closedir(folder);
  if ((config->flags & KV_CREATE) != 0) return KV_OK;
  if (!begins_as_dictionary(config->path, "tokudb.environment") ||
      !begins_as_dictionary(config->path, "tokudb.directory") ||
      (has_rollback && !begins_as_dictionary(config->path, "tokudb.rollback")))
    return kv_fail_open(opened, KV_ERROR, "%s: not a TokuKV database, or a damaged one", config->path);
  if (has_rollback == wanted->transactions) return KV_OK;
  return kv_fail_open(opened, KV_ERROR, "this database was created by %s", has_rollback ? "tokukv" : "tokukv-plain");
}
