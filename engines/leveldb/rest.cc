/* LevelDB's idle state. It has no call that reports whether its thread is busy: that is derived from the list of files.
 */
#include "rest.h"

#include <leveldb/write_batch.h>

#include <chrono>
#include <cstdlib>
#include <sstream>
#include <string>
#include <thread>

namespace {

/* config::kL0_CompactionTrigger and MaxBytesForLevel of LevelDB; the last level is never compacted automatically. */
constexpr int kFilesOfLevel0 = 4;
constexpr double kBytesOfLevel1 = 10 * 1048576.0;
constexpr int kLastLevel = 6;

/* Whether a level has too many or too large files, so that LevelDB compacts it automatically.
 * The property's lines: `--- level 1 ---`, and below it ` 17:123['a' @ 1 : 1 .. 'd' @ 9 : 1]` for a file of 123 bytes;
 * unprintable bytes of a key are escaped. */
bool is_compaction_due(leveldb::DB &db) {
  std::string text;
  if (!db.GetProperty("leveldb.sstables", &text)) return false;
  std::istringstream lines(text);
  int level = 0, files = 0;
  double bytes = 0, limit = kBytesOfLevel1;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("--- level ", 0) == 0) {
      level = atoi(line.c_str() + 10);
      if (level > 1) limit *= 10;
      files = 0;
      bytes = 0;
      continue;
    }
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    files += 1;
    bytes += atof(line.c_str() + colon + 1);
    if (level == 0 ? files >= kFilesOfLevel0 : level < kLastLevel && bytes >= limit) return true;
  }
  return false;
}

/* A write without rows fails if LevelDB's thread has failed; CompactRange does not report that. */
leveldb::Status background(leveldb::DB &db) {
  leveldb::WriteBatch nothing;
  return db.Write(leveldb::WriteOptions(), &nothing);
}

}  // namespace

/* Compacts a range with at most one row: before that the memtable becomes a file, which is synced, and so
 * does the previous memtable, whose log no later sync reaches; and it waits for a running compaction. */
leveldb::Status flush(leveldb::DB &db) {
  const leveldb::Slice nothing;
  db.CompactRange(&nothing, &nothing);
  return background(db);
}

leveldb::Status compact(leveldb::DB &db) {
  db.CompactRange(nullptr, nullptr);
  return background(db);
}

leveldb::Status settle(leveldb::DB &db) {
  leveldb::Status status = flush(db);
  while (status.ok() && is_compaction_due(db)) {
    while (status.ok() && is_compaction_due(db)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      status = background(db);
    }
    if (status.ok()) status = flush(db); /* what still runs may be due to seeks and not to size */
  }
  return status;
}
