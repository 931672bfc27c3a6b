/* Sessions of TokuKV: their memory, and the transaction that may live as long as they do. */
#include "tokukv.h"

uint8_t *tokukv_space_of(kv_session *session, size_t size) {
  if (session->space == NULL || session->space_size < size) {
    uint8_t *grown = realloc(session->space, size + 4096);
    if (grown == NULL) return NULL;
    session->space = grown;
    session->space_size = size + 4096;
  }
  return session->space;
}

static void free_session(kv_session *session) {
  const uint32_t count = session->database->space_dictionaries_max;
  for (uint32_t i = 0; session->keys != NULL && i < 2 * count; i++) toku_dbt_array_destroy(&session->keys[i]);
  for (uint32_t i = 0; session->values != NULL && i < count; i++) toku_dbt_array_destroy(&session->values[i]);
  free(session->keys);
  free(session->values);
  free(session->flags);
  free(session->is_locked);
  free(session->space);
  free(session);
}

static int make_room(kv_session *session) {
  const uint32_t count = session->database->space_dictionaries_max;
  session->is_locked = calloc(session->database->space_count, 1);
  if (session->is_locked == NULL) return ENOMEM;
  if (count < 2) return 0;
  session->flags = calloc(count, sizeof(uint32_t));
  session->keys = calloc(2 * (size_t)count, sizeof(DBT_ARRAY));
  session->values = calloc(count, sizeof(DBT_ARRAY));
  if (session->flags == NULL || session->keys == NULL || session->values == NULL) return ENOMEM;
  for (uint32_t i = 0; i < 2 * count; i++) toku_dbt_array_init(&session->keys[i], 1);
  for (uint32_t i = 0; i < count; i++) toku_dbt_array_init(&session->values[i], 1);
  return 0;
}

int tokukv_open_session(kv_database *database, kv_session **session) {
  DB_ENV *env = database->env;
  kv_session *made = calloc(1, sizeof(kv_session));
  if (made == NULL) return ENOMEM;
  made->database = database;
  int error = make_room(made);
  if (error == 0 && database->has_single_transaction)
    error = env->txn_begin(env, NULL, &made->open, database->begin_flags);
  if (error != 0)
    free_session(made);
  else
    *session = made;
  return error;
}

/* The engine would stop the process if a transaction were still open at close. */
uint32_t tokukv_end_session(kv_session *session, char *error) {
  const kv_database *database = session->database;
  DB_TXN *txn = session->open;
  int code = 0;
  const int closed = tokukv_let_go(session);
  if (txn != NULL && database->has_single_transaction)
    code = txn->commit(txn, database->commit_flags);
  else if (txn != NULL)
    code = txn->abort(txn);
  free_session(session);
  if (code == 0) code = closed;
  return code == 0 ? KV_OK : kv_fail_call(error, KV_ERROR, "the session's last transaction: %s", tokukv_text(code));
}
