#include "engine/leveldb/options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <limits>
#include <optional>

#include "base/spelling.h"

namespace spillway::engine {

namespace {

// Takes a value, or says what it would have taken.
using Take = std::function<std::optional<std::string>(LevelDbOptions& options, const std::string& value)>;

struct Named {
  const char* name;
  Take take;
};

constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::uint64_t kMostInt = std::numeric_limits<int>::max();

std::optional<bool> parse_bool(const std::string& text) {
  if (text == "true" || text == "1") return true;
  if (text == "false" || text == "0") return false;
  return std::nullopt;
}

Take flag(std::function<bool&(LevelDbOptions&)> field) {
  return [field = std::move(field)](LevelDbOptions& options, const std::string& value) -> std::optional<std::string> {
    const auto parsed = parse_bool(value);
    if (!parsed) return "true or false";
    field(options) = *parsed;
    return std::nullopt;
  };
}

// LevelDB clips what is out of bounds and says nothing (SanitizeOptions): here it is refused.
Take whole(std::function<void(LevelDbOptions&, std::uint64_t)> set, std::uint64_t low, std::uint64_t high) {
  return [set = std::move(set), low, high](LevelDbOptions& options,
                                           const std::string& value) -> std::optional<std::string> {
    auto parsed = parse_size(value);
    if (!parsed || *parsed < low || *parsed > high) {
      return "a size from " + std::to_string(low) + (high < kMost ? " to " + std::to_string(high) : " bytes");
    }
    set(options, *parsed);
    return std::nullopt;
  };
}

std::optional<std::string> take_compression(LevelDbOptions& options, const std::string& value) {
  if (value == "kNoCompression") {
    options.db.compression = leveldb::kNoCompression;
  } else if (value == "kSnappyCompression") {
    options.db.compression = leveldb::kSnappyCompression;
  } else {
    return "kNoCompression or kSnappyCompression";
  }
  return std::nullopt;
}

// Bounds of write_buffer_size, max_open_files, max_file_size and block_size are those to which LevelDB 1.23 clips
// (db/db_impl.cc, SanitizeOptions).
const std::vector<Named>& named() {
  static const std::vector<Named> all = {
      {"write_buffer_size", whole([](auto& o, auto v) { o.db.write_buffer_size = v; }, 64U << 10, 1U << 30)},
      {"max_open_files", whole([](auto& o, auto v) { o.db.max_open_files = static_cast<int>(v); }, 74, 50'000)},
      {"max_file_size", whole([](auto& o, auto v) { o.db.max_file_size = v; }, 1U << 20, 1U << 30)},
      {"block_size", whole([](auto& o, auto v) { o.db.block_size = v; }, 1U << 10, 4U << 20)},
      {"block_restart_interval",
       whole([](auto& o, auto v) { o.db.block_restart_interval = static_cast<int>(v); }, 1, kMostInt)},
      {"block_cache", whole([](auto& o, auto v) { o.block_cache.reset(leveldb::NewLRUCache(v)); }, 0, kMost)},
      {"filter_policy",
       whole([](auto& o, auto v) { o.filter_policy.reset(leveldb::NewBloomFilterPolicy(static_cast<int>(v))); }, 1,
             100)},
      {"compression", take_compression},
      {"paranoid_checks", flag([](auto& o) -> bool& { return o.db.paranoid_checks; })},
      {"reuse_logs", flag([](auto& o) -> bool& { return o.db.reuse_logs; })},
      {"sync", flag([](auto& o) -> bool& { return o.write.sync; })},
      {"verify_checksums", flag([](auto& o) -> bool& { return o.read.verify_checksums; })},
      {"fill_cache", flag([](auto& o) -> bool& { return o.read.fill_cache; })},
  };
  return all;
}

}  // namespace

std::vector<std::string> leveldb_option_names() {
  std::vector<std::string> names;
  for (const Named& option : named()) names.emplace_back(option.name);
  std::sort(names.begin(), names.end());
  return names;
}

Result<LevelDbOptions> parse_leveldb_options(const StringMap& options) {
  LevelDbOptions parsed;
  parsed.db.create_if_missing = true;
  for (const auto& [name, value] : options) {
    const auto found = std::find_if(named().begin(), named().end(),
                                    [&name = name](const Named& option) { return name == option.name; });
    if (found == named().end()) {
      const std::string near = nearest(name, leveldb_option_names());
      return Status::bad_input("engine.options." + name + ": LevelDB has no option of this name" +
                               (near.empty() ? "" : ", the nearest is '" + near + "'"));
    }
    if (const auto takes = found->take(parsed, value)) {
      return Status::bad_input("engine.options." + name + " is '" + value + "'; it takes " + *takes);
    }
  }
  parsed.db.block_cache = parsed.block_cache.get();
  parsed.db.filter_policy = parsed.filter_policy.get();
  return parsed;
}

}  // namespace spillway::engine
