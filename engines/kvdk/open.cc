/* Opens KVDK: its options, and the checks for what would otherwise end the process or use all memory. */
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "database.h"

namespace kvdyno_kvdk {

const kv_option options[] = {
    {"space", "bytes", "0",
     "bytes of the data file, which never grows; 0 = room for twice the expected rows or all possible inserts, at "
     "least 256 "
     "MiB"},
    {"populate", "flag", "false", "write zeros over all of a new data file (KVDK's own default is true)"},
    {"hash_bucket_num", "count", "0",
     "buckets of 128 bytes in the hash table; 0 = a power of 2 from the expected rows"},
    {"buckets_per_slot", "count", "1", "buckets under one lock, a power of 2"},
    {"block_size", "bytes", "64", "row sizes are rounded up to this many bytes; for a new database"},
    {"segment_blocks", "count", "32768",
     "blocks that a thread allocates at once, more than the largest row; for a new database"},
    {"max_access_threads", "count", "0",
     "slots for threads, including KVDK's own; 0 = enough for all, at least 64 as shipped"},
    {"clean_threads", "count", "8", "threads that free old versions"},
    {"devdax", "text", "", "a devdax device to use instead of a file; needs the option `space`"},
    {"devdax_meta", "text", "/mnt/kvdk-pmem-meta", "with devdax: the folder for everything except rows"},
    {"hash_index", "flag", "true", "a hash table in addition to the skip list"},
    {"large_recovery", "flag", "false", "recover few large collections with many threads"},
};

namespace {

/* The user's options, checked. */
struct Wanted {
  uint64_t space, buckets, buckets_per_slot, block_size, segment_blocks, threads, clean_threads;
  int populate, hash_index, large_recovery;
  std::string devdax, devdax_meta;
};

uint64_t power_of_two_from(uint64_t number) {
  uint64_t power = 1;
  while (power < number) power *= 2;
  return power;
}

uint32_t read_options(const kv_driver *driver, Kind kind, const kv_config *config, kv_opened *opened, Wanted *wanted) {
  struct {
    const char *name;
    uint64_t *number;
  } const numbers[] = {
      {"space", &wanted->space},
      {"hash_bucket_num", &wanted->buckets},
      {"buckets_per_slot", &wanted->buckets_per_slot},
      {"block_size", &wanted->block_size},
      {"segment_blocks", &wanted->segment_blocks},
      {"max_access_threads", &wanted->threads},
      {"clean_threads", &wanted->clean_threads},
  };
  uint32_t status = KV_OK;
  for (const auto &option : numbers)
    if (status == KV_OK) status = kv_setting_number(driver, config, option.name, option.number, opened);
  if (status == KV_OK) status = kv_setting_flag(driver, config, "populate", &wanted->populate, opened);
  if (status == KV_OK && kind == sorted)
    status = kv_setting_flag(driver, config, "hash_index", &wanted->hash_index, opened);
  if (status == KV_OK && kind == sorted)
    status = kv_setting_flag(driver, config, "large_recovery", &wanted->large_recovery, opened);
  wanted->devdax = kv_setting_text(driver, config, "devdax");
  wanted->devdax_meta = kv_setting_text(driver, config, "devdax_meta");
  return status;
}

uint32_t refuse_option(kv_opened *opened, const char *name, const char *expected, uint64_t got) {
  return kv_fail_open(opened, KV_ERROR, "option %s: expected %s, got %llu", name, expected,
                      static_cast<unsigned long long>(got));
}

/* Sets the options that the user left open, and refuses values that KVDK would refuse with a vaguer error or crash on.
 */
uint32_t settle_numbers(const kv_config *config, kv_opened *opened, Wanted *wanted) {
  const auto is_power = [](uint64_t number) { return number != 0 && (number & (number - 1)) == 0; };
  if (wanted->clean_threads == 0 || wanted->clean_threads > 1024)
    return refuse_option(opened, "clean_threads", "1 to 1024", wanted->clean_threads);
  const uint64_t live = config->threads + wanted->clean_threads + 4; /* the opening thread, and KVDK's other three */
  if (wanted->threads == 0) wanted->threads = std::max<uint64_t>(64, live);
  if (wanted->threads < live || wanted->threads > 16384)
    return kv_fail_open(
        opened, KV_ERROR,
        "option max_access_threads: expected %llu to 16384, got %llu; two threads in one slot can deadlock, "
        "one in a transaction and one in a write",
        static_cast<unsigned long long>(live), static_cast<unsigned long long>(wanted->threads));
  if (!is_power(wanted->block_size) || wanted->block_size < 64 || wanted->block_size > 65536)
    return refuse_option(opened, "block_size", "a power of 2 from 64 to 65536", wanted->block_size);
  if (wanted->segment_blocks < 64 || wanted->segment_blocks > (1u << 30) / wanted->block_size)
    return refuse_option(opened, "segment_blocks", "64 blocks to 1 GiB", wanted->segment_blocks);
  if (wanted->buckets == 0)
    wanted->buckets =
        config->expected_rows == 0
            ? 1 << 20
            : power_of_two_from(std::min<uint64_t>(std::max<uint64_t>(config->expected_rows, 1 << 16), 1 << 27));
  if (!is_power(wanted->buckets) || wanted->buckets > 1ull << 31)
    return refuse_option(opened, "hash_bucket_num", "a power of 2 below 2^32", wanted->buckets);
  if (!is_power(wanted->buckets_per_slot) || wanted->buckets_per_slot > wanted->buckets)
    return refuse_option(opened, "buckets_per_slot", "a power of 2, at most hash_bucket_num", wanted->buckets_per_slot);
  return KV_OK;
}

/* The size of the data file: complete segments, enough for every thread's. */
uint32_t settle_space(const kv_config *config, kv_opened *opened, Wanted *wanted) {
  const uint64_t segment = wanted->block_size * wanted->segment_blocks;
  const uint64_t least = segment * wanted->threads;
  if (wanted->space == 0 && !wanted->devdax.empty())
    return kv_fail_open(opened, KV_ERROR, "option space: required with a devdax device");
  if (wanted->space != 0) {
    if (wanted->space % segment != 0 || wanted->space < least)
      return kv_fail_open(
          opened, KV_ERROR,
          "option space: expected a multiple of the segment size (%llu bytes), at least one segment for each of %llu "
          "threads, got %llu",
          static_cast<unsigned long long>(segment), static_cast<unsigned long long>(wanted->threads),
          static_cast<unsigned long long>(wanted->space));
    return KV_OK;
  }
  const uint64_t row = (config->key_size_max + uint64_t{config->value_size_max} + 96) / wanted->block_size + 1;
  /* Timed phases may insert: the core's limit allows eight times the bytes of all rows that it considers possible. */
  const uint64_t possible =
      config->disk_limit_bytes / 8 / (config->key_size_max + uint64_t{config->value_size_max} + 1);
  const uint64_t rows = std::min<uint64_t>(std::max<uint64_t>(2 * config->expected_rows, possible), 1ull << 40);
  uint64_t space = std::max<uint64_t>(rows * row * wanted->block_size, 256 << 20) + least;
  if (config->disk_limit_bytes != 0) space = std::min(space, config->disk_limit_bytes);
  wanted->space = std::max(space / segment, wanted->threads) * segment;
  return KV_OK;
}

/* KVDK's code is compiled with AVX-512 and writes through CLWB or CLFLUSHOPT; without them a signal kills it. */
uint32_t check_processor(kv_opened *opened) {
  std::string missing;
  if (!__builtin_cpu_supports("avx512f")) missing += " AVX512F";
  uint32_t a = 0, b = 0, c = 0, d = 0;
  __asm__ volatile("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(7), "c"(0));
  if ((b & (1u << 23)) == 0) missing += " CLFLUSHOPT";
  if ((b & (1u << 24)) == 0) missing += " CLWB";
  if (missing.empty()) return KV_OK;
  return kv_fail_open(opened, KV_UNSUPPORTED, "KVDK needs instructions that this processor lacks:%s", missing.c_str());
}

/* The bytes that Linux considers available to a program; 0: unknown. */
uint64_t available_bytes() {
  unsigned long long kibibytes = 0;
  char line[128];
  FILE *file = fopen("/proc/meminfo", "re");
  if (file == nullptr) return 0;
  while (fgets(line, sizeof(line), file) != nullptr)
    if (sscanf(line, "MemAvailable: %llu kB", &kibibytes) == 1) break;
  fclose(file);
  return kibibytes * 1024;
}

/* Buckets, their locks, and a byte for each block. */
uint32_t check_memory(kv_opened *opened, const Wanted &wanted) {
  const uint64_t needed = wanted.buckets * 128 + wanted.buckets / wanted.buckets_per_slot * 16 +
                          wanted.space / wanted.block_size + (16 << 20);
  const uint64_t available = available_bytes();
  if (available == 0 || needed < available) return KV_OK;
  return kv_fail_open(
      opened, KV_ERROR,
      "its hash table of %llu buckets and its map of blocks need %llu MiB of memory, %llu MiB are available: "
      "reduce hash_bucket_num or space",
      static_cast<unsigned long long>(wanted.buckets), static_cast<unsigned long long>(needed >> 20),
      static_cast<unsigned long long>(available >> 20));
}

/* KVDK removes a folder of its logs with `rm -rf` in a shell, so the shell must not change the path. */
uint32_t check_path(kv_opened *opened, const std::string &path) {
  static const char fine[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._+,@=-";
  if (path.find_first_not_of(fine) == std::string::npos) return KV_OK;
  return kv_fail_open(opened, KV_ERROR,
                      "KVDK passes this path to a shell; use a path with only letters, digits and /._+,@=-");
}

/* KVDK's files must exist: without them KVDK creates a new database, or reads past the end of its data. */
uint32_t check_files(kv_opened *opened, const std::string &folder, bool is_new, Wanted *wanted) {
  struct stat data, configs;
  uint64_t kept[3] = {0, 0, 0}; /* KVDK's ImmutableConfigs: validity, block size, blocks per segment */
  const bool has_data = stat((folder + "/data").c_str(), &data) == 0;
  if (is_new)
    return has_data ? kv_fail_open(opened, KV_ERROR, "%s already has a file `data`", folder.c_str()) : uint32_t{KV_OK};
  if (!has_data || stat((folder + "/configs").c_str(), &configs) != 0)
    return kv_fail_open(opened, KV_ERROR, "there is no KVDK database in %s", folder.c_str());
  FILE *file = fopen((folder + "/configs").c_str(), "re");
  const bool is_read = file != nullptr && fread(kept, sizeof(kept), 1, file) == 1;
  if (file != nullptr) fclose(file);
  const uint64_t block = kept[1] & UINT32_MAX, segment = block * kept[2];
  if (!is_read || kept[0] != 1 || configs.st_size != 2 << 20 || block < 32 || segment == 0 || data.st_size == 0 ||
      static_cast<uint64_t>(data.st_size) % segment != 0)
    return kv_fail_open(opened, KV_ERROR, "the files in %s are not a KVDK database", folder.c_str());
  wanted->block_size = block;
  wanted->segment_blocks = kept[2];
  wanted->space = data.st_size;
  if (wanted->space / segment < wanted->threads)
    return kv_fail_open(opened, KV_ERROR, "the data file has %llu segments, too few for %llu threads",
                        static_cast<unsigned long long>(wanted->space / segment),
                        static_cast<unsigned long long>(wanted->threads));
  return KV_OK;
}

/* The output of KVDK's log: one file in memory for the whole process, because KVDK has one log. */
FILE *log_file() {
  static FILE *const file = [] {
    const int descriptor = memfd_create("kvdk-log", MFD_CLOEXEC);
    return descriptor < 0 ? nullptr : fdopen(descriptor, "w+");
  }();
  return file;
}

/* The first error in the log after `from`, without its time. */
std::string first_error(long from) {
  char line[512] = "";
  FILE *file = log_file();
  if (file == nullptr || fseek(file, from, SEEK_SET) != 0 || fgets(line, sizeof(line), file) == nullptr) return "";
  std::string text = line;
  const size_t at = text.find(" ms: ");
  if (at != std::string::npos) text.erase(0, at + 5);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

kvdk::Configs configs_of(const Wanted &wanted) {
  kvdk::Configs configs;
  configs.max_access_threads = wanted.threads;
  configs.pmem_file_size = wanted.space;
  configs.populate_pmem_space = wanted.populate != 0;
  configs.pmem_block_size = static_cast<uint32_t>(wanted.block_size);
  configs.pmem_segment_blocks = wanted.segment_blocks;
  configs.hash_bucket_num = wanted.buckets;
  configs.num_buckets_per_slot = static_cast<uint32_t>(wanted.buckets_per_slot);
  configs.use_devdax_mode = !wanted.devdax.empty();
  configs.devdax_meta_dir = wanted.devdax_meta;
  configs.log_level = kvdk::LogLevel::Error;
  configs.opt_large_sorted_collection_recovery = wanted.large_recovery != 0;
  configs.clean_threads = wanted.clean_threads;
  return configs;
}

void report(kv_opened *opened, Kind kind, const Wanted &wanted) {
  const auto number = [&](const char *name, uint64_t value) {
    kv_opened_setting(opened, name, "%llu", static_cast<unsigned long long>(value));
  };
  const auto flag = [&](const char *name, int value) {
    kv_opened_setting(opened, name, "%s", value ? "true" : "false");
  };
  snprintf(opened->version, sizeof(opened->version),
           "1.0+"); /* KVDK reports no version; older headers do not compile */
  snprintf(opened->compression, sizeof(opened->compression), "none");
  number("space", wanted.space);
  flag("populate", wanted.populate);
  number("hash_bucket_num", wanted.buckets);
  number("buckets_per_slot", wanted.buckets_per_slot);
  number("block_size", wanted.block_size);
  number("segment_blocks", wanted.segment_blocks);
  number("max_access_threads", wanted.threads);
  number("clean_threads", wanted.clean_threads);
  kv_opened_setting(opened, "devdax", "%s", wanted.devdax.c_str());
  kv_opened_setting(opened, "devdax_meta", "%s", wanted.devdax_meta.c_str());
  if (kind == sorted) flag("hash_index", wanted.hash_index);
  if (kind == sorted) flag("large_recovery", wanted.large_recovery);
  const char *forced = getenv("PMEM_IS_PMEM_FORCE");
  kv_opened_setting(opened, "PMEM_IS_PMEM_FORCE", "%s", forced != nullptr ? forced : "unset");
}

/* Opens the library's database and the collections of its keyspaces. */
uint32_t open_engine(Kind kind, const kv_config *config, kv_opened *opened, const Wanted &wanted, kv_database *made) {
  kvdk::Engine *engine = nullptr;
  const std::string path = wanted.devdax.empty() ? config->path : wanted.devdax;
  const long logged = log_file() != nullptr && fseek(log_file(), 0, SEEK_END) == 0 ? ftell(log_file()) : 0;
  Status said = kvdk::Engine::Open(path, &engine, configs_of(wanted), log_file());
  if (said != Status::Ok) {
    const std::string text = first_error(logged);
    const bool is_full = text.find("No space left") != std::string::npos;
    const bool is_no_pmem = text.find("pmem path") != std::string::npos;
    return kv_fail_open(opened, is_full ? KV_FULL : KV_ERROR, "open: KVDK returned %s: %s%s", name_of(said),
                        text.c_str(),
                        is_no_pmem ? "; set PMEM_IS_PMEM_FORCE=1 in the environment to accept any file" : "");
  }
  made->engine.reset(engine);
  made->row_bytes_max = wanted.block_size * wanted.segment_blocks - 256; /* less the header of a row */
  made->sorted.index_with_hashtable = wanted.hash_index;
  if (kind == strings) return KV_OK;
  for (uint32_t space = 0; space < config->keyspaces; space++) {
    made->collections.push_back("keyspace " + std::to_string(space));
    said = make_collection(*made, kind, made->collections.back());
    if (said != Status::Ok)
      return kv_fail_open(opened, KV_ERROR, "collection `%s`: KVDK returned %s; was it created by another KVDK driver?",
                          made->collections.back().c_str(), name_of(said));
  }
  return KV_OK;
}

}  // namespace

Status make_collection(kv_database &database, Kind kind, StringView name) {
  const Status said =
      kind == hashes ? database.engine->HashCreate(name) : database.engine->SortedCreate(name, database.sorted);
  return said == Status::Existed ? Status::Ok : said;
}

uint32_t open_database(const kv_driver *driver, Kind kind, const kv_config *config, kv_opened *opened,
                       kv_database **database) {
  const auto run = [&]() -> uint32_t {
    Wanted wanted = {};
    std::unique_ptr<kv_database> made(new kv_database);
    const bool is_new = (config->flags & KV_CREATE) != 0;
    uint32_t status = kv_open_begin(driver, config, opened);
    if (status == KV_OK) status = kv_pick_level(driver, config, KV_PROCESS, opened);
    if (status == KV_OK) status = read_options(driver, kind, config, opened, &wanted);
    if (status == KV_OK) status = settle_numbers(config, opened, &wanted);
    if (status == KV_OK) status = settle_space(config, opened, &wanted);
    if (status == KV_OK) status = check_path(opened, wanted.devdax.empty() ? config->path : wanted.devdax_meta);
    if (status == KV_OK && wanted.devdax.empty()) status = check_files(opened, config->path, is_new, &wanted);
    if (status == KV_OK) status = check_processor(opened);
    if (status == KV_OK) status = check_memory(opened, wanted);
    if (status != KV_OK) return status;
    /* libpmem reads this before its first map, and otherwise accepts only real persistent memory. */
    if (wanted.devdax.empty()) setenv("PMEM_IS_PMEM_FORCE", "1", 0);
    status = open_engine(kind, config, opened, wanted, made.get());
    if (status != KV_OK) return status;
    report(opened, kind, wanted);
    *database = made.release();
    return KV_OK;
  };
  return guarded(run, [&](const char *text) { return kv_fail_open(opened, KV_ERROR, "open: %s", text); });
}

}  // namespace kvdyno_kvdk
