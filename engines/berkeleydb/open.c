/* Opens and closes Berkeley DB: its environment, a file for each keyspace, and the report of effective settings. */
#include <dirent.h>
#include <sys/stat.h>

#include "berkeleydb.h"

#define MEGABYTE (1u << 20)

/* The library's last error message in this thread, which it would otherwise print. */
static __thread char said[KV_TEXT];

static void hear(const DB_ENV *environment, const char *prefix, const char *text) {
  (void)environment, (void)prefix;
  if (said[0] == 0) snprintf(said, sizeof(said), "%s", text);
}

/* The text of an error code, with the library's message about it. */
const char *explain(int code) {
  static __thread char text[2 * KV_TEXT];
  snprintf(text, sizeof(text), "%s%s%s", db_strerror(code), said[0] != 0 ? ": " : "", said);
  said[0] = 0;
  return text;
}

/* The size to request so that the cache has `budget`: below 500 MB Berkeley DB adds a quarter and its table. */
static uint64_t bytes_to_ask(uint64_t budget) {
  enum { TABLE = 5920 };
  if (budget >= 625ull * MEGABYTE) return budget;
  return budget <= TABLE ? 1 : (budget - TABLE) / 5 * 4;
}

static uint32_t number32(const kv_driver *driver, const kv_config *config, const char *name, uint32_t *number,
                         kv_opened *opened) {
  uint64_t wide = 0;
  uint32_t status = kv_setting_number(driver, config, name, &wide, opened);
  if (status == KV_OK && wide > UINT32_MAX) return kv_fail_open(opened, KV_ERROR, "option %s: too large", name);
  *number = (uint32_t)wide;
  return status;
}

/* Reads the flags of transactional variants and refuses those that exclude one another. */
static uint32_t read_flags(kv_database *database, const kv_config *config, kv_opened *opened) {
  const kv_driver *driver = database->variant->driver;
  const struct {
    const char *name;
    int *flag;
  } flags[] = {{"single_transaction", &database->is_single},
               {"child_transactions", &database->is_in_children},
               {"table_lock", &database->is_locked},
               {"snapshot", &database->is_snapshot},
               {"bulk_put", &database->is_bulk_put}};
  uint32_t status = KV_OK;
  for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]) && status == KV_OK; i++)
    status = kv_setting_flag(driver, config, flags[i].name, flags[i].flag, opened);
  if (status == KV_OK)
    status = kv_setting_number(driver, config, "checkpoint_seconds", &database->checkpoint_seconds, opened);
  if (status == KV_OK) status = kv_setting_number(driver, config, "checkpoint_log", &database->checkpoint_log, opened);
  if (status != KV_OK) return status;
  if (!database->is_single && database->is_in_children)
    return kv_fail_open(opened, KV_ERROR, "option child_transactions needs single_transaction=true");
  if (database->is_snapshot && (database->is_single || database->is_locked))
    return kv_fail_open(opened, KV_ERROR, "option snapshot excludes single_transaction and table_lock");
  if (database->is_locked && config->index_count != 0)
    return kv_fail_open(opened, KV_UNSUPPORTED, "option table_lock excludes indexes: each is opened twice");
  if (database->is_single && config->level != KV_NONE && config->level != KV_DEFAULT)
    return kv_fail_open(opened, KV_UNSUPPORTED,
                        "in a single transaction no write is durable before its end: only level none is possible");
  if ((database->is_single || database->is_locked) && config->threads > 1)
    return kv_fail_open(opened, KV_UNSUPPORTED, "option %s is for one thread",
                        database->is_single ? "single_transaction" : "table_lock");
  return KV_OK;
}

static uint32_t deadlock_policy(const char *name) {
  static const struct {
    const char *name;
    uint32_t policy;
  } policies[] = {{"random", DB_LOCK_RANDOM},     {"oldest", DB_LOCK_OLDEST},     {"youngest", DB_LOCK_YOUNGEST},
                  {"minlocks", DB_LOCK_MINLOCKS}, {"maxlocks", DB_LOCK_MAXLOCKS}, {"minwrite", DB_LOCK_MINWRITE},
                  {"maxwrite", DB_LOCK_MAXWRITE}};
  for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++)
    if (strcmp(name, policies[i].name) == 0) return policies[i].policy;
  return 0;
}

/* Log, locks and transactions of an environment that is not yet open. */
static uint32_t set_transactions(kv_database *database, const kv_config *config, kv_opened *opened) {
  const kv_driver *driver = database->variant->driver;
  DB_ENV *environment = database->environment;
  const char *deadlock = kv_setting_text(driver, config, "deadlock");
  uint32_t log_buffer = 0, log_file = 0, policy = deadlock_policy(deadlock);
  int is_removed, code;
  uint32_t status = number32(driver, config, "log_buffer", &log_buffer, opened);
  if (status == KV_OK) status = number32(driver, config, "log_file", &log_file, opened);
  if (status == KV_OK) status = kv_setting_flag(driver, config, "log_auto_remove", &is_removed, opened);
  if (status != KV_OK) return status;
  if (policy == 0) return kv_fail_open(opened, KV_ERROR, "option deadlock: unknown policy `%s`", deadlock);
  code = environment->set_lk_detect(environment, policy);
  if (code == 0 && log_buffer != 0) code = environment->set_lg_bsize(environment, log_buffer);
  if (code == 0 && log_file != 0) code = environment->set_lg_max(environment, log_file);
  if (code == 0) code = environment->log_set_config(environment, DB_LOG_AUTO_REMOVE, is_removed);
  if (code == 0 && opened->level == KV_NONE) code = environment->set_flags(environment, DB_TXN_NOSYNC, 1);
  if (code == 0 && opened->level == KV_PROCESS) code = environment->set_flags(environment, DB_TXN_WRITE_NOSYNC, 1);
  /* One lock per page written: the table is large, otherwise its chains grow long. */
  if (code == 0 && database->is_single) code = environment->set_lk_tablesize(environment, 1 << 16);
  return code == 0 ? KV_OK : kv_fail_open(opened, KV_ERROR, "open: %s", explain(code));
}

static uint32_t open_environment(kv_database *database, const kv_config *config, kv_opened *opened) {
  const enum product product = database->variant->product;
  const uint64_t cache = bytes_to_ask(config->cache_bytes);
  uint32_t flags = DB_CREATE | DB_PRIVATE | DB_THREAD | DB_INIT_MPOOL;
  uint32_t status = KV_OK;
  DB_ENV *environment;
  int code;
  if (product == PLAIN) return KV_OK;
  code = db_env_create(&environment, 0);
  if (code != 0) return kv_fail_open(opened, KV_ERROR, "open: %s", explain(code));
  database->environment = environment;
  environment->set_errcall(environment, hear);
  if (config->cache_bytes != 0)
    code = environment->set_cachesize(environment, (uint32_t)(cache >> 30), (uint32_t)(cache & ((1u << 30) - 1)), 1);
  if (product == TRANSACTIONAL) {
    flags |= DB_INIT_TXN | DB_INIT_LOG | DB_INIT_LOCK | DB_RECOVER;
    status = set_transactions(database, config, opened);
    if (status != KV_OK) return status;
  } else {
    flags |= DB_INIT_CDB;
  }
  if (code == 0) code = environment->open(environment, config->path, flags, 0);
  return code == 0 ? KV_OK : kv_fail_open(opened, KV_ERROR, "open: %s", explain(code));
}

/* Opens a handle of a keyspace's file. */
int open_handle(kv_database *database, const kv_config *config, uint32_t number, DB **handle) {
  const variant *variant = database->variant;
  const int is_plain = variant->product == PLAIN, is_transactional = variant->product == TRANSACTIONAL;
  const uint64_t cache = bytes_to_ask(config->cache_bytes / database->keyspace_count);
  uint32_t flags = (config->flags & KV_CREATE) != 0 ? DB_CREATE : 0;
  char name[4096];
  DB *db;
  int code = db_create(&db, database->environment, 0);
  if (code != 0) return code;
  *handle = db;
  snprintf(name, sizeof(name), "%s%sk%u.%s", is_plain ? config->path : "", is_plain ? "/" : "", number,
           variant->suffix);
  if ((config->flags & KV_READ_ONLY) != 0) flags |= DB_RDONLY;
  if (!is_plain && !database->is_locked) flags |= DB_THREAD; /* an exclusive handle cannot have it */
  if (is_transactional) flags |= DB_AUTO_COMMIT;
  if (database->is_snapshot) flags |= DB_MULTIVERSION;
  if (is_plain) db->set_errcall(db, hear);
  if (is_plain && config->cache_bytes != 0)
    code = db->set_cachesize(db, (uint32_t)(cache >> 30), (uint32_t)(cache & ((1u << 30) - 1)), 1);
  if (code == 0 && database->page_size != 0) code = db->set_pagesize(db, database->page_size);
  if (code == 0 && database->is_locked) code = db->set_lk_exclusive(db, 0);
  if (code == 0 && database->fill_factor != 0) code = db->set_h_ffactor(db, database->fill_factor);
  if (code == 0 && database->fill_factor != 0 && config->expected_rows != 0)
    code = db->set_h_nelem(db, (uint32_t)config->expected_rows);
  return code == 0 ? db->open(db, NULL, name, NULL, variant->type, flags, 0) : code;
}

static uint32_t open_keyspaces(kv_database *database, const kv_config *config, kv_opened *opened) {
  int code = 0;
  for (uint32_t i = 0; i < database->keyspace_count && code == 0; i++) {
    code = open_handle(database, config, i, &database->keyspaces[i].db);
    if (code != 0) return kv_fail_open(opened, KV_ERROR, "k%u.%s: %s", i, database->variant->suffix, explain(code));
  }
  if (database->index_count != 0) code = open_indexes(database, config);
  if (code != 0) return kv_fail_open(opened, KV_ERROR, "indexes: %s", explain(code));
  database->keyspaces[0].db->get_pagesize(database->keyspaces[0].db, &database->page_size);
  database->key_max = UINT32_MAX;
  if (database->variant->type == DB_HASH)
    database->key_max = database->page_size / 4 < HASH_KEY_MAX ? database->page_size / 4 : HASH_KEY_MAX;
  return KV_OK;
}

static uint32_t check_files(const kv_database *database, const kv_config *config, kv_opened *opened) {
  char name[4096];
  struct stat facts;
  for (uint32_t i = 0; i < config->keyspaces && (config->flags & KV_CREATE) == 0; i++) {
    snprintf(name, sizeof(name), "%s/k%u.%s", config->path, i, database->variant->suffix);
    if (stat(name, &facts) != 0)
      return kv_fail_open(opened, KV_ERROR, "no database of %s in this folder: there is no k%u.%s",
                          database->variant->driver->name, i, database->variant->suffix);
  }
  return KV_OK;
}

/* Whether recovery may create files again from a log. */
static int has_log(const kv_config *config) {
  const struct dirent *entry;
  int found = 0;
  DIR *folder = opendir(config->path);
  if (folder == NULL) return 0;
  while (!found && (entry = readdir(folder)) != NULL) found = strncmp(entry->d_name, "log.", 4) == 0;
  closedir(folder);
  return found;
}

/* Whether the environment would read a configuration, which may name folders elsewhere: recovery would change their
   files, although the folder itself is a copy. */
static int has_configuration(const kv_database *database, const kv_config *config) {
  struct stat facts;
  char name[4096];
  snprintf(name, sizeof(name), "%s/DB_CONFIG", config->path);
  return database->variant->product != PLAIN && stat(name, &facts) == 0;
}

/* What is refused before a file is accessed. */
static uint32_t check(const kv_database *database, const kv_config *config, kv_opened *opened) {
  int major, minor, patch;
  db_version(&major, &minor, &patch);
  if (major != DB_VERSION_MAJOR || minor != DB_VERSION_MINOR)
    return kv_fail_open(opened, KV_ERROR, "built for Berkeley DB %d.%d, the library is %d.%d", DB_VERSION_MAJOR,
                        DB_VERSION_MINOR, major, minor);
  snprintf(opened->version, sizeof(opened->version), "%d.%d.%d", major, minor, patch);
  if (has_configuration(database, config))
    return kv_fail_open(opened, KV_ERROR,
                        "DB_CONFIG may name other folders, whose files would be changed; use a copy without it");
  if (database->variant->product == TRANSACTIONAL && has_log(config)) return KV_OK;
  return check_files(database, config, opened);
}

static void report(kv_database *database, const kv_config *config, kv_opened *opened) {
  static const char *const commits[] = {"DB_TXN_NOSYNC", "DB_TXN_WRITE_NOSYNC", "DB_TXN_SYNC"};
  const kv_driver *driver = database->variant->driver;
  DB_ENV *environment = database->environment;
  DB *db = database->keyspaces[0].db;
  uint32_t gigabytes = 0, bytes = 0, log_buffer = 0, log_file = 0, i;
  int parts;
  if (environment != NULL)
    environment->get_cachesize(environment, &gigabytes, &bytes, &parts);
  else
    db->get_cachesize(db, &gigabytes, &bytes, &parts);
  opened->cache_bytes = ((uint64_t)gigabytes << 30) + bytes;
  if (environment == NULL) opened->cache_bytes *= database->keyspace_count;
  snprintf(opened->compression, sizeof(opened->compression), "none");
  kv_opened_setting(opened, "page_size", "%u", database->page_size);
  for (i = 0; i < driver->option_count; i++) {
    const char *name = driver->options[i].name;
    if (strcmp(name, "page_size") == 0) continue;
    if (strncmp(name, "log_", 4) != 0 || strcmp(name, "log_auto_remove") == 0)
      kv_opened_setting(opened, name, "%s", kv_setting_text(driver, config, name));
  }
  if (database->variant->product != TRANSACTIONAL) return;
  environment->get_lg_bsize(environment, &log_buffer);
  environment->get_lg_max(environment, &log_file);
  kv_opened_setting(opened, "log_buffer", "%u", log_buffer);
  kv_opened_setting(opened, "log_file", "%u", log_file);
  kv_opened_setting(opened, "commit", "%s", commits[opened->level]);
}

uint32_t open_store(const variant *variant, const kv_config *config, kv_opened *opened, kv_database **database) {
  const kv_driver *driver = variant->driver;
  const int is_transactional = variant->product == TRANSACTIONAL;
  kv_database *made = calloc(1, sizeof(kv_database));
  uint32_t status = kv_open_begin(driver, config, opened);
  if (made == NULL) return kv_fail_open(opened, KV_ERROR, "out of memory");
  made->variant = variant;
  said[0] = 0;
  if (status == KV_OK) status = number32(driver, config, "page_size", &made->page_size, opened);
  if (status == KV_OK && variant->type == DB_HASH)
    status = number32(driver, config, "fill_factor", &made->fill_factor, opened);
  if (status == KV_OK && is_transactional) status = read_flags(made, config, opened);
  if (status == KV_OK && !is_transactional) status = kv_setting_flag(driver, config, "sync", &made->is_synced, opened);
  if (status == KV_OK)
    status = kv_pick_level(driver, config, is_transactional && !made->is_single ? KV_POWER : KV_NONE, opened);
  if (status == KV_OK) status = check(made, config, opened);
  made->keyspace_count = config->keyspaces;
  made->keyspaces = calloc(config->keyspaces, sizeof(keyspace));
  made->index_count = (driver->capabilities & KV_INDEXES) != 0 ? config->index_count : 0;
  made->indexes = calloc((size_t)made->index_count + 1, sizeof(kv_index));
  if (status == KV_OK && (made->keyspaces == NULL || made->indexes == NULL))
    status = kv_fail_open(opened, KV_ERROR, "out of memory");
  if (made->keyspaces == NULL) made->keyspace_count = 0;
  pthread_mutex_init(&made->sessions_lock, NULL);
  pthread_mutex_init(&made->checkpoint_lock, NULL);
  if (status == KV_OK) status = open_environment(made, config, opened);
  if (status == KV_OK) status = check_files(made, config, opened);
  if (status == KV_OK) status = open_keyspaces(made, config, opened);
  if (status == KV_OK && start_checkpoints(made) != 0)
    status = kv_fail_open(opened, KV_ERROR, "cannot start the checkpoint thread");
  if (status == KV_OK) {
    report(made, config, opened);
    *database = made;
  } else {
    made->checkpoint_seconds = 0;
    close_store(made, NULL);
  }
  return status;
}

uint32_t close_store(kv_database *database, char *error) {
  DB_ENV *environment = database->environment;
  int code = 0, next;
  uint32_t i;
  stop_checkpoints(database);
  if (database->is_open && database->variant->product == TRANSACTIONAL) code = checkpoint(database, 0, DB_FORCE);
  for (i = 0; i < database->keyspace_count; i++) { /* secondaries before their primaries */
    keyspace *space = &database->keyspaces[i];
    if (space->secondary == NULL) continue;
    if (space->db == space->secondary) space->db = NULL;
    next = space->secondary->close(space->secondary, 0);
    if (code == 0) code = next;
  }
  for (i = 0; i < database->keyspace_count; i++) {
    DB *db = database->keyspaces[i].db;
    next = db != NULL ? db->close(db, 0) : 0;
    if (code == 0) code = next;
  }
  next = environment != NULL ? environment->close(environment, 0) : 0;
  if (code == 0) code = next;
  if (code == 0) code = database->checkpoint_code;
  pthread_mutex_destroy(&database->sessions_lock);
  pthread_mutex_destroy(&database->checkpoint_lock);
  free(database->keyspaces);
  free(database->indexes);
  free(database);
  return code == 0 ? KV_OK : kv_fail_call(error, KV_ERROR, "close: %s", explain(code));
}
