/* A session: a WiredTiger session with two cursors for each keyspace. */
#include "database.h"

uint32_t wiredtiger_session_end(kv_session *session, char *error) {
  char text[KV_TEXT];
  const int code = session->session->close(session->session, NULL); /* and its cursors */
  if (code != 0) kv_fail_call(error, KV_ERROR, "session: %s", wiredtiger_text(session->database, code, text));
  free(session);
  return code == 0 ? KV_OK : KV_ERROR;
}

uint32_t wiredtiger_session(kv_database *database, const kv_arena *arena, kv_session **session, char *error) {
  char name[32], text[KV_TEXT];
  (void)arena;
  kv_session *made = calloc(1, sizeof(kv_session) + database->keyspaces * sizeof(made->cursors[0]));
  if (made == NULL) return kv_fail_call(error, KV_ERROR, "out of memory");
  made->database = database;
  int code = database->connection->open_session(database->connection, NULL, "isolation=snapshot", &made->session);
  WT_SESSION *opened = made->session;
  for (uint32_t i = 0; i < database->keyspaces && code == 0; i++) {
    snprintf(name, sizeof(name), "table:k%u", i);
    code = opened->open_cursor(opened, name, NULL, NULL, &made->cursors[i].plain);
    if (code == 0) code = opened->open_cursor(opened, name, NULL, "overwrite=false", &made->cursors[i].exact);
  }
  *session = made;
  if (code == 0) return KV_OK;
  kv_fail_call(error, KV_ERROR, "session: %s", wiredtiger_text(database, code, text));
  if (opened != NULL)
    wiredtiger_session_end(made, NULL);
  else
    free(made);
  return KV_ERROR;
}
