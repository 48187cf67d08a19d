#include "engine/wiredtiger/options.h"

#include <wiredtiger.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "base/spelling.h"
#include "engine/wiredtiger/error_messages.h"

namespace spillway::engine {

namespace {

constexpr const char* kSync = "sync";
constexpr std::string_view kTablePrefix = "table.";

// The option names of one of WiredTiger's two functions.
struct Api {
  const char* method;  // its name for wiredtiger_config_validate
  std::span<const char* const> names;
};

// Names in WiredTiger's reference manual, 3.2 and 11.3. Those that the loaded library knows are suggested for an
// unknown name. The library itself decides which names it accepts.
constexpr std::array kConnectionNames = {"block_cache",
                                         "block_cache.enabled",
                                         "block_cache.size",
                                         "buffer_alignment",
                                         "builtin_extension_config",
                                         "cache_cursors",
                                         "cache_max_wait_ms",
                                         "cache_overhead",
                                         "cache_overflow",
                                         "cache_overflow.file_max",
                                         "cache_size",
                                         "cache_stuck_timeout_ms",
                                         "checkpoint",
                                         "checkpoint.log_size",
                                         "checkpoint.wait",
                                         "checkpoint_cleanup",
                                         "checkpoint_sync",
                                         "compatibility",
                                         "compatibility.release",
                                         "debug_mode",
                                         "direct_io",
                                         "encryption",
                                         "eviction",
                                         "eviction.threads_max",
                                         "eviction.threads_min",
                                         "eviction_checkpoint_target",
                                         "eviction_dirty_target",
                                         "eviction_dirty_trigger",
                                         "eviction_target",
                                         "eviction_trigger",
                                         "eviction_updates_target",
                                         "eviction_updates_trigger",
                                         "extensions",
                                         "file_extend",
                                         "file_manager",
                                         "file_manager.close_handle_minimum",
                                         "file_manager.close_idle_time",
                                         "file_manager.close_scan_interval",
                                         "history_store",
                                         "history_store.file_max",
                                         "io_capacity",
                                         "io_capacity.total",
                                         "log",
                                         "log.archive",
                                         "log.compressor",
                                         "log.enabled",
                                         "log.file_max",
                                         "log.os_cache_dirty_pct",
                                         "log.path",
                                         "log.prealloc",
                                         "log.prealloc_init_count",
                                         "log.recover",
                                         "log.remove",
                                         "log.zero_fill",
                                         "lsm_manager",
                                         "mmap",
                                         "mmap_all",
                                         "operation_timeout_ms",
                                         "prefetch",
                                         "session_max",
                                         "session_scratch_max",
                                         "statistics",
                                         "statistics_log",
                                         "transaction_sync",
                                         "transaction_sync.enabled",
                                         "transaction_sync.method",
                                         "verbose",
                                         "write_through"};
constexpr std::array kTableNames = {"access_pattern_hint",
                                    "allocation_size",
                                    "app_metadata",
                                    "block_allocation",
                                    "block_compressor",
                                    "cache_resident",
                                    "checksum",
                                    "collator",
                                    "dictionary",
                                    "encryption",
                                    "huffman_key",
                                    "huffman_value",
                                    "ignore_in_memory_cache_size",
                                    "internal_item_max",
                                    "internal_key_max",
                                    "internal_key_truncate",
                                    "internal_page_max",
                                    "key_gap",
                                    "leaf_item_max",
                                    "leaf_key_max",
                                    "leaf_page_max",
                                    "leaf_value_max",
                                    "log",
                                    "log.enabled",
                                    "lsm",
                                    "lsm.bloom",
                                    "lsm.chunk_max",
                                    "lsm.chunk_size",
                                    "lsm.merge_max",
                                    "lsm.merge_min",
                                    "memory_page_image_max",
                                    "memory_page_max",
                                    "os_cache_dirty_max",
                                    "os_cache_max",
                                    "prefix_compression",
                                    "prefix_compression_min",
                                    "split_pct",
                                    "type"};

constexpr Api kConnection = {"wiredtiger_open", kConnectionNames};
constexpr Api kOfTable = {"WT_SESSION.create", kTableNames};

// Fixed options: with another value there would be no database in the directory, or not the run's.
constexpr std::array kFixed = {"config_base",          "create",      "error_prefix", "exclusive",   "in_memory",
                               "key_format",           "readonly",    "salvage",      "session_max", "use_environment",
                               "use_environment_priv", "value_format"};
// A run counts, keeps and removes only files in the database's directory, so no file may be elsewhere.
constexpr std::array kFixedParts = {"log.path", "statistics_log.path"};

struct Verdict {
  bool taken = false;
  bool unknown = false;
  std::string why;
};

Verdict validate(const char* method, const std::string& config) {
  ErrorMessages errors;
  const int error = wiredtiger_config_validate(nullptr, errors.handler(), method, config.c_str());
  if (error == 0) return {.taken = true, .unknown = false, .why = ""};
  const bool unknown = errors.first().find("unknown configuration key") != std::string::npos;
  std::string why = errors.first().empty() ? wiredtiger_strerror(error) : errors.first();
  // Removes the process, the thread and the text of the error code, which do not help here.
  if (const auto at = why.rfind(": "); at != std::string::npos && why.find("key '") > at) why = why.substr(at + 2);
  return {.taken = false, .unknown = unknown, .why = why};
}

// "log.file_max", "1MB" → "log=(file_max=1MB)".
std::string config_of(const std::string& name, const std::string& value) {
  const auto dot = name.find('.');
  if (dot == std::string::npos) return name + "=" + value;
  return name.substr(0, dot) + "=(" + name.substr(dot + 1) + "=" + value + ")";
}

bool knows(const Api& api, const std::string& name) { return !validate(api.method, config_of(name, "")).unknown; }

Status refuse(const std::string& name, const std::string& value, const std::string& why) {
  return Status::bad_input("engine.options." + name + ": WiredTiger does not take '" + value + "' (" + why + ")");
}

Status unknown(const std::string& name) {
  const std::string near = nearest(name, wiredtiger_option_names());
  return Status::bad_input("engine.options." + name + ": WiredTiger " + wiredtiger_version_text() +
                           " has no option of this name" +
                           (near.empty() ? std::string() : ", the nearest is '" + near + "'"));
}

// Converts binary units as in the rest of a plan. WiredTiger parses everything else.
std::string spelt(const std::string& value) {
  if (!value.ends_with("iB")) return value;
  const auto bytes = parse_size(value);
  return bytes ? std::to_string(bytes.value()) : value;
}

// Whether it is one value: a comma outside of brackets and quotes would begin another option.
bool is_one_value(const std::string& value) {
  int depth = 0;
  bool quoted = false;
  for (const char c : value) {
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    if (depth < 0 || (depth == 0 && c == ',')) return false;
  }
  return depth == 0 && !quoted;
}

std::string without_brackets(const std::string& value) {
  const bool bracketed = value.size() >= 2 && (value.front() == '(' || value.front() == '[');
  return bracketed ? value.substr(1, value.size() - 2) : value;
}

// The options of one function as one configuration string. Of two values for one option the later one counts. So
// options given individually ("log.file_max") follow those given with their whole category ("log").
class Config {
 public:
  void add_default(const std::string& name, const std::string& value) { defaults_.emplace_back(name, value); }
  void add(const std::string& name, const std::string& value) {
    given_.emplace_back(name, value);
    std::stable_sort(given_.begin(), given_.end(),
                     [](const auto& one, const auto& other) { return is_part(one.first) < is_part(other.first); });
  }
  std::string take(const std::string& category) {
    std::string text = text_of(category);
    const auto is_of = [&](const auto& option) { return top_of(option.first) == category; };
    std::erase_if(defaults_, is_of);
    std::erase_if(given_, is_of);
    return text;
  }
  std::string text() const {
    std::vector<std::string> tops;
    for (const auto* options : {&defaults_, &given_}) {
      for (const auto& [name, value] : *options) {
        if (std::find(tops.begin(), tops.end(), top_of(name)) == tops.end()) tops.push_back(top_of(name));
      }
    }
    std::string text;
    for (const std::string& top : tops) text += (text.empty() ? "" : ",") + text_of(top);
    return text;
  }

 private:
  using Options = std::vector<std::pair<std::string, std::string>>;

  static bool is_part(const std::string& name) { return name.find('.') != std::string::npos; }
  static std::string top_of(const std::string& name) { return name.substr(0, name.find('.')); }

  std::string text_of(const std::string& top) const {
    std::string inner;
    std::string alone;
    bool has_parts = false;
    for (const auto* options : {&defaults_, &given_}) {
      for (const auto& [name, value] : *options) {
        if (top_of(name) != top) continue;
        if (is_part(name)) {
          inner += (inner.empty() ? "" : ",") + name.substr(top.size() + 1) + "=" + value;
          has_parts = true;
        } else {
          inner += (inner.empty() ? "" : ",") + without_brackets(value);
          alone = value;
        }
      }
    }
    return has_parts ? top + "=(" + inner + ")" : top + "=" + alone;
  }

  Options defaults_;
  Options given_;
};

// Reads a finished configuration with WiredTiger's own parser.
class Reader {
 public:
  explicit Reader(const std::string& text) : text_(text) {
    WT_CONFIG_PARSER* parser = nullptr;
    if (wiredtiger_config_parser_open(nullptr, text_.c_str(), text_.size(), &parser) == 0) parser_.reset(parser);
  }

  std::int64_t number(const char* name, std::int64_t fallback) const {
    WT_CONFIG_ITEM item;
    const bool found = parser_ && parser_->get(parser_.get(), name, &item) == 0;
    return found && item.type == WT_CONFIG_ITEM::WT_CONFIG_ITEM_NUM ? item.val : fallback;
  }
  std::string text(const char* name) const {
    WT_CONFIG_ITEM item;
    const bool found = parser_ && parser_->get(parser_.get(), name, &item) == 0;
    return found ? std::string(item.str, item.len) : std::string();
  }

 private:
  struct Close {
    void operator()(WT_CONFIG_PARSER* parser) const { (void)parser->close(parser); }
  };
  const std::string text_;
  std::unique_ptr<WT_CONFIG_PARSER, Close> parser_;
};

// A limit of eviction: a percentage of the cache, or bytes if it is above 100.
double share_of_cache(std::int64_t limit, double cache_bytes) {
  const auto value = static_cast<double>(limit);
  return value <= 100 ? value / 100 : value / cache_bytes;
}

class Parser {
 public:
  Parser() {
    connection_.add_default("log.enabled", "true");
    // As RocksDB and LevelDB without `sync`: a commit's log record has been passed to the operating system when it
    // returns, so a killed process loses nothing. WiredTiger's own default keeps records in its buffers.
    connection_.add_default("transaction_sync.enabled", "true");
    connection_.add_default("transaction_sync.method", "none");
    connection_.add_default("statistics", "(fast)");
    // One session for each thread of a run. Source: load/run_spec.cc allows 1024 threads; WiredTiger has threads of its
    // own.
    connection_.add_default("session_max", "1200");
    // Without checkpoints the log would grow without limit. Source: MongoDB 3.6's manual, "WiredTiger Storage Engine":
    // every 60 seconds or 2 GB of journal.
    connection_.add_default("checkpoint.wait", "60");
    connection_.add_default("checkpoint.log_size", "2GB");
  }

  Status take(const std::string& name, const std::string& given) {
    if (name == kSync) return take_sync(given);
    const bool of_table = name.starts_with(kTablePrefix);
    const std::string plain = of_table ? name.substr(kTablePrefix.size()) : name;
    if (plain.empty() || std::count(plain.begin(), plain.end(), '.') > 1) return unknown(name);
    if (std::find(kFixed.begin(), kFixed.end(), plain) != kFixed.end()) {
      return Status::bad_input("engine.options." + name + ": is set by Spillway; remove it");
    }
    const std::string value = spelt(given);
    if (!is_one_value(value)) return refuse(name, given, "one value, with its brackets closed");
    const bool of_connection = !of_table && knows(kConnection, plain);
    if (!of_connection && !knows(kOfTable, plain)) return unknown(name);
    const Verdict verdict = validate(of_connection ? kConnection.method : kOfTable.method, config_of(plain, value));
    if (!verdict.taken) return refuse(name, given, verdict.why);
    (of_connection ? connection_ : table_).add(plain, value);
    syncs_by_name_ = syncs_by_name_ || (of_connection && plain.starts_with("transaction_sync"));
    return Status::ok();
  }

  Result<WiredtigerOptions> finish() {
    if (sync_ && syncs_by_name_) {
      return Status::bad_input("engine.options.sync: says the same as transaction_sync; give one of them");
    }
    if (sync_.value_or(false)) connection_.add("transaction_sync", "(enabled=true,method=fsync)");
    WiredtigerOptions parsed;
    const Reader checkpoint(connection_.take("checkpoint"));
    parsed.checkpoint_wait_s = static_cast<std::uint64_t>(checkpoint.number("checkpoint.wait", 0));
    parsed.checkpoint_log_bytes = static_cast<std::uint64_t>(checkpoint.number("checkpoint.log_size", 0));
    const std::string extensions = connection_.take("extensions");
    parsed.extensions = without_brackets(extensions.substr(extensions.find('=') + 1));
    parsed.connection = connection_.text();
    parsed.table = table_.text();
    if (Status status = check_together(parsed); !status) return status;
    if (Status status = check_contract(parsed); !status) return status;
    read_limits(parsed);
    const Reader table(parsed.table);
    const std::string compressor = table.text("block_compressor");
    parsed.compresses = (!compressor.empty() && compressor != "none") || table.number("dictionary", 0) > 0;
    return parsed;
  }

 private:
  Status take_sync(const std::string& value) {
    if (value != "true" && value != "false") return refuse(kSync, value, "true or false");
    sync_ = value == "true";
    return Status::ok();
  }

  static Status check_together(const WiredtigerOptions& parsed) {
    if (const Verdict all = validate(kConnection.method, parsed.connection); !all.taken) {
      return Status::bad_input("engine.options: WiredTiger does not take them together (" + all.why + ")");
    }
    if (const Verdict all = validate(kOfTable.method, parsed.table); !all.taken) {
      return Status::bad_input("engine.options: WiredTiger does not take them together (" + all.why + ")");
    }
    return Status::ok();
  }

  static Status check_contract(const WiredtigerOptions& parsed) {
    const Reader connection(parsed.connection);
    for (const char* const name : kFixedParts) {
      if (connection.text(name).empty()) continue;
      return Status::bad_input(std::string("engine.options.") + name + ": is set by Spillway; remove it");
    }
    const bool syncs =
        connection.text("transaction_sync.enabled") != "false" && connection.text("transaction_sync.method") != "none";
    const bool logs = connection.text("log.enabled") != "false" && Reader(parsed.table).text("log.enabled") != "false";
    if (!syncs || logs) return Status::ok();
    return Status::bad_input(
        "engine.options.log.enabled is false: without a log no write is durable when it returns; " +
        std::string("remove it, or sync"));
  }

  // Defaults: Source: WiredTiger's reference manual for wiredtiger_open, the same in 3.2.1 and 11.3.1.
  static void read_limits(WiredtigerOptions& parsed) {
    const Reader connection(parsed.connection);
    const auto cache_bytes = static_cast<double>(connection.number("cache_size", 100LL << 20));
    parsed.eviction_share = share_of_cache(connection.number("eviction_trigger", 95), cache_bytes);
    parsed.eviction_dirty_share = share_of_cache(connection.number("eviction_dirty_trigger", 20), cache_bytes);
    const std::int64_t updates = connection.number("eviction_updates_trigger", 0);
    parsed.eviction_updates_share =
        updates == 0 ? parsed.eviction_dirty_share / 2 : share_of_cache(updates, cache_bytes);
  }

  Config connection_;
  Config table_;
  std::optional<bool> sync_;
  bool syncs_by_name_ = false;
};

}  // namespace

Result<WiredtigerOptions> parse_wiredtiger_options(const StringMap& options) {
  Parser parser;
  for (const auto& [name, value] : options) {
    if (Status status = parser.take(name, value); !status) return status;
  }
  return parser.finish();
}

std::string wiredtiger_version_text() {
  int major = 0;
  int minor = 0;
  int patch = 0;
  (void)wiredtiger_version(&major, &minor, &patch);
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
}

std::vector<std::string> wiredtiger_option_names() {
  std::vector<std::string> names = {kSync};
  for (const std::string name : kConnection.names) {
    if (knows(kConnection, name)) names.push_back(name);
  }
  for (const std::string name : kOfTable.names) {
    if (!knows(kOfTable, name)) continue;
    names.push_back(knows(kConnection, name) ? std::string(kTablePrefix) + name : name);
  }
  return names;
}

}  // namespace spillway::engine
