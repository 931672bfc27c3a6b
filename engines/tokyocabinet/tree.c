/* The B+ tree of Tokyo Cabinet, tcbdb: leaves and nodes cached in memory of the process, kept in a hash file. */
#include "cabinet.h"

TOKYO_CALLS(bdb, TCBDB)

enum { NODES_SHIPPED = 512 };

static bool open_file(void *db, const char *path, const tuning *tuning) {
  const uint64_t leaves = tuning->cache_bytes / tuning->page_size;
  return (!tuning->is_shared || tcbdbsetmutex(db)) &&
         tcbdbtune(db, (int32_t)tuning->leaf_rows, (int32_t)tuning->node_links, (int64_t)tuning->buckets,
                   (int8_t)tuning->alignment_power, (int8_t)tuning->free_block_power, tuning->features) &&
         tcbdbsetlsmax(db, (uint32_t)tuning->page_size) &&
         tcbdbsetcache(db, leaves < INT32_MAX ? (int32_t)leaves : INT32_MAX, NODES_SHIPPED) &&
         tcbdbsetxmsiz(db, (int64_t)tuning->map) && tcbdbsetdfunit(db, (int32_t)tuning->defragment) &&
         tcbdbopen(db, path, tuning->mode);
}

static const char *compression_of(uint8_t features) {
  if ((features & BDBTDEFLATE) != 0) return "deflate";
  if ((features & BDBTBZIP) != 0) return "bzip2";
  return (features & BDBTTCBS) != 0 ? "tcbs" : "none";
}

/* Values in the file's header take precedence over requested ones. */
static void report(void *db, kv_opened *opened) {
  const TCBDB *tree = db;
  opened->cache_bytes = (uint64_t)tree->lcnum * tree->lsmax;
  snprintf(opened->compression, sizeof(opened->compression), "%s", compression_of(tree->opts));
  kv_opened_setting(opened, "page_size", "%u", tree->lsmax);
  kv_opened_setting(opened, "leaf_rows", "%u", tree->lmemb);
  kv_opened_setting(opened, "node_links", "%u", tree->nmemb);
  kv_opened_setting(opened, "cached_leaves", "%u", tree->lcnum);
  kv_opened_setting(opened, "cached_nodes", "%u", tree->ncnum);
  kv_opened_setting(opened, "buckets", "%llu", (unsigned long long)tree->hdb->bnum);
  kv_opened_setting(opened, "map", "%llu", (unsigned long long)tree->hdb->xmsiz);
  kv_opened_setting(opened, "alignment_power", "%u", tree->hdb->apow);
  kv_opened_setting(opened, "free_block_power", "%u", tree->hdb->fpow);
  kv_opened_setting(opened, "defragment", "%u", tree->hdb->dfunit);
  kv_opened_setting(opened, "large", "%s", (tree->opts & BDBTLARGE) != 0 ? "true" : "false");
}

static size_t stats(void *db, char *out, size_t size) {
  const TCBDB *tree = db;
  return (size_t)snprintf(out, size,
                          "rows=%llu\nleaves=%llu\ninner_nodes=%llu\nbuckets=%llu\nfile_bytes=%llu\nleaf_loads=%lld\n"
                          "leaf_saves=%lld\nnode_loads=%lld\nnode_saves=%lld\n",
                          (unsigned long long)tcbdbrnum(db), (unsigned long long)tcbdblnum(db),
                          (unsigned long long)tcbdbnnum(db), (unsigned long long)tcbdbbnum(db),
                          (unsigned long long)tcbdbfsiz(db), (long long)tree->cnt_loadleaf,
                          (long long)tree->cnt_saveleaf, (long long)tree->cnt_loadnode, (long long)tree->cnt_savenode);
}

static void begin_session(kv_session *session) { session->cursor = tcbdbcurnew(session->database->db); }

static bool optimize(void *db) { return tcbdboptimize(db, -1, -1, -1, -1, -1, UINT8_MAX); }

/* With other sessions the library copies the value; with a single session it returns a pointer into its cache. */
static uint32_t get(kv_session *session, kv_op *op) {
  kv_database *database = session->database;
  int length = 0;
  uint32_t status;
  if (!database->is_shared) {
    const void *seen = tcbdbget3(database->db, op->key, (int)op->key_length, &length);
    if (seen != NULL) return kv_deliver(op, seen, (size_t)length);
  } else {
    void *copy = tcbdbget(database->db, op->key, (int)op->key_length, &length);
    if (copy != NULL) {
      status = kv_deliver(op, copy, (size_t)length);
      free(copy);
      return status;
    }
  }
  return error(database->db) == TCENOREC ? KV_NOT_FOUND : KV_ERROR;
}

/* Pushes the cursor's row; whether to continue. */
static bool push(kv_session *session, kv_rows *rows) {
  int key_size = 0, value_size = 0;
  if (session->database->is_shared) {
    if (!tcbdbcurrec(session->cursor, session->key, session->value)) return false;
    return kv_rows_push(rows, tcxstrptr(session->key), (size_t)tcxstrsize(session->key), tcxstrptr(session->value),
                        (size_t)tcxstrsize(session->value)) != 0;
  }
  const void *key = tcbdbcurkey3(session->cursor, &key_size);
  const void *value = tcbdbcurval3(session->cursor, &value_size);
  return key != NULL && value != NULL && kv_rows_push(rows, key, (size_t)key_size, value, (size_t)value_size) != 0;
}

/* Whether the cursor is at exactly this key. */
static bool stands_on(kv_session *session, const kv_place *place) {
  int size = 0;
  char *key = tcbdbcurkey(session->cursor, &size);
  const bool is_same = key != NULL && kv_compare(key, (size_t)size, place->key, place->length) == 0;
  free(key);
  return is_same;
}

static uint32_t scan(kv_session *session, kv_op *op) {
  BDBCUR *cursor = session->cursor;
  const bool is_reverse = (op->flags & KV_REVERSE) != 0;
  uint8_t space[65536];
  const kv_place place = kv_scan_place(op, space);
  kv_rows rows = kv_rows_begin(op);
  bool is_there;
  if (place.length == 0)
    is_there = is_reverse ? tcbdbcurlast(cursor) : tcbdbcurfirst(cursor);
  else if (is_reverse)
    is_there = tcbdbcurjumpback(cursor, place.key, (int)place.length);
  else
    is_there = tcbdbcurjump(cursor, place.key, (int)place.length);
  if (is_there && place.is_exclusive && place.length != 0 && stands_on(session, &place))
    is_there = tcbdbcurprev(cursor);
  while (is_there && push(session, &rows)) is_there = is_reverse ? tcbdbcurprev(cursor) : tcbdbcurnext(cursor);
  if (!is_there && error(session->database->db) != TCENOREC) return KV_ERROR;
  return rows.status;
}

TOKYO_KIND(tokyo_tree, "data.tcb")
