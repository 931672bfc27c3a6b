/* LevelDB's idle state: flush, compaction and waiting for its thread. */
#ifndef KVDYNO_LEVELDB_REST_H
#define KVDYNO_LEVELDB_REST_H

#include <leveldb/db.h>

/* Writes out and syncs the memtable, and the rows in the log of the previous memtable. */
leveldb::Status flush(leveldb::DB &db);
/* Compacts everything. */
leveldb::Status compact(leveldb::DB &db);
/* Flushes and waits until no compaction runs or is due. */
leveldb::Status settle(leveldb::DB &db);

#endif
