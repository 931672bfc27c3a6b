/* Opens TokuKV's environment and dictionaries, maintains and closes them. */
#include "options.h"

static _Thread_local char said[KV_TEXT];

static void hear(const DB_ENV *env, const char *prefix, const char *text) {
  (void)env, (void)prefix;
  snprintf(said, sizeof(said), "%.*s", (int)strcspn(text, "\n"), text);
}

const char *tokukv_text(int error) {
  static _Thread_local char text[KV_TEXT];
  snprintf(text, sizeof(text), "%s", said[0] != 0 ? said : db_strerror(error));
  said[0] = 0;
  return text;
}

static uint32_t pick_level(const kv_driver *driver, const kv_config *config, const tokukv_wishes *wanted,
                           kv_opened *opened) {
  if (!wanted->single_transaction)
    return kv_pick_level(driver, config, wanted->transactions ? KV_POWER : KV_NONE, opened);
  opened->level = KV_NONE;
  if (config->level == KV_NONE || config->level == KV_DEFAULT) return KV_OK;
  return kv_fail_open(opened, KV_UNSUPPORTED, "cannot reach this durability level with single_transaction=true");
}

static int open_environment(kv_database *database, const kv_config *config, const tokukv_wishes *wanted) {
  DB_ENV *env = database->env;
  const uint32_t flags = DB_CREATE | DB_PRIVATE | DB_THREAD | DB_INIT_MPOOL; /* the engine requires the first two */
  const uint32_t more = DB_INIT_TXN | DB_INIT_LOG | DB_INIT_LOCK | DB_RECOVER;
  const uint64_t cache =
      config->cache_bytes != 0 ? config->cache_bytes : 128u << 20; /* the engine's default, which it calls 0 */
  int error;
  db_env_set_direct_io(wanted->direct_io != 0);
  env->set_errcall(env, hear);
  env->set_check_thp(env, false);
  env->set_update(env, tokukv_update);
  error = env->set_cachesize(env, (uint32_t)(cache >> 30), (uint32_t)(cache & ((1u << 30) - 1)), 1);
  if (error == 0 && wanted->transactions) {
    error = env->set_generate_row_callback_for_put(env, tokukv_generate_put);
    if (error == 0) error = env->set_generate_row_callback_for_del(env, tokukv_generate_delete);
    if (error == 0) error = env->set_lk_max_memory(env, wanted->lock_memory);
    if (error == 0) error = env->set_lock_timeout(env, wanted->lock_timeout_ms, NULL);
    env->change_fsync_log_period(env, (uint32_t)wanted->log_sync_period_ms);
  }
  if (error == 0) error = env->open(env, config->path, wanted->transactions ? flags | more : flags, 0644);
  if (error == 0) error = env->checkpointing_set_period(env, (uint32_t)wanted->checkpoint_period_s);
  if (error == 0) error = env->cleaner_set_period(env, (uint32_t)wanted->cleaner_period_s);
  if (error == 0) error = env->cleaner_set_iterations(env, (uint32_t)wanted->cleaner_iterations);
  return error;
}

static int open_dictionary(DB_ENV *env, uint32_t number, const tokukv_wishes *wanted, uint32_t flags, DB **opened) {
  char name[16];
  DB *dictionary;
  int error = db_create(&dictionary, env, 0);
  if (error != 0) return error;
  snprintf(name, sizeof(name), "k%u", number);
  error = dictionary->set_pagesize(dictionary, (uint32_t)wanted->node_size);
  if (error == 0) error = dictionary->set_readpagesize(dictionary, (uint32_t)wanted->basement_size);
  if (error == 0) error = dictionary->set_fanout(dictionary, (uint32_t)wanted->fanout);
  if (error == 0) error = dictionary->set_compression_method(dictionary, wanted->compression);
  if (error == 0) error = dictionary->open(dictionary, NULL, name, NULL, DB_BTREE, flags, 0644);
  if (error != 0)
    dictionary->close(dictionary, 0);
  else
    *opened = dictionary;
  return error;
}

static uint32_t open_spaces(kv_database *database, const kv_config *config, const tokukv_wishes *wanted,
                            kv_opened *opened) {
  const uint32_t count = config->keyspaces != 0 ? config->keyspaces : 1;
  const uint32_t flags = (config->flags & KV_CREATE) != 0 ? DB_CREATE : 0;
  database->spaces = calloc(count, sizeof(tokukv_space));
  if (database->spaces == NULL) return kv_fail_open(opened, KV_ERROR, "out of memory");
  for (uint32_t i = 0; i < count; i++) {
    tokukv_space *space = &database->spaces[i];
    space->dictionaries = calloc((size_t)config->index_count + 1, sizeof(DB *));
    if (space->dictionaries == NULL) return kv_fail_open(opened, KV_ERROR, "out of memory");
    database->space_count = i + 1;
    const int error = open_dictionary(database->env, i, wanted, flags, &space->dictionaries[0]);
    if (error == ENOENT) return kv_fail_open(opened, KV_ERROR, "this database has only %u keyspaces", i);
    if (error != 0) return kv_fail_open(opened, KV_ERROR, "keyspace %u: %s", i, tokukv_text(error));
    space->count = 1;
  }
  const uint32_t status = tokukv_add_indexes(database, config, opened);
  if (status != KV_OK || flags == 0) return status;
  /* So that the keyspaces themselves survive a crash, at every level. */
  const int error = database->env->txn_checkpoint(database->env, 0, 0, 0);
  return error == 0 ? KV_OK : kv_fail_open(opened, KV_ERROR, "checkpoint: %s", tokukv_text(error));
}

/* The effect of the options and the level on transactions. */
static void set_ways(kv_database *made, const kv_config *config, const tokukv_wishes *wanted, uint32_t level) {
  const uint32_t sync = level == KV_POWER ? 0 : DB_TXN_NOSYNC;
  made->begin_flags = sync;
  made->commit_flags = sync;
  made->write_flags = wanted->prelock ? DB_PRELOCKED_WRITE : 0;
  made->has_transactions = wanted->transactions;
  made->is_read_only = (config->flags & KV_READ_ONLY) != 0;
  made->prelock = wanted->prelock;
  made->has_single_transaction = wanted->single_transaction;
  made->has_child_transactions = wanted->child_transactions;
}

uint32_t tokukv_open(const kv_driver *driver, const kv_config *config, kv_opened *opened, kv_database **database) {
  tokukv_wishes wanted;
  uint32_t status = kv_open_begin(driver, config, opened);
  if (status == KV_OK) status = tokukv_read_options(driver, config, &wanted, opened);
  if (status == KV_OK) status = pick_level(driver, config, &wanted, opened);
  if (status == KV_OK) status = tokukv_check_folder(config, &wanted, opened);
  if (status != KV_OK) return status;
  kv_database *made = calloc(1, sizeof(kv_database));
  if (made == NULL) return kv_fail_open(opened, KV_ERROR, "out of memory");
  set_ways(made, config, &wanted, opened->level);
  int error = db_env_create(&made->env, 0);
  if (error == 0) error = open_environment(made, config, &wanted);
  const char *text = error == EAGAIN ? "it is already open" : error != 0 ? tokukv_text(error) : "";
  if (error != 0) status = kv_fail_open(opened, KV_ERROR, "%s: %s", config->path, text);
  if (status == KV_OK) status = open_spaces(made, config, &wanted, opened);
  if (status != KV_OK) {
    tokukv_close(made, NULL);
    return status;
  }
  if (wanted.single_transaction) opened->capabilities &= ~KV_CAN_LONG_TRANSACTION;
  tokukv_report(made, &wanted, opened);
  *database = made;
  return KV_OK;
}

static int go_on(void *extra, float progress) {
  (void)extra, (void)progress;
  return 0;
}

/* Compaction moves all buffered messages down to the leaves. The engine does not report when background flushes are
 * done. */
uint32_t tokukv_maintain(kv_database *database, uint32_t work, char *error) {
  DB_ENV *env = database->env;
  int code = 0;
  if (work == KV_FLUSH)
    code = database->has_transactions ? env->log_flush(env, NULL) : env->txn_checkpoint(env, 0, 0, 0);
  else if (work != KV_COMPACT)
    return KV_UNSUPPORTED;
  for (uint32_t i = 0; work == KV_COMPACT && i < database->space_count && code == 0; i++) {
    DB *dictionary = database->spaces[i].dictionaries[0];
    uint64_t loops;
    code = dictionary->optimize(dictionary);
    if (code == 0) code = dictionary->hot_optimize(dictionary, NULL, NULL, go_on, NULL, &loops);
  }
  return code == 0 ? KV_OK : kv_fail_call(error, KV_ERROR, "%s", tokukv_text(code));
}

uint32_t tokukv_close(kv_database *database, char *error) {
  int code = 0;
  for (uint32_t i = 0; i < database->space_count; i++) {
    DB **dictionaries = database->spaces[i].dictionaries;
    const int failure = dictionaries[0] != NULL ? dictionaries[0]->close(dictionaries[0], 0) : 0;
    if (code == 0) code = failure;
    free(dictionaries);
  }
  if (database->env != NULL) {
    const int failure = database->env->close(database->env, 0);
    if (code == 0) code = failure;
  }
  free(database->spaces);
  free(database);
  return code == 0 ? KV_OK : kv_fail_call(error, KV_ERROR, "close: %s", tokukv_text(code));
}
