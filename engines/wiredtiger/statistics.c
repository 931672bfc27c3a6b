/* WiredTiger's counters: of the connection, and of the tables of all keyspaces. */
#include "database.h"

typedef struct counter {
  int number;
  const char *name;
} counter;

static const counter CONNECTION[] = {
    {WT_STAT_CONN_CACHE_BYTES_INUSE, "cache_used_bytes"},
    {WT_STAT_CONN_CACHE_BYTES_MAX, "cache_bytes"},
    {WT_STAT_CONN_CACHE_BYTES_DIRTY, "cache_dirty_bytes"},
    {WT_STAT_CONN_CACHE_PAGES_REQUESTED, "cache_requests"},
    {WT_STAT_CONN_CACHE_READ, "cache_misses"},
    {WT_STAT_CONN_CACHE_WRITE, "cache_pages_written"},
    {WT_STAT_CONN_CACHE_BYTES_READ, "cache_read_bytes"},
    {WT_STAT_CONN_CACHE_BYTES_WRITE, "cache_written_bytes"},
    {WT_STAT_CONN_CACHE_EVICTION_CLEAN, "evicted_pages_clean"},
    {WT_STAT_CONN_CACHE_EVICTION_DIRTY, "evicted_pages_dirty"},
    {WT_STAT_CONN_CACHE_EVICTION_APP, "evicted_pages_by_sessions"},
    {WT_STAT_CONN_FSYNC_IO, "fsyncs"},
    {WT_STAT_CONN_LOG_SYNC, "log_syncs"},
    {WT_STAT_CONN_LOG_BYTES_WRITTEN, "log_written_bytes"},
    {WT_STAT_CONN_TXN_COMMIT, "group_commits"},
    {WT_STAT_CONN_TXN_ROLLBACK, "group_rollbacks"},
    {WT_STAT_CONN_TXN_UPDATE_CONFLICT, "update_conflicts"},
    {WT_STAT_CONN_TXN_CHECKPOINT, "checkpoints"},
    {WT_STAT_CONN_TXN_CHECKPOINT_TIME_TOTAL, "checkpoint_ms"},
#ifdef WT_STAT_CONN_LSM_ROWS_MERGED
    {WT_STAT_CONN_LSM_ROWS_MERGED, "lsm_merged_rows"},
    {WT_STAT_CONN_LSM_CHECKPOINT_THROTTLE, "lsm_checkpoint_throttles"},
    {WT_STAT_CONN_LSM_MERGE_THROTTLE, "lsm_merge_throttles"},
#endif
};

static const counter TABLE[] = {
    {WT_STAT_DSRC_BLOCK_SIZE, "file_bytes"},
    {WT_STAT_DSRC_BLOCK_REUSE_BYTES, "file_free_bytes"},
    {WT_STAT_DSRC_BTREE_MAXIMUM_DEPTH, "levels"},
#ifdef WT_STAT_DSRC_LSM_CHUNK_COUNT
    {WT_STAT_DSRC_LSM_CHUNK_COUNT, "lsm_chunks"},
    {WT_STAT_DSRC_LSM_GENERATION_MAX, "lsm_generations"},
    {WT_STAT_DSRC_BLOOM_HIT, "bloom_hits"},
    {WT_STAT_DSRC_BLOOM_MISS, "bloom_misses"},
    {WT_STAT_DSRC_BLOOM_FALSE_POSITIVE, "bloom_false_positives"},
#endif
};

enum { CONNECTION_COUNT = sizeof(CONNECTION) / sizeof(CONNECTION[0]), TABLE_COUNT = sizeof(TABLE) / sizeof(TABLE[0]) };

/* Adds the values of a statistics cursor to `sums`. */
static void add(WT_SESSION *session, const char *uri, const counter *counters, int count, int64_t *sums) {
  const char *description, *text;
  WT_CURSOR *cursor;
  int64_t value;
  if (session->open_cursor(session, uri, NULL, "statistics=(fast)", &cursor) != 0) return;
  for (int i = 0; i < count; i++) {
    cursor->set_key(cursor, counters[i].number);
    if (cursor->search(cursor) == 0 && cursor->get_value(cursor, &description, &text, &value) == 0) sums[i] += value;
  }
  cursor->close(cursor);
}

static uint64_t write(char *out, uint64_t size, uint64_t used, const counter *counters, int count,
                      const int64_t *sums) {
  for (int i = 0; i < count && used < size; i++)
    used += (uint64_t)snprintf(out + used, size - used, "%s=%lld\n", counters[i].name, (long long)sums[i]);
  return used;
}

uint32_t wiredtiger_statistics(kv_database *database, char *out, uint64_t size) {
  int64_t connection[CONNECTION_COUNT] = {0}, tables[TABLE_COUNT] = {0};
  char uri[64];
  WT_SESSION *session;
  if (size != 0) out[0] = 0;
  if (database->connection->open_session(database->connection, NULL, NULL, &session) != 0) return KV_ERROR;
  add(session, "statistics:", CONNECTION, CONNECTION_COUNT, connection);
  for (uint32_t i = 0; i < database->keyspaces; i++) {
    snprintf(uri, sizeof(uri), "statistics:table:k%u", i);
    add(session, uri, TABLE, TABLE_COUNT, tables);
  }
  session->close(session, NULL);
  uint64_t used = write(out, size, 0, CONNECTION, CONNECTION_COUNT, connection);
  used = write(out, size, used, TABLE, TABLE_COUNT, tables);
  return used < size ? KV_OK : KV_SHORT;
}
