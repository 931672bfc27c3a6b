/* A session of SQLite: one connection and its prepared statements. */
#include "database.h"

static int prepare(const kv_session *session, const char *format, uint32_t keyspace, sqlite3_stmt **statement) {
  char sql[96];
  snprintf(sql, sizeof(sql), format, keyspace);
  return sqlite3_prepare_v3(session->connection, sql, -1, SQLITE_PREPARE_PERSISTENT, statement, NULL);
}

uint32_t sqlite_session_end(kv_session *session, char *error) {
  (void)error;
  for (int i = 0; i < CONTROLS; i++) sqlite3_finalize(session->control[i]);
  for (uint32_t i = 0; i < session->database->keyspaces; i++)
    for (int j = 0; j < STATEMENTS; j++) sqlite3_finalize(session->statements[i][j]);
  sqlite_count(session->database, session->connection);
  sqlite3_close(session->connection);
  free(session);
  return KV_OK;
}

uint32_t sqlite_session(kv_database *database, const kv_arena *arena, kv_session **session, char *error) {
  static const char *const controls[CONTROLS] = {"BEGIN", "BEGIN IMMEDIATE", "COMMIT", "ROLLBACK"};
  static const char *const statements[SCANS] = {
      "SELECT value FROM k%u WHERE key = ?1",
      "INSERT OR REPLACE INTO k%u VALUES (?1, ?2)",
      "INSERT OR IGNORE INTO k%u VALUES (?1, ?2)",
      "DELETE FROM k%u WHERE key = ?1",
  };
  int code = SQLITE_OK;
  (void)arena;
  kv_session *made = calloc(1, sizeof(kv_session) + database->keyspaces * sizeof(made->statements[0]));
  if (made == NULL) return kv_fail_call(error, KV_ERROR, "out of memory");
  made->database = database;
  made->connection = sqlite_connect(database, 0, error);
  if (made->connection == NULL) {
    free(made);
    return KV_ERROR;
  }
  for (int i = 0; i < CONTROLS && code == SQLITE_OK; i++) code = prepare(made, controls[i], 0, &made->control[i]);
  for (uint32_t i = 0; i < database->keyspaces && code == SQLITE_OK; i++)
    for (int j = 0; j < SCANS && code == SQLITE_OK; j++)
      code = prepare(made, statements[j], i, &made->statements[i][j]);
  if (code != SQLITE_OK) {
    kv_fail_call(error, KV_ERROR, "session: %s", sqlite3_errmsg(made->connection));
    sqlite_session_end(made, NULL);
    return KV_ERROR;
  }
  *session = made;
  return KV_OK;
}
