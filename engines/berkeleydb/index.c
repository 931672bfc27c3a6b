/* Secondary indexes of Berkeley DB: DB->associate maintains their rows, under bytes of the value and the primary key.
 */
#include "berkeleydb.h"

/* Makes the key of an index row from a primary row; the library frees it. */
static int make_key(DB *secondary, const DBT *primary_key, const DBT *value, DBT *key) {
  const kv_index *index = secondary->app_private;
  uint8_t *bytes;
  memset(key, 0, sizeof(*key));
  if ((uint64_t)index->from + index->length > value->size) return DB_DONOTINDEX; /* not a row of the driver */
  bytes = malloc((size_t)index->length + primary_key->size + 1);
  if (bytes == NULL) return ENOMEM;
  memcpy(bytes, (const uint8_t *)value->data + index->from, index->length);
  memcpy(bytes + index->length, primary_key->data, primary_key->size);
  key->data = bytes;
  key->size = index->length + primary_key->size;
  key->flags = DB_DBT_APPMALLOC;
  return 0;
}

/* Associates each index with its primary. A clustering index is read through the associated handle, which fetches the
 * primary's value; another index through a separate handle that sees its rows as stored, so scans read no primary. */
int open_indexes(kv_database *database, const kv_config *config) {
  kv_config again = *config;
  again.flags &= ~(uint32_t)KV_CREATE;
  memcpy(database->indexes, config->indexes, database->index_count * sizeof(kv_index));
  for (uint32_t i = 0; i < database->index_count; i++) {
    kv_index *index = &database->indexes[i];
    if (index->keyspace >= database->keyspace_count || index->index_keyspace >= database->keyspace_count) return EINVAL;
    keyspace *primary = &database->keyspaces[index->keyspace];
    keyspace *space = &database->keyspaces[index->index_keyspace];
    int code = 0;
    if (primary->secondary != NULL || space->secondary != NULL || primary == space) return EINVAL;
    const uint32_t end = index->from + index->length;
    if (end > primary->value_min) primary->value_min = end;
    space->hides_values = !index->clustering;
    space->secondary = space->db;
    if (!index->clustering) {
      space->secondary = NULL;
      code = open_handle(database, &again, index->index_keyspace, &space->secondary);
    }
    if (code != 0) return code;
    space->secondary->app_private = index;
    code = primary->db->associate(primary->db, NULL, space->secondary, make_key, 0);
    if (code != 0) return code;
  }
  return 0;
}
