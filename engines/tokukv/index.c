/* Secondary indexes of TokuKV: the engine's put_multiple and similar calls generate their rows, also in recovery, so
 * the definition of an index is in its dictionary's descriptor. */
#include "tokukv.h"

/* The descriptor of an index's dictionary. */
typedef struct description {
  uint32_t from, length, is_clustering;
} description;

/* The row of an index: bytes of the value, then the primary key. Bytes past the end of the value are omitted. */
int tokukv_generate_put(DB *to, DB *from, DBT_ARRAY *keys, DBT_ARRAY *values, const DBT *key, const DBT *value) {
  static char nothing;
  description index;
  (void)from;
  if (to->descriptor == NULL || to->descriptor->dbt.size != sizeof(index)) return EINVAL;
  memcpy(&index, to->descriptor->dbt.data, sizeof(index));
  const uint32_t start = index.from < value->size ? index.from : value->size;
  const uint32_t length = index.length < value->size - start ? index.length : value->size - start;
  toku_dbt_array_resize(keys, 1);
  DBT *made = &keys->dbts[0]; /* DB_DBT_REALLOC: grown here, freed with the array */
  if (made->data == NULL || made->ulen < length + key->size) {
    void *grown = realloc(made->data, length + key->size + 64);
    if (grown == NULL) return ENOMEM;
    made->data = grown;
    made->ulen = length + key->size + 64;
  }
  if (length != 0) memcpy(made->data, (const char *)value->data + start, length);
  if (key->size != 0) memcpy((char *)made->data + length, key->data, key->size);
  made->size = length + key->size;
  if (values == NULL) return 0;
  toku_dbt_array_resize(values, 1);
  values->dbts[0] = index.is_clustering ? tokukv_bytes(value->data, value->size) : tokukv_bytes(&nothing, 0);
  return 0;
}

int tokukv_generate_delete(DB *to, DB *from, DBT_ARRAY *keys, const DBT *key, const DBT *value) {
  return tokukv_generate_put(to, from, keys, NULL, key, value);
}

typedef struct earlier {
  kv_session *session;
  DBT value;
  int is_out_of_memory;
} earlier;

static int keep(const DBT *key, const DBT *value, void *extra) {
  earlier *row = extra;
  uint8_t *bytes = tokukv_space_of(row->session, value->size);
  (void)key;
  row->is_out_of_memory = bytes == NULL;
  if (bytes == NULL) return 0;
  if (value->size != 0) memcpy(bytes, value->data, value->size);
  row->value = tokukv_bytes(bytes, value->size);
  return 0;
}

/* The existing row, write-locked: its index rows must be removed. */
static int find_earlier(kv_session *session, DB *dictionary, DB_TXN *txn, DBT *key, earlier *row) {
  row->session = session;
  row->is_out_of_memory = 0;
  const uint32_t flags = DB_RMW | session->database->write_flags;
  const int error = dictionary->getf_set(dictionary, txn, flags, key, keep, row);
  return error == 0 && row->is_out_of_memory ? ENOMEM : error;
}

static void set_flags(kv_session *session, uint32_t count, uint32_t first, uint32_t others) {
  session->flags[0] = session->database->write_flags | first;
  for (uint32_t i = 1; i < count; i++) session->flags[i] = session->database->write_flags | others;
}

static int delete_rows(kv_session *session, const tokukv_space *space, DB_TXN *txn, DBT *key, DBT *value) {
  DB_ENV *env = session->database->env;
  set_flags(session, space->count, DB_DELETE_ANY, DB_DELETE_ANY);
  return env->del_multiple(env, space->dictionaries[0], txn, key, value, space->count, space->dictionaries,
                           session->keys, session->flags);
}

int tokukv_put_indexed(kv_session *session, const kv_op *op, DB_TXN *txn) {
  const tokukv_space *space = &session->database->spaces[op->keyspace];
  DB_ENV *env = session->database->env;
  DB **const dictionaries = space->dictionaries;
  DBT key = tokukv_bytes(op->key, op->key_length), value = tokukv_bytes(op->value, op->value_length);
  const int is_new = (op->flags & KV_NEW) != 0;
  earlier row;
  int error = is_new ? DB_NOTFOUND : find_earlier(session, dictionaries[0], txn, &key, &row);
  if (error == 0 && op->value_length != 0) {
    set_flags(session, space->count, 0, 0);
    return env->update_multiple(env, dictionaries[0], txn, &key, &row.value, &key, &value, space->count, dictionaries,
                                session->flags, 2 * space->count, session->keys, space->count, session->values);
  }
  /* update_multiple treats a row without a value as unchanged. */
  if (error == 0) error = delete_rows(session, space, txn, &key, &row.value);
  if (error != 0 && error != DB_NOTFOUND) return error;
  set_flags(session, space->count, is_new ? DB_NOOVERWRITE : 0, 0);
  return env->put_multiple(env, dictionaries[0], txn, &key, &value, space->count, dictionaries, session->keys,
                           session->values, session->flags);
}

int tokukv_delete_indexed(kv_session *session, const kv_op *op, DB_TXN *txn) {
  const tokukv_space *space = &session->database->spaces[op->keyspace];
  DBT key = tokukv_bytes(op->key, op->key_length);
  earlier row;
  const int error = find_earlier(session, space->dictionaries[0], txn, &key, &row);
  if (error != 0)
    return error == DB_NOTFOUND ? 0 : error; /* deletes do not report absent keys, with or without indexes */
  return delete_rows(session, space, txn, &key, &row.value);
}

/* Checks that a dictionary is the expected index; a new one is created as that. Null: no index. */
static int describe(DB *dictionary, const kv_index *index, int is_new) {
  const DBT *found = &dictionary->descriptor->dbt;
  if (index == NULL) return found->size == 0 ? 0 : EINVAL;
  const description wanted = {index->from, index->length, index->clustering != 0};
  const DBT bytes = tokukv_bytes(&wanted, sizeof(wanted));
  if (is_new) return dictionary->change_descriptor(dictionary, NULL, &bytes, 0);
  return found->size == sizeof(wanted) && memcmp(found->data, &wanted, sizeof(wanted)) == 0 ? 0 : EINVAL;
}

uint32_t tokukv_add_indexes(kv_database *database, const kv_config *config, kv_opened *opened) {
  const uint32_t count = database->space_count;
  for (uint32_t i = 0; i < config->index_count; i++) {
    const kv_index *index = &config->indexes[i];
    if (index->keyspace >= count || index->index_keyspace >= count)
      return kv_fail_open(opened, KV_ERROR, "an index of keyspace %u in %u; there are %u keyspaces", index->keyspace,
                          index->index_keyspace, count);
    tokukv_space *space = &database->spaces[index->keyspace], *entries = &database->spaces[index->index_keyspace];
    if (space == entries || space->is_index || entries->is_index || entries->count > 1)
      return kv_fail_open(opened, KV_ERROR, "keyspace %u cannot be an index of %u", index->index_keyspace,
                          index->keyspace);
    entries->is_index = 1;
    space->dictionaries[space->count++] = entries->dictionaries[0];
    if (index->length > space->index_length_max) space->index_length_max = index->length;
    if (space->count > database->space_dictionaries_max) database->space_dictionaries_max = space->count;
  }
  for (uint32_t i = 0; i < count; i++) {
    const kv_index *index = NULL;
    for (uint32_t j = 0; j < config->index_count; j++)
      if (config->indexes[j].index_keyspace == i) index = &config->indexes[j];
    const int error = describe(database->spaces[i].dictionaries[0], index, (config->flags & KV_CREATE) != 0);
    if (error != 0)
      return kv_fail_open(opened, KV_ERROR, "keyspace %u was created as %s index", i,
                          index == NULL ? "an" : "no, or another,");
  }
  return KV_OK;
}
