/* Tkrzw through its C++ classes: TreeDBM, a B+ tree on top of a hash file, and HashDBM, the hash file itself. */
#include "session.h"

#include <tkrzw_dbm_hash.h>
#include <tkrzw_dbm_tree.h>
#include <tkrzw_file_mmap.h>
#include <tkrzw_file_pos.h>

#include <algorithm>

namespace {

using tkrzw::HashDBM;
using tkrzw::TreeDBM;
using tkrzw_driver::check;
using tkrzw_driver::Commit;

constexpr uint64_t kCapabilities = KV_CAN_PREFIX | KV_MULTI_GET | KV_TRANSACTION | KV_TRANSACTION_READS | KV_MERGE_ADD |
                                   KV_MERGE_APPEND | KV_CAN_DELETE | KV_DELETE_TELLS | KV_OVERWRITE | KV_CAN_NEW |
                                   KV_CAN_TOUCH;
constexpr uint64_t kLevels = 1 << KV_NONE | 1 << KV_PROCESS | 1 << KV_POWER;

#define TKRZW_OPTIONS(buckets, alignment)                                                                             \
  {"buckets", "count", "0", buckets}, {"alignment_power", "count", alignment, "rows are aligned to 2 to this power"}, \
      {"offset_width", "count", "4", "bytes of a row's address, 3 to 6; limits the file size"},                       \
      {"free_blocks", "count", "2048", "free blocks that are remembered"},                                            \
      {"cache_buckets", "flag", "false", "keep the buckets in memory of the process (positional file only)"},         \
      {"file", "choice:map|positional", "map", "memory map, or pread and pwrite"},                                    \
      {"crc", "choice:none|8|16|32", "none", "bits of a checksum of each row, or of a tree's page"},                  \
      {"compression", "choice:none|zlib|zstd|lz4|lzma", "none", "compression of a row, or of a tree's page"}, {       \
    "update", "choice:level|in-place|appending", "level",                                                             \
        "how rows are changed in the file; level: in place at level none, as shipped, otherwise appending"            \
  }

/* The capabilities that the tree has and the hash lacks. */
struct Tree {
  using Database = TreeDBM;
  using Session = tkrzw_driver::Session<TreeDBM, true>;
  static constexpr const char *file = "data.tkt";
  static constexpr kv_option options[] = {
      {"page_size", "bytes", "8130", "page size of the tree in bytes"},
      {"branches", "count", "256", "branches of an inner node"},
      {"page_write", "flag", "false", "write a page to the file at each change instead of at eviction"},
      TKRZW_OPTIONS("buckets of the underlying hash file, more than the pages; 0 = 131101, as shipped", "10")};
  static constexpr kvdyno::Info info{"tkrzw",
                                     "Tkrzw's TreeDBM, a B+ tree in a hash file",
                                     "C++",
                                     "b+tree",
                                     kCapabilities | KV_ORDERED | KV_CAN_REVERSE,
                                     kLevels,
                                     0,
                                     options};
  static void tune(TreeDBM::TuningParameters &tuning, kvdyno::Opening &opening) {
    const uint64_t buckets = opening.number("buckets"), page_size = opening.number("page_size");
    if (page_size == 0 || page_size > 1 << 24) throw kvdyno::Failure("option page_size: expected 1 byte to 16 MiB");
    const uint64_t cache_bytes = opening.config.cache_bytes != 0 ? opening.config.cache_bytes : 10000 * page_size;
    const bool is_written = opening.flag("page_write");
    tuning.max_page_size = static_cast<int32_t>(page_size);
    tuning.max_branches = static_cast<int32_t>(std::min<uint64_t>(opening.number("branches"), INT32_MAX));
    tuning.max_cached_pages = static_cast<int32_t>(std::clamp<uint64_t>(cache_bytes / page_size, 64, INT32_MAX));
    tuning.page_update_mode = is_written ? TreeDBM::PAGE_UPDATE_WRITE : TreeDBM::PAGE_UPDATE_NONE;
    tuning.num_buckets = buckets != 0 ? static_cast<int64_t>(buckets) : TreeDBM::DEFAULT_NUM_BUCKETS;
    opening.cache_bytes(static_cast<uint64_t>(tuning.max_cached_pages) * page_size);
    opening.effective("page_write", is_written ? "true" : "false");
  }
};

struct Hash {
  using Database = HashDBM;
  using Session = tkrzw_driver::Session<HashDBM, false>;
  static constexpr const char *file = "data.tkh";
  static constexpr kv_option options[] = {
      TKRZW_OPTIONS("buckets; 0 = 1048583, as shipped, or twice the expected rows if that is more", "3")};
  static constexpr kvdyno::Info info{
      "tkrzw-hash", "Tkrzw's HashDBM, a hash file", "C++", "hash", kCapabilities, kLevels, 0, options};
  static void tune(HashDBM::TuningParameters &tuning, kvdyno::Opening &opening) {
    const uint64_t buckets = opening.number("buckets"), shipped = HashDBM::DEFAULT_NUM_BUCKETS;
    const uint64_t wanted = std::max(shipped, 2 * opening.config.expected_rows);
    tuning.num_buckets = static_cast<int64_t>(buckets != 0 ? buckets : wanted);
  }
};

template <class Kind>
class Cabinet {
 public:
  using Database = typename Kind::Database;
  static constexpr kvdyno::Info info = Kind::info;

  explicit Cabinet(kvdyno::Opening &opening);
  void close() { check(db->Close(), "close"); }
  bool maintain(uint32_t work);
  void stats(kvdyno::Stats &stats);

  class Session : public Kind::Session {
   public:
    explicit Session(Cabinet &cabinet) : Kind::Session(*cabinet.db, cabinet.commit) {}
  };

 private:
  std::unique_ptr<Database> db;
  Commit commit;
};

/* The index of an option's text among the names. */
int32_t choice(kvdyno::Opening &opening, const char *option, std::initializer_list<const char *> names) {
  const std::string text = opening.text(option);
  const auto at = std::find(names.begin(), names.end(), text);
  if (at == names.end()) throw kvdyno::Failure(std::string("option ") + option + ": unknown choice `" + text + "`");
  return static_cast<int32_t>(at - names.begin());
}

int32_t bounded(kvdyno::Opening &opening, const char *option, uint64_t least, uint64_t most) {
  const uint64_t number = opening.number(option);
  if (number >= least && number <= most) return static_cast<int32_t>(number);
  throw kvdyno::Failure(std::string("option ") + option + ": expected " + std::to_string(least) + " to " +
                        std::to_string(most));
}

template <class Kind>
Cabinet<Kind>::Cabinet(kvdyno::Opening &opening) {
  const uint32_t level = opening.level(KV_NONE);
  commit = level == KV_POWER ? Commit::kSynchronizeHard : level == KV_PROCESS ? Commit::kSynchronize : Commit::kNothing;
  typename Database::TuningParameters tuning;
  Kind::tune(tuning, opening);
  const int32_t update = choice(opening, "update", {"level", "in-place", "appending"});
  if (update == 1 && level != KV_NONE) throw kvdyno::Failure("option update: in-place can only reach level none");
  const bool is_appending = update == 2 || level != KV_NONE;
  tuning.update_mode = is_appending ? HashDBM::UPDATE_APPENDING : HashDBM::UPDATE_IN_PLACE;
  if (level != KV_NONE) tuning.restore_mode = HashDBM::RESTORE_SYNC; /* back to the last commit, with complete groups */
  tuning.record_crc_mode = static_cast<HashDBM::RecordCRCMode>(1 + choice(opening, "crc", {"none", "8", "16", "32"}));
  const int32_t compression = choice(opening, "compression", {"none", "zlib", "zstd", "lz4", "lzma"});
  tuning.record_comp_mode = static_cast<HashDBM::RecordCompressionMode>(1 + compression);
  tuning.align_pow = bounded(opening, "alignment_power", 0, 16);
  tuning.offset_width = bounded(opening, "offset_width", 3, 6);
  tuning.fbp_capacity = bounded(opening, "free_blocks", 1, INT32_MAX);
  tuning.cache_buckets = opening.flag("cache_buckets") ? 1 : 0;
  const bool is_positional = choice(opening, "file", {"map", "positional"}) == 1;
  std::unique_ptr<tkrzw::File> file;
  if (is_positional)
    file = std::make_unique<tkrzw::PositionalParallelFile>();
  else
    file = std::make_unique<tkrzw::MemoryMapParallelFile>();
  db = std::make_unique<Database>(std::move(file));
  const int32_t flags = (opening.is_new() ? 0 : tkrzw::File::OPEN_NO_CREATE) | tkrzw::File::OPEN_NO_WAIT |
                        (level == KV_POWER ? tkrzw::File::OPEN_SYNC_HARD : 0);
  const bool is_writable = (opening.config.flags & KV_READ_ONLY) == 0;
  check(db->OpenAdvanced(opening.path(Kind::file), is_writable, flags, tuning), "open");
  if (!db->IsHealthy()) throw kvdyno::Failure("open: the database was not closed and cannot be restored");
  opening.version(tkrzw::PACKAGE_VERSION);
  for (const auto &[name, value] : db->Inspect()) { /* values in the file take precedence over requested ones */
    if (name == "max_page_size") opening.effective("page_size", value);
    if (name == "max_branches") opening.effective("branches", value);
    if (name == "num_buckets" || name == "hash_num_buckets") opening.effective("buckets", value);
    if (name == "align_pow") opening.effective("alignment_power", value);
    if (name == "offset_width") opening.effective("offset_width", value);
    if (name == "update_mode") opening.effective("update", value);
    if (name == "record_crc_mode") opening.effective("crc", value);
    if (name == "record_comp_mode") opening.compression(value);
  }
  opening.effective("free_blocks", tuning.fbp_capacity);
  opening.effective("cache_buckets", tuning.cache_buckets > 0 ? "true" : "false");
  opening.effective("file", is_positional ? "positional" : "map");
  opening.effective("synchronize", level == KV_POWER ? "hard" : level == KV_PROCESS ? "true" : "false");
}

template <class Kind>
bool Cabinet<Kind>::maintain(uint32_t work) {
  if (work == KV_FLUSH) check(db->Synchronize(true), "flush");
  if (work == KV_COMPACT) check(db->Rebuild(), "compact");
  return true; /* nothing runs in the background */
}

template <class Kind>
void Cabinet<Kind>::stats(kvdyno::Stats &stats) {
  static constexpr const char *const names[][2] = {
      {"num_records", "rows"},       {"eff_data_size", "data_bytes"},
      {"num_leaf_nodes", "leaves"},  {"num_inner_nodes", "inner_nodes"},
      {"tree_level", "tree_levels"}, {"max_cached_pages", "cached_pages_max"},
      {"num_buckets", "buckets"},    {"hash_num_buckets", "buckets"},
      {"file_size", "file_bytes"},   {"auto_restored", "is_restored"}};
  const char *said = nullptr; /* the hash file below a tree repeats some */
  for (const auto &[key, value] : db->Inspect())
    for (const auto &[known, name] : names)
      if (key == known && (said == nullptr || strcmp(said, name) != 0)) stats.add(said = name, value);
}

using TkrzwTree = Cabinet<Tree>;
using TkrzwHash = Cabinet<Hash>;

}  // namespace

KVDYNO_EXPORT(TkrzwTree, TkrzwHash)
