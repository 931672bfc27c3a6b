/* The stores of a NuDB database, one for each keyspace, and the commits that they share. */
#ifndef KVDYNO_NUDB_SPACES_H
#define KVDYNO_NUDB_SPACES_H

#include <atomic>
#include <memory>
#include <mutex>
#include <nudb/nudb.hpp>
#include <string>
#include <vector>

#include "driver.hpp"

namespace kvdyno_nudb {

using Code = nudb::error_code;

/* Throws the error of `code`, if it is one. */
void check(const Code &code, const std::string &what);

/* The request when a database is created or opened. */
struct Plan {
  uint32_t key_size, block_size;
  float load_factor;
  uint64_t burst;
  bool is_new;
};

/* A keyspace: three files. */
struct Space {
  Space(nudb::context &context, const std::string &path, const Plan &plan);
  void create(const Plan &plan);

  const std::string data, keys, log;
  nudb::store store;
};

/* All keyspaces. The library's thread commits them about once a second, or, if it is `is_durable`, the
 * writers do. */
class Spaces {
 public:
  Spaces(const std::string &path, uint32_t count, const Plan &plan, bool is_durable);
  nudb::store &store(uint32_t keyspace) { return spaces[keyspace]->store; }
  size_t count() const { return spaces.size(); }
  /* The value in the file, which may have been created with other options. */
  double load_factor() const;
  /* Commits what was inserted before the call; one commit serves all threads that wait for it. The next op reports an
   * error of a commit. */
  void commit();
  void close();
  void stats(kvdyno::Stats &stats) const;

  const bool is_durable;

 private:
  std::mutex lock;                /* held during a commit */
  std::atomic<uint64_t> begun{0}; /* commits */
  uint64_t ended = 0;             /* the number of the last one that ended; under the lock */
  nudb::context context;          /* outlives the stores */
  std::vector<std::unique_ptr<Space>> spaces;
};

}  // namespace kvdyno_nudb

#endif
