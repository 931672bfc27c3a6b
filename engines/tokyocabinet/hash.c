/* The hash file of Tokyo Cabinet, tchdb. */
#include "cabinet.h"

TOKYO_CALLS(hdb, TCHDB)

enum { BUCKETS_SHIPPED = 131071 };

static bool open_file(void *db, const char *path, const tuning *tuning) {
  const uint64_t wanted = 2 * tuning->expected_rows;
  uint64_t buckets = wanted > BUCKETS_SHIPPED ? wanted : BUCKETS_SHIPPED;
  if (tuning->buckets != 0) buckets = tuning->buckets;
  return (!tuning->is_shared || tchdbsetmutex(db)) &&
         tchdbtune(db, (int64_t)buckets, (int8_t)tuning->alignment_power, (int8_t)tuning->free_block_power,
                   tuning->features) &&
         tchdbsetcache(db, (int32_t)tuning->cached_records) && tchdbsetxmsiz(db, (int64_t)tuning->map) &&
         tchdbsetdfunit(db, (int32_t)tuning->defragment) && tchdbopen(db, path, tuning->mode);
}

static const char *compression_of(uint8_t features) {
  if ((features & HDBTDEFLATE) != 0) return "deflate";
  if ((features & HDBTBZIP) != 0) return "bzip2";
  return (features & HDBTTCBS) != 0 ? "tcbs" : "none";
}

/* Values in the file's header take precedence over requested ones. */
static void report(void *db, kv_opened *opened) {
  const TCHDB *hash = db;
  snprintf(opened->compression, sizeof(opened->compression), "%s", compression_of(hash->opts));
  kv_opened_setting(opened, "cached_records", "%u", hash->rcnum);
  kv_opened_setting(opened, "buckets", "%llu", (unsigned long long)hash->bnum);
  kv_opened_setting(opened, "map", "%llu", (unsigned long long)hash->xmsiz);
  kv_opened_setting(opened, "alignment_power", "%u", hash->apow);
  kv_opened_setting(opened, "free_block_power", "%u", hash->fpow);
  kv_opened_setting(opened, "defragment", "%u", hash->dfunit);
  kv_opened_setting(opened, "large", "%s", (hash->opts & HDBTLARGE) != 0 ? "true" : "false");
}

static size_t stats(void *db, char *out, size_t size) {
  return (size_t)snprintf(out, size, "rows=%llu\nbuckets=%llu\nused_buckets=%llu\nfile_bytes=%llu\n",
                          (unsigned long long)tchdbrnum(db), (unsigned long long)tchdbbnum(db),
                          (unsigned long long)tchdbbnumused(db), (unsigned long long)tchdbfsiz(db));
}

static void begin_session(kv_session *session) { (void)session; }

static bool optimize(void *db) { return tchdboptimize(db, -1, -1, -1, UINT8_MAX); }

/* The library writes into the op's buffer, and does not report what it cut off. */
static uint32_t get(kv_session *session, kv_op *op) {
  TCHDB *db = session->database->db;
  const int room = op->out_size < INT32_MAX ? (int)op->out_size : INT32_MAX;
  int length = tchdbget3(db, op->key, (int)op->key_length, op->out, room);
  if (length >= 0 && length == room) length = tchdbvsiz(db, op->key, (int)op->key_length);
  if (length < 0) return tchdbecode(db) == TCENOREC ? KV_NOT_FOUND : KV_ERROR;
  if (length > room) {
    op->needed = (uint64_t)length;
    op->length = 0;
    return KV_SHORT;
  }
  op->length = (uint64_t)length;
  return KV_OK;
}

/* A database has only one iterator, so a scan needs exclusive access. Rows are unordered. */
static uint32_t scan(kv_session *session, kv_op *op) {
  TCHDB *db = session->database->db;
  kv_rows rows = kv_rows_begin(op);
  const bool is_there =
      (op->flags & KV_RESUME) != 0 ? tchdbiterinit2(db, op->key, (int)op->key_length) : tchdbiterinit(db);
  if (!is_there) return KV_ERROR;
  while (tchdbiternext3(db, session->key, session->value)) {
    const char *key = tcxstrptr(session->key);
    const size_t key_size = (size_t)tcxstrsize(session->key);
    if (kv_rows_is_beyond(op, key, key_size)) continue;
    if (!kv_rows_push(&rows, key, key_size, tcxstrptr(session->value), (size_t)tcxstrsize(session->value)))
      return rows.status;
  }
  return tchdbecode(db) == TCENOREC ? rows.status : (uint32_t)KV_ERROR;
}

TOKYO_KIND(tokyo_hash, "data.tch")
