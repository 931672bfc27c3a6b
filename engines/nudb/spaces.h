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

/* Throws what `code` says, if it is an error. */
void check(const Code &code, const std::string &what);

/* What is asked for when a database is made or opened. */
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

/* All keyspaces. Their commits are made by the library's thread about once a second, or, if it is `is_durable`, by
 * who writes. */
class Spaces {
 public:
  Spaces(const std::string &path, uint32_t count, const Plan &plan, bool is_durable);
  nudb::store &store(uint32_t keyspace) { return spaces[keyspace]->store; }
  size_t count() const { return spaces.size(); }
  /* As it stands in the file, which may have been made with other options. */
  double load_factor() const;
  /* Commits what was inserted before the call; one commit serves all threads that wait for it. An error of a commit
   * comes with the next op. */
  void commit();
  void close();
  void stats(kvdyno::Stats &stats) const;

  const bool is_durable;

 private:
  std::mutex lock;                /* held during a commit */
  std::atomic<uint64_t> begun{0}; /* commits */
  uint64_t ended = 0;             /* the number of the last that ended; under the lock */
  nudb::context context;          /* outlives the stores */
  std::vector<std::unique_ptr<Space>> spaces;
};

}  // namespace kvdyno_nudb

#endif
