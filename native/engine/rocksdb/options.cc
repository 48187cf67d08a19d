#include "engine/rocksdb/options.h"

#include <rocksdb/convenience.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/rate_limiter.h>
#include <rocksdb/table.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <unordered_map>

#include "base/spelling.h"
#include "engine/rocksdb/values.h"
#include "spill/compat/cache.h"

namespace spillway::engine {

namespace {

constexpr std::string_view kTablePrefix = "block_based_table_factory.";
constexpr const char* kRateLimiter = "rate_limiter_bytes_per_sec";

// Options that RocksDB reads but does not write out, so that no list of its own names them.
constexpr std::array kUnlistedTableOptions = {"block_cache", "persistent_cache"};
constexpr std::array kUnlistedColumnFamilyOptions = {"block_based_table_factory", "plain_table_factory",
                                                     "compression_per_level"};

struct WriteFlag {
  const char* name;
  bool rocksdb::WriteOptions::*field;
};
constexpr std::array kWriteFlags = {
    WriteFlag{"sync", &rocksdb::WriteOptions::sync},
    WriteFlag{"disableWAL", &rocksdb::WriteOptions::disableWAL},
    WriteFlag{"no_slowdown", &rocksdb::WriteOptions::no_slowdown},
    WriteFlag{"low_pri", &rocksdb::WriteOptions::low_pri},
};

struct ReadFlag {
  const char* name;
  bool rocksdb::ReadOptions::*field;
};
constexpr std::array kReadFlags = {
    ReadFlag{"verify_checksums", &rocksdb::ReadOptions::verify_checksums},
    ReadFlag{"fill_cache", &rocksdb::ReadOptions::fill_cache},
    ReadFlag{"tailing", &rocksdb::ReadOptions::tailing},
    ReadFlag{"total_order_seek", &rocksdb::ReadOptions::total_order_seek},
    ReadFlag{"prefix_same_as_start", &rocksdb::ReadOptions::prefix_same_as_start},
    ReadFlag{"adaptive_readahead", &rocksdb::ReadOptions::adaptive_readahead},
    ReadFlag{"async_io", &rocksdb::ReadOptions::async_io},
};
// Fixed options: with another value there would be no database in the directory, an incomplete one, or one with another
// order of keys.
constexpr std::array kFixed = {"comparator",      "create_if_missing", "db_log_dir", "env",
                               "error_if_exists", "statistics",        "wal_dir"};

constexpr const char* kReadAhead = "readahead_size";

using Map = std::unordered_map<std::string, std::string>;

std::vector<std::string> names_in(const std::string& written) {
  Map map;
  std::vector<std::string> names;
  if (!rocksdb::StringToMap(written, &map).ok()) return names;
  for (const auto& [name, value] : map) names.push_back(name);
  return names;
}

// The names of each of RocksDB's option structures, asked of RocksDB itself.
struct Names {
  std::vector<std::string> db;
  std::vector<std::string> column_family;
  std::vector<std::string> table;

  Names() {
    const rocksdb::ConfigOptions config;
    std::string text;
    if (rocksdb::GetStringFromDBOptions(config, rocksdb::DBOptions(), &text).ok()) db = names_in(text);
    if (rocksdb::GetStringFromColumnFamilyOptions(config, rocksdb::ColumnFamilyOptions(), &text).ok()) {
      column_family = names_in(text);
    }
    column_family.insert(column_family.end(), kUnlistedColumnFamilyOptions.begin(), kUnlistedColumnFamilyOptions.end());
    const std::unique_ptr<rocksdb::TableFactory> factory(rocksdb::NewBlockBasedTableFactory());
    if (factory->GetOptionString(config, &text).ok()) table = names_in(text);
    table.insert(table.end(), kUnlistedTableOptions.begin(), kUnlistedTableOptions.end());
  }
};

template <typename List>
bool has(const List& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Status refuse(const std::string& name, const std::string& value, const std::string& why) {
  return Status::bad_input("engine.options." + name + ": RocksDB does not take '" + value + "' (" + why + ")");
}

Status unknown(const std::string& name) {
  const std::string near = nearest(name, rocksdb_option_names());
  return Status::bad_input("engine.options." + name + ": RocksDB has no option of this name" +
                           (near.empty() ? std::string() : ", the nearest is '" + near + "'"));
}

// Refuses a value that RocksDB read as something else; `set` is the options as RocksDB writes them, this one among
// them.
Status check_read(const std::string& name, const std::string& value, const std::string& set) {
  Map map;
  if (!rocksdb::StringToMap(set, &map).ok() || !map.contains(name)) return Status::ok();
  Map given;  // of an option that is a structure
  Map written;
  if (map[name].find('=') == std::string::npos || !rocksdb::StringToMap(value, &given).ok() ||
      !rocksdb::StringToMap(map[name], &written).ok()) {
    given = {{name, value}};
    written = {{name, map[name]}};
  }
  for (const auto& [part, given_value] : given) {
    if (!written.contains(part)) continue;
    if (const auto why = misread(given_value, written[part])) return refuse(name, given_value, *why);
  }
  return Status::ok();
}

std::optional<bool> parse_bool(const std::string& text) {
  if (text == "true" || text == "1") return true;
  if (text == "false" || text == "0") return false;
  return std::nullopt;
}

// Applies one option after the other, so that what is wrong can be named.
class Parser {
 public:
  Parser() { parsed_.db.create_if_missing = true; }

  Status take(const std::string& name, const std::string& value) {
    if (has(kFixed, name)) return Status::bad_input("engine.options." + name + ": is set by Spillway; remove it");
    if (const auto takes = out_of_bounds(name, value)) return refuse(name, value, *takes);
    if (const auto done = take_flag(kWriteFlags, parsed_.write, name, value)) return *done;
    if (const auto done = take_flag(kReadFlags, parsed_.read, name, value)) return *done;
    if (name == kReadAhead) return take_readahead(value);
    if (name == kRateLimiter) return take_rate_limiter(value);
    if (has(names_.db, name)) return take_db(name, value);
    if (has(names_.column_family, name)) return take_column_family(name, value);
    const std::string plain = name.starts_with(kTablePrefix) ? name.substr(kTablePrefix.size()) : name;
    if (!has(names_.table, plain)) return unknown(name);
    table_options_.emplace(plain, value);  // they wait until the table factory is known
    return Status::ok();
  }

  Result<RocksdbOptions> finish() {
    const rocksdb::ColumnFamilyOptions& tree = parsed_.column_family;
    if (tree.compaction_style == rocksdb::kCompactionStyleLevel && tree.num_levels < 2) {
      return refuse("num_levels", std::to_string(tree.num_levels), "leveled compaction has 2 levels at least");
    }
    if (parsed_.write.sync && parsed_.write.disableWAL) {
      return refuse("sync", "true", "with disableWAL = true there is no log to sync");
    }
    if (Status status = apply_table_options(); !status) return status;
    return parsed_;
  }

 private:
  template <typename Flags, typename Options>
  static std::optional<Status> take_flag(const Flags& flags, Options& options, const std::string& name,
                                         const std::string& value) {
    for (const auto& flag : flags) {
      if (name != flag.name) continue;
      const auto parsed = parse_bool(value);
      if (!parsed) return refuse(name, value, "true or false");
      options.*flag.field = *parsed;
      return Status::ok();
    }
    return std::nullopt;
  }

  Status take_readahead(const std::string& value) {
    auto bytes = parse_size(value);
    if (!bytes) return refuse(kReadAhead, value, "a number of bytes");
    parsed_.read.readahead_size = *bytes;
    return Status::ok();
  }

  // RocksDB keeps this name for compatibility and ignores it; what it meant is a limiter object.
  Status take_rate_limiter(const std::string& value) {
    auto rate = parse_size(value);
    if (!rate) return refuse(kRateLimiter, value, "a number of bytes");
    if (*rate > 0) parsed_.db.rate_limiter.reset(rocksdb::NewGenericRateLimiter(static_cast<std::int64_t>(*rate)));
    return Status::ok();
  }

  Status take_db(const std::string& name, const std::string& value) {
    rocksdb::DBOptions next;
    const rocksdb::Status status = rocksdb::GetDBOptionsFromMap(config(), parsed_.db, Map{{name, value}}, &next);
    if (!status.ok()) return refuse(name, value, status.ToString());
    std::string text;
    if (rocksdb::GetStringFromDBOptions(config(), next, &text).ok()) {
      if (Status same = check_read(name, value, text); !same) return same;
    }
    parsed_.db = next;
    return Status::ok();
  }

  Status take_column_family(const std::string& name, const std::string& value) {
    rocksdb::ColumnFamilyOptions next;
    const rocksdb::Status status =
        rocksdb::GetColumnFamilyOptionsFromMap(config(), parsed_.column_family, Map{{name, value}}, &next);
    if (!status.ok()) return refuse(name, value, status.ToString());
    std::string text;
    if (rocksdb::GetStringFromColumnFamilyOptions(config(), next, &text).ok()) {
      if (Status same = check_read(name, value, text); !same) return same;
    }
    parsed_.column_family = next;
    return Status::ok();
  }

  Status apply_table_options() {
    if (table_options_.empty()) return Status::ok();
    const auto* present = parsed_.column_family.table_factory->GetOptions<rocksdb::BlockBasedTableOptions>();
    if (present == nullptr) {
      return Status::bad_input("engine.options." + table_options_.begin()->first +
                               ": is of the block-based table, but table_factory is another one");
    }
    rocksdb::BlockBasedTableOptions table = *present;
    for (const auto& [name, value] : table_options_) {
      const rocksdb::BlockBasedTableOptions before = table;
      const rocksdb::Status status =
          rocksdb::GetBlockBasedTableOptionsFromMap(config(), before, Map{{name, value}}, &table);
      if (!status.ok()) return refuse(name, value, status.ToString());
      // An unknown policy comes back as none, without an error.
      if (name == "filter_policy" && !value.empty() && value != "nullptr" && !table.filter_policy) {
        return refuse(name, value, "no such filter; 'bloomfilter:10:false' is one of 10 bits per key");
      }
      // RocksDB does not write this one; what is not a number is a cache by its name.
      const bool is_size = name == "block_cache" && table.block_cache && value.find('=') == std::string::npos;
      if (is_size) {
        const std::string bytes = std::to_string(table.block_cache->GetCapacity());
        if (const auto why = misread(value, bytes)) return refuse(name, value, *why);
      }
      std::string text;
      const std::unique_ptr<rocksdb::TableFactory> factory(rocksdb::NewBlockBasedTableFactory(table));
      if (factory->GetOptionString(config(), &text).ok()) {
        if (Status same = check_read(name, value, text); !same) return same;
      }
    }
    parsed_.column_family.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    return Status::ok();
  }

  static rocksdb::ConfigOptions config() {
    rocksdb::ConfigOptions config;
    config.ignore_unknown_options = false;
    config.ignore_unsupported_options = false;  // objects with unregistered names
    return config;
  }

  const Names names_;
  RocksdbOptions parsed_;
  std::map<std::string, std::string> table_options_;
};

}  // namespace

Result<RocksdbOptions> parse_rocksdb_options(const std::map<std::string, std::string>& options) {
  Parser parser;
  for (const auto& [name, value] : options) {
    if (Status status = parser.take(name, value); !status) return status;
  }
  return parser.finish();
}

std::vector<std::string> rocksdb_option_names() {
  const Names names;
  std::vector<std::string> all = names.db;
  all.insert(all.end(), names.column_family.begin(), names.column_family.end());
  all.insert(all.end(), names.table.begin(), names.table.end());
  for (const WriteFlag& flag : kWriteFlags) all.emplace_back(flag.name);
  for (const ReadFlag& flag : kReadFlags) all.emplace_back(flag.name);
  all.emplace_back(kReadAhead);
  all.emplace_back(kRateLimiter);
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace spillway::engine
