/* Kyoto Cabinet through its C++ classes: TreeDB, a B+ tree on top of a hash file, and HashDB, the hash file itself. */
#include "session.h"

#include <algorithm>
#include <map>

namespace {

using kyotocabinet::HashDB;
using kyotocabinet::TreeDB;

constexpr uint64_t kCapabilities = KV_CAN_PREFIX | KV_MULTI_GET | KV_TRANSACTION | KV_TRANSACTION_READS | KV_MERGE_ADD |
                                   KV_MERGE_APPEND | KV_CAN_DELETE | KV_DELETE_TELLS | KV_OVERWRITE | KV_CAN_NEW |
                                   KV_SINGLE_WRITER | KV_CAN_TOUCH;
constexpr uint64_t kLevels = 1 << KV_NONE; /* its transaction log does not survive every kill -9: see README.md */

/* The capabilities that the tree has and the hash lacks. */
struct Tree {
  using Database = TreeDB;
  using Session = kyoto::Session<TreeDB, true>;
  static constexpr const char *file = "data.kct";
#define KYOTO_OPTIONS(buckets, alignment)                                                                            \
  {"buckets", "count", "0", buckets}, {"map", "bytes", "67108864", "bytes of the file that are mapped into memory"}, \
      {"alignment_power", "count", alignment, "rows are aligned to 2 to this power"},                                \
      {"free_block_power", "count", "10", "2 to this power is the number of free blocks remembered"},                \
      {"defragment", "count", "0", "frees of blocks between defragmentation steps; 0 = no defragmentation"},         \
      {"small", "flag", "false", "TSMALL: 32-bit addresses, for files of at most 16 GiB"},                           \
      {"linear", "flag", "false", "TLINEAR: rows of a bucket in a list instead of a tree"},                          \
      {"compression", "choice:none|zlib|lzo|lzma", "none", "compression of a row, or of a tree's page"},             \
      {"transaction_log", "flag", "true", "atomic groups as transactions; false: like set_bulk, without a log"},     \
      {"auto_transaction", "flag", "false", "OAUTOTRAN: each write is a transaction"}, {                             \
    "auto_sync", "flag", "false", "OAUTOSYNC: each write, or each transaction, is synced"                            \
  }
  static constexpr kv_option options[] = {
      {"page_size", "bytes", "8192", "bytes of a page of the tree"},
      KYOTO_OPTIONS("buckets of the underlying hash file, about a tenth of the pages; 0 = 65536, as shipped", "8")};
  static constexpr kvdyno::Info info{"kyotocabinet",
                                     "Kyoto Cabinet's TreeDB, a B+ tree in a hash file",
                                     "C++",
                                     "b+tree",
                                     kCapabilities | KV_ORDERED | KV_CAN_REVERSE,
                                     kLevels,
                                     0,
                                     options};
  static void tune(TreeDB &db, kvdyno::Opening &opening, uint64_t buckets) {
    const uint64_t cache_bytes = opening.config.cache_bytes != 0 ? opening.config.cache_bytes : 64 << 20;
    db.tune_page(static_cast<int32_t>(opening.number("page_size")));
    db.tune_page_cache(static_cast<int64_t>(cache_bytes));
    db.tune_buckets(static_cast<int64_t>(buckets));
    opening.cache_bytes(cache_bytes);
  }
};

struct Hash {
  using Database = HashDB;
  using Session = kyoto::Session<HashDB, false>;
  static constexpr const char *file = "data.kch";
  static constexpr kv_option options[] = {
      KYOTO_OPTIONS("buckets; 0 = 1048583, as shipped, or twice the expected rows if that is more", "3")};
  static constexpr kvdyno::Info info{
      "kyotocabinet-hash", "Kyoto Cabinet's HashDB, a hash file", "C++", "hash", kCapabilities, kLevels, 0, options};
  static void tune(HashDB &db, kvdyno::Opening &opening, uint64_t buckets) {
    const uint64_t shipped = 1048583, wanted = 2 * opening.config.expected_rows;
    db.tune_buckets(static_cast<int64_t>(buckets != 0 ? buckets : std::max(shipped, wanted)));
  }
};

template <class Kind>
class Cabinet {
 public:
  static constexpr kvdyno::Info info = Kind::info;

  explicit Cabinet(kvdyno::Opening &opening);
  void close() {
    if (!db.close()) kyoto::fail(db, "close");
  }
  bool maintain(uint32_t work);
  void stats(kvdyno::Stats &stats);

  class Session : public Kind::Session {
   public:
    explicit Session(Cabinet &cabinet) : Kind::Session(cabinet.db, cabinet.writing) {}
  };

 private:
  void tune(kvdyno::Opening &opening);

  std::unique_ptr<kyotocabinet::Compressor> compressor; /* used until the database is destroyed */
  typename Kind::Database db;
  kyoto::Writing writing;
};

/* The compressor with that name; null for none. */
std::unique_ptr<kyotocabinet::Compressor> compressor_of(const std::string &name) {
  using namespace kyotocabinet;
  if (name == "none") return nullptr;
  if (name == "zlib") return std::make_unique<ZLIBCompressor<ZLIB::RAW>>();
  if (name == "lzo") return std::make_unique<LZOCompressor<LZO::RAW>>();
  if (name == "lzma") return std::make_unique<LZMACompressor<LZMA::RAW>>();
  throw kvdyno::Failure("option compression: expected none, zlib, lzo or lzma, got `" + name + "`");
}

int8_t power(kvdyno::Opening &opening, const char *name, uint64_t most) {
  const uint64_t power = opening.number(name);
  if (power > most) throw kvdyno::Failure(std::string("option ") + name + ": at most " + std::to_string(most));
  return static_cast<int8_t>(power);
}

template <class Kind>
void Cabinet<Kind>::tune(kvdyno::Opening &opening) {
  const std::string compression = opening.text("compression");
  compressor = compressor_of(compression);
  if (compressor) db.tune_compressor(compressor.get());
  const int small = opening.flag("small") ? HashDB::TSMALL : 0, linear = opening.flag("linear") ? HashDB::TLINEAR : 0;
  db.tune_options(static_cast<int8_t>(small | linear | (compressor ? HashDB::TCOMPRESS : 0)));
  db.tune_alignment(power(opening, "alignment_power", 15));
  db.tune_fbp(power(opening, "free_block_power", 20));
  db.tune_map(static_cast<int64_t>(opening.number("map")));
  db.tune_defrag(static_cast<int64_t>(opening.number("defragment")));
  Kind::tune(db, opening, opening.number("buckets"));
  opening.compression(compression);
}

template <class Kind>
Cabinet<Kind>::Cabinet(kvdyno::Opening &opening) {
  opening.level(KV_NONE);
  writing.is_logged = opening.flag("auto_transaction");
  writing.is_synced = opening.flag("auto_sync");
  writing.has_group_log = opening.flag("transaction_log");
  tune(opening);
  uint32_t mode =
      HashDB::OTRYLOCK | (writing.is_logged ? HashDB::OAUTOTRAN : 0) | (writing.is_synced ? HashDB::OAUTOSYNC : 0);
  mode |= (opening.config.flags & KV_READ_ONLY) != 0 ? HashDB::OREADER : HashDB::OWRITER;
  if (opening.is_new()) mode |= HashDB::OCREATE;
  if (!db.open(opening.path(Kind::file), mode)) kyoto::fail(db, "open");
  std::map<std::string, std::string> found;
  db.status(&found); /* values in the file's header take precedence over requested ones */
  const auto number = [&](const char *name) { return std::strtoull(found[name].c_str(), nullptr, 10); };
  opening.version(kyotocabinet::VERSION);
  if (found.count("psiz") != 0) opening.effective("page_size", number("psiz"));
  opening.effective("buckets", number("bnum"));
  opening.effective("map", number("msiz"));
  opening.effective("alignment_power", number("apow"));
  opening.effective("free_block_power", number("fpow"));
  opening.effective("defragment", number("dfunit"));
  opening.effective("small", (number("opts") & HashDB::TSMALL) != 0 ? "true" : "false");
  opening.effective("linear", (number("opts") & HashDB::TLINEAR) != 0 ? "true" : "false");
  opening.effective("transaction_log", writing.has_group_log ? "true" : "false");
  opening.effective("auto_transaction", writing.is_logged ? "true" : "false");
  opening.effective("auto_sync", writing.is_synced ? "true" : "false");
}

template <class Kind>
bool Cabinet<Kind>::maintain(uint32_t work) {
  if (work == KV_FLUSH && !db.synchronize(true)) kyoto::fail(db, "flush");
  if (work == KV_COMPACT && !db.defrag()) kyoto::fail(db, "compact");
  return true; /* nothing runs in the background */
}

template <class Kind>
void Cabinet<Kind>::stats(kvdyno::Stats &stats) {
  static constexpr const char *const names[][2] = {{"count", "rows"},
                                                   {"pnum", "pages"},
                                                   {"lcnt", "leaves"},
                                                   {"icnt", "inner_nodes"},
                                                   {"tree_level", "tree_levels"},
                                                   {"cusage_lcnt", "cached_leaves"},
                                                   {"cusage_icnt", "cached_inner_nodes"},
                                                   {"cusage", "cached_bytes"},
                                                   {"bnum", "buckets"},
                                                   {"bnum_used", "used_buckets"},
                                                   {"fbpnum_used", "free_blocks"},
                                                   {"frgcnt", "freed_places"},
                                                   {"size", "file_bytes"},
                                                   {"realsize", "file_apparent_bytes"},
                                                   {"recovered", "is_recovered"},
                                                   {"reorganized", "is_reorganized"}};
  std::map<std::string, std::string> found;
  for (const char *wanted : {"tree_level", "cusage_lcnt", "cusage_icnt", "fbpnum_used"}) found[wanted] = "";
  if (!db.status(&found)) kyoto::fail(db, "stats");
  for (const auto &[key, name] : names) {
    const auto at = found.find(key);
    if (at != found.end() && !at->second.empty()) stats.add(name, at->second);
  }
}

using KyotoTree = Cabinet<Tree>;
using KyotoHash = Cabinet<Hash>;

}  // namespace

KVDYNO_EXPORT(KyotoTree, KyotoHash)
