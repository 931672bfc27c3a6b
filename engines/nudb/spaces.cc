/* The stores of a NuDB database: created, opened, committed and closed. */
#include "spaces.h"

#include <sys/stat.h>

namespace kvdyno_nudb {

namespace {

/* The salt of the hash: a constant, so that the same keys produce the same files. */
constexpr uint64_t salt = 42;
constexpr uint64_t application = 1;

uint64_t file_bytes(const std::string &path) {
  struct stat found;
  return stat(path.c_str(), &found) == 0 ? static_cast<uint64_t>(found.st_size) : 0;
}

}  // namespace

void check(const Code &code, const std::string &what) {
  if (!code) return;
  const bool is_full = code == boost::system::errc::no_space_on_device;
  throw kvdyno::Failure(is_full ? KV_FULL : KV_ERROR, what + ": " + code.message());
}

Space::Space(nudb::context &context, const std::string &path, const Plan &plan)
    : data(path + ".dat"), keys(path + ".key"), log(path + ".log"), store(context) {
  Code code;
  if (plan.is_new) create(plan);
  store.open(data, keys, log, code);
  check(code, "open " + data);
  store.set_burst(plan.burst);
  if (store.key_size() != plan.key_size)
    throw kvdyno::Failure("open: the database has keys of " + std::to_string(store.key_size()) + " bytes, " +
                          std::to_string(plan.key_size) + " were requested");
}

void Space::create(const Plan &plan) {
  Code code;
  nudb::create<nudb::xxhasher>(data, keys, log, application, salt, plan.key_size, plan.block_size, plan.load_factor,
                               code);
  check(code, "create " + data);
}

Spaces::Spaces(const std::string &path, uint32_t count, const Plan &plan, bool is_durable) : is_durable(is_durable) {
  if (!is_durable) context.start();
  for (uint32_t number = 0; number < count; number++)
    spaces.push_back(std::make_unique<Space>(context, path + "-" + std::to_string(number), plan));
}

double Spaces::load_factor() const {
  Code code;
  nudb::native_file file;
  nudb::detail::key_file_header header;
  file.open(nudb::file_mode::read, spaces[0]->keys, code);
  if (!code) nudb::detail::read(file, header, code);
  check(code, "open " + spaces[0]->keys);
  return static_cast<double>(header.load_factor) / 65536;
}

void Spaces::commit() {
  const uint64_t enough = begun.load() + 1; /* the first commit that begins after this moment */
  const std::lock_guard<std::mutex> guard(lock);
  if (ended >= enough) return;
  const uint64_t number = begun.fetch_add(1) + 1;
  if (!is_durable) context.stop_all(); /* flush does nothing while the thread runs */
  context.flush();
  if (!is_durable) context.start();
  ended = number;
}

void Spaces::close() {
  for (auto &space : spaces) {
    Code code;
    space->store.close(code);
    check(code, "close");
  }
}

void Spaces::stats(kvdyno::Stats &stats) const {
  uint64_t data_bytes = 0, key_bytes = 0, buckets = 0;
  for (const auto &space : spaces) {
    const uint64_t bytes = file_bytes(space->keys);
    data_bytes += file_bytes(space->data);
    key_bytes += bytes;
    buckets += bytes / space->store.block_size() - 1; /* the first block is the header's */
  }
  stats.add("data_file_bytes", data_bytes);
  stats.add("key_file_bytes", key_bytes);
  stats.add("buckets", buckets);
  stats.add("commits_asked_for", begun.load());
}

}  // namespace kvdyno_nudb
