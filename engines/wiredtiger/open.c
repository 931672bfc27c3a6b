/* Opens, maintains and closes a WiredTiger connection. */
#include <sys/stat.h>

#include "database.h"

/* WiredTiger prints its messages unless a handler is set. The first message of a failure is the most useful; it begins
 * with the time and the thread, "[1:2][3:4], ". */
static int hear_error(WT_EVENT_HANDLER *handler, WT_SESSION *session, int code, const char *message) {
  kv_database *database = (kv_database *)handler;
  const char *text = message[0] == '[' ? strstr(message, ", ") : NULL;
  (void)session, (void)code;
  pthread_mutex_lock(&database->lock);
  if (database->message[0] == 0)
    snprintf(database->message, sizeof(database->message), "%s", text != NULL ? text + 2 : message);
  pthread_mutex_unlock(&database->lock);
  return 0;
}

static int hear_message(WT_EVENT_HANDLER *handler, WT_SESSION *session, const char *message) {
  (void)handler, (void)session, (void)message;
  return 0;
}

static int hear_progress(WT_EVENT_HANDLER *handler, WT_SESSION *session, const char *operation, uint64_t progress) {
  (void)handler, (void)session, (void)operation, (void)progress;
  return 0;
}

const char *wiredtiger_text(kv_database *database, int code, char text[KV_TEXT]) {
  pthread_mutex_lock(&database->lock);
  snprintf(text, KV_TEXT, "%s", database->message[0] != 0 ? database->message : wiredtiger_strerror(code));
  database->message[0] = 0;
  pthread_mutex_unlock(&database->lock);
  return text;
}

/* Whether a table's configuration has all these settings, ",name=value" each; otherwise `lacking` is one that it lacks.
 */
static int has_settings(const char *table, const char *settings, char lacking[64]) {
  while (settings[0] == ',') {
    const size_t length = strcspn(settings + 1, ",");
    const char *at = table;
    snprintf(lacking, 64, "%.*s", (int)length, settings + 1);
    while ((at = strstr(at, lacking)) != NULL && at[length] != ',' && at[length] != 0) at += length;
    if (at == NULL) return 0;
    settings += 1 + length;
  }
  return 1;
}

/* Checks that a keyspace exists, with this type and these settings, which are fixed when the table is created. */
static uint32_t find_keyspace(const kv_database *database, WT_SESSION *session, uint32_t keyspace, const char *settings,
                              kv_opened *opened) {
  WT_CURSOR *cursor;
  const char *table;
  char key[32], lacking[64];
  uint32_t status = KV_OK;
  snprintf(key, sizeof(key), database->is_lsm ? "lsm:k%u" : "file:k%u.wt", keyspace);
  if (session->open_cursor(session, "metadata:", NULL, NULL, &cursor) != 0)
    return kv_fail_open(opened, KV_ERROR, "open: cannot read the metadata");
  cursor->set_key(cursor, key);
  if (cursor->search(cursor) != 0 || cursor->get_value(cursor, &table) != 0)
    status = kv_fail_open(opened, KV_ERROR, "open: the database has no keyspace %u of type %s", keyspace,
                          database->is_lsm ? "lsm" : "btree");
  else if (!has_settings(table, settings, lacking))
    status = kv_fail_open(opened, KV_ERROR, "open: keyspace %u was created without %s", keyspace, lacking);
  cursor->close(cursor);
  return status;
}

/* Creates the tables, or checks that they exist with this type. */
static uint32_t open_keyspaces(kv_database *database, const kv_config *config, const wiredtiger_texts *texts,
                               kv_opened *opened) {
  uint32_t status = KV_OK;
  char name[32], text[KV_TEXT];
  WT_SESSION *session;
  int code = database->connection->open_session(database->connection, NULL, NULL, &session);
  if (code != 0) return kv_fail_open(opened, KV_ERROR, "open: %s", wiredtiger_text(database, code, text));
  for (uint32_t i = 0; i < config->keyspaces && status == KV_OK; i++) {
    snprintf(name, sizeof(name), "table:k%u", i);
    if ((config->flags & KV_CREATE) != 0) {
      code = session->create(session, name, texts->table);
      if (code != 0) status = kv_fail_open(opened, KV_ERROR, "open: %s", wiredtiger_text(database, code, text));
    } else {
      status = find_keyspace(database, session, i, texts->pages, opened);
    }
  }
  session->close(session, NULL);
  return status;
}

/* Whether the connection would read a configuration, which comes after ours and may name folders elsewhere: the logs
 * there would be changed, although the folder itself is a copy. */
static int has_configuration(const kv_config *config) {
  struct stat facts;
  char name[4096];
  snprintf(name, sizeof(name), "%s/WiredTiger.config", config->path);
  return stat(name, &facts) == 0;
}

static uint32_t open_with(const kv_driver *driver, const kv_config *config, kv_opened *opened, kv_database **database) {
  wiredtiger_texts texts = {{""}, {""}, {""}};
  int major, minor, patch;
  char text[KV_TEXT];
  uint32_t status = kv_open_begin(driver, config, opened);
  if (status == KV_OK) status = kv_pick_level(driver, config, KV_NONE, opened);
  if (status == KV_OK) status = wiredtiger_configure(driver, config, &texts, opened);
  if (status != KV_OK) return status;
  if (has_configuration(config))
    return kv_fail_open(
        opened, KV_ERROR,
        "WiredTiger.config may name other folders, whose files would be changed; use a copy without it");
  kv_database *made = calloc(1, sizeof(kv_database));
  if (made == NULL) return kv_fail_open(opened, KV_ERROR, "out of memory");
  pthread_mutex_init(&made->lock, NULL);
  made->handler.handle_error = hear_error;
  made->handler.handle_message = hear_message;
  made->handler.handle_progress = hear_progress;
  made->keyspaces = config->keyspaces;
  made->is_lsm = driver == &wiredtiger_lsm;
  const int code = wiredtiger_open(config->path, &made->handler, texts.connection, &made->connection);
  if (code != 0) status = kv_fail_open(opened, KV_ERROR, "open: %s", wiredtiger_text(made, code, text));
  if (status == KV_OK) status = open_keyspaces(made, config, &texts, opened);
  if (status != KV_OK) {
    wiredtiger_close(made, NULL);
    return status;
  }
  wiredtiger_version(&major, &minor, &patch);
  snprintf(opened->version, sizeof(opened->version), "%d.%d.%d", major, minor, patch);
  *database = made;
  return KV_OK;
}

uint32_t wiredtiger_open_btree(const kv_config *config, kv_opened *opened, kv_database **database) {
  return open_with(&wiredtiger_btree, config, opened, database);
}

uint32_t wiredtiger_open_lsm(const kv_config *config, kv_opened *opened, kv_database **database) {
  return open_with(&wiredtiger_lsm, config, opened, database);
}

/* A checkpoint writes and syncs everything, including the log. */
uint32_t wiredtiger_maintain(kv_database *database, uint32_t work, char *error) {
  WT_SESSION *session;
  char name[32], text[KV_TEXT];
  if (work == KV_SETTLE) return KV_UNSUPPORTED; /* it does not report whether its threads are busy */
  int code = database->connection->open_session(database->connection, NULL, NULL, &session);
  if (code != 0) return kv_fail_call(error, KV_ERROR, "maintain: %s", wiredtiger_text(database, code, text));
  if (work == KV_FLUSH) code = session->checkpoint(session, NULL);
  for (uint32_t i = 0; i < database->keyspaces && work == KV_COMPACT && code == 0; i++) {
    snprintf(name, sizeof(name), "table:k%u", i);
    code = session->compact(session, name, "timeout=0");
  }
  session->close(session, NULL);
  return code == 0 ? KV_OK : kv_fail_call(error, KV_ERROR, "maintain: %s", wiredtiger_text(database, code, text));
}

uint32_t wiredtiger_close(kv_database *database, char *error) {
  char text[KV_TEXT] = "";
  const int code = database->connection != NULL ? database->connection->close(database->connection, NULL) : 0;
  if (code != 0) wiredtiger_text(database, code, text);
  pthread_mutex_destroy(&database->lock);
  free(database);
  return code == 0 ? KV_OK : kv_fail_call(error, KV_ERROR, "close: %s", text);
}
