#include "spill/main_db/user_options.h"

#include <rocksdb/convenience.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "spill/store/binding_record.h"

namespace spillway::spill {
namespace {

constexpr const char* kL0Slowdown = "level0_slowdown_writes_trigger";
constexpr const char* kL0Stop = "level0_stop_writes_trigger";
constexpr const char* kSoftPending = "soft_pending_compaction_bytes_limit";
constexpr const char* kHardPending = "hard_pending_compaction_bytes_limit";

// Corrects the options as RocksDB 7.8 does when it opens a column family.
void correct(rocksdb::ColumnFamilyOptions& options) {
  if (options.compaction_style == rocksdb::kCompactionStyleFIFO) {
    options.level0_slowdown_writes_trigger = std::numeric_limits<int>::max();
    options.level0_stop_writes_trigger = std::numeric_limits<int>::max();
  }
  const int compaction =
      options.level0_file_num_compaction_trigger == 0 ? 1 : options.level0_file_num_compaction_trigger;
  options.level0_slowdown_writes_trigger = std::max(options.level0_slowdown_writes_trigger, compaction);
  options.level0_stop_writes_trigger =
      std::max(options.level0_stop_writes_trigger, options.level0_slowdown_writes_trigger);
  const std::uint64_t hard = options.hard_pending_compaction_bytes_limit;
  std::uint64_t& soft = options.soft_pending_compaction_bytes_limit;
  if (soft == 0 || (hard > 0 && soft > hard)) soft = hard;
}

// Removes the backslash that RocksDB puts before some characters of a name.
std::string without_escapes(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      plain += text[i];
      continue;
    }
    const char escaped = text[++i];
    plain += escaped == 'n' ? '\n' : escaped == 'r' ? '\r' : escaped;
  }
  return plain;
}

// The name of the column family in `[CFOptions "name"]`.
std::optional<std::string> family_of(std::string_view line) {
  constexpr std::string_view kBegin = "[CFOptions \"";
  constexpr std::string_view kEnd = "\"]";
  if (!line.starts_with(kBegin) || !line.ends_with(kEnd)) return std::nullopt;
  return without_escapes(line.substr(kBegin.size(), line.size() - kBegin.size() - kEnd.size()));
}

// Whether it begins a section of the guard (binding_record.h), which the user did not create.
bool is_of_guard(std::string_view line) {
  const std::size_t name = line.find('"');
  return name != std::string_view::npos && is_guard(line.substr(name + 1));
}

// Replaces the value if `line` sets the option.
void replace(std::string& line, std::string_view option, const std::string& value) {
  constexpr std::string_view kIndent = "  ";
  const std::size_t at = kIndent.size() + option.size();
  const std::string_view text = line;
  if (!text.starts_with(kIndent) || text.substr(kIndent.size(), option.size()) != option) return;
  if (text.size() > at && text[at] == '=') line.replace(at + 1, std::string::npos, value);
}

}  // namespace

SlowdownTriggers slowdown_of(const rocksdb::ColumnFamilyOptions& options) {
  rocksdb::ColumnFamilyOptions corrected = options;
  correct(corrected);
  return {corrected.level0_slowdown_writes_trigger, corrected.soft_pending_compaction_bytes_limit};
}

rocksdb::ColumnFamilyOptions without_slowdown(rocksdb::ColumnFamilyOptions options) {
  correct(options);
  options.level0_slowdown_writes_trigger = options.level0_stop_writes_trigger;
  options.soft_pending_compaction_bytes_limit = options.hard_pending_compaction_bytes_limit;
  return options;
}

void UserOptions::add(const std::string& family, const rocksdb::ColumnFamilyOptions& options) {
  const MutexLock lock(mutex_);
  slowdown_.try_emplace(family, slowdown_of(options));
}

std::optional<SlowdownTriggers> UserOptions::of(const std::string& family) const {
  const MutexLock lock(mutex_);
  const auto found = slowdown_.find(family);
  return found == slowdown_.end() ? std::nullopt : std::optional(found->second);
}

void UserOptions::set(const std::string& family, std::optional<SlowdownTriggers> triggers) {
  const MutexLock lock(mutex_);
  if (triggers) {
    slowdown_[family] = *triggers;
  } else {
    slowdown_.erase(family);
  }
}

UserOptions::Change::Change(UserOptions& options, std::string family)
    : options_(options), family_(std::move(family)), one_at_a_time_(options.changing_), before_(options.of(family_)) {}

UserOptions::Change::~Change() {
  if (!is_kept_) options_.set(family_, before_);
}

void UserOptions::Change::set(SlowdownTriggers triggers) { options_.set(family_, triggers); }

UserOptions::Settings UserOptions::Change::set(const rocksdb::ColumnFamilyOptions& now, const Settings& settings) {
  Settings triggers;
  for (const char* const name : {kL0Slowdown, kL0Stop, kSoftPending, kHardPending}) {
    if (const auto found = settings.find(name); found != settings.end()) triggers.insert(*found);
  }
  rocksdb::ColumnFamilyOptions changed;
  if (triggers.empty() ||
      !rocksdb::GetColumnFamilyOptionsFromMap(rocksdb::ConfigOptions(), now, triggers, &changed).ok()) {
    return settings;
  }
  set({changed.level0_slowdown_writes_trigger, changed.soft_pending_compaction_bytes_limit});
  Settings raised = settings;
  raised[kL0Slowdown] = std::to_string(changed.level0_stop_writes_trigger);
  raised[kSoftPending] = std::to_string(changed.hard_pending_compaction_bytes_limit);
  return raised;
}

void UserOptions::restore(rocksdb::DBOptions* options) const {
  options->env = options_.env;
  options->listeners = options_.listeners;
  options->wal_filter = options_.wal_filter;
  options->avoid_flush_during_recovery = options_.avoid_flush_during_recovery;
}

void UserOptions::restore(const std::string& family, rocksdb::ColumnFamilyOptions* options) const {
  const auto slowdown = of(family);
  if (!slowdown) return;
  options->level0_slowdown_writes_trigger = slowdown->l0_files;
  options->soft_pending_compaction_bytes_limit = slowdown->pending_bytes;
}

std::string UserOptions::restore(const std::string& text) const {
  std::string restored;
  restored.reserve(text.size());
  bool of_database = false;
  bool is_left_out = false;
  std::optional<SlowdownTriggers> slowdown;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = std::min(text.find('\n', from), text.size());
    std::string line = text.substr(from, end - from);
    if (line.starts_with('[')) {
      is_left_out = is_of_guard(line);
      of_database = line == "[DBOptions]";
      const auto family = family_of(line);
      slowdown.reset();
      if (family) slowdown = of(*family);
    } else if (of_database) {
      replace(line, "avoid_flush_during_recovery", options_.avoid_flush_during_recovery ? "true" : "false");
      if (options_.wal_filter == nullptr) replace(line, "wal_filter", "nullptr");
    } else if (slowdown) {
      replace(line, kL0Slowdown, std::to_string(slowdown->l0_files));
      replace(line, kSoftPending, std::to_string(slowdown->pending_bytes));
    }
    from = end + 1;
    if (is_left_out) continue;
    restored += line;
    if (end < text.size()) restored += '\n';
  }
  while (restored.ends_with("\n\n")) restored.pop_back();  // the empty line between the last section and the guard's
  return restored;
}

}  // namespace spillway::spill
