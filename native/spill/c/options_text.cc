#include "spill/c/options_text.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <limits>
#include <map>
#include <vector>

#include "base/spelling.h"

namespace spillway::spill {
namespace {

using rocksdb::Status;

// Reads a value; returns whether it is one.
using ReadValue = std::function<bool(const std::string& value)>;

struct OptionKey {
  const char* takes;
  ReadValue read;
};

template <typename Number>
ReadValue read_number(Number* field, Number low, Number high) {
  return [=](const std::string& value) {
    const char* const end = value.data() + value.size();
    Number parsed{};
    const auto [stop, error] = std::from_chars(value.data(), end, parsed);
    if (error != std::errc() || stop != end || !(parsed >= low && parsed <= high)) return false;
    *field = parsed;
    return true;
  };
}

ReadValue read_size(std::uint64_t* field, std::uint64_t low) {
  return [=](const std::string& value) {
    const Result<std::uint64_t> parsed = parse_size(value);
    if (!parsed || parsed.value() < low) return false;
    *field = parsed.value();
    return true;
  };
}

ReadValue read_policy(RollbackPolicy* field) {
  return [=](const std::string& value) {
    const std::map<std::string, RollbackPolicy> policies = {{"adaptive", RollbackPolicy::adaptive},
                                                            {"eager", RollbackPolicy::eager},
                                                            {"lazy", RollbackPolicy::lazy},
                                                            {"off", RollbackPolicy::off}};
    const auto found = policies.find(value);
    if (found == policies.end()) return false;
    *field = found->second;
    return true;
  };
}

std::map<std::string, OptionKey> keys_of(SpillOptions* options) {
  constexpr int kAnyInt = std::numeric_limits<int>::max();
  constexpr std::uint32_t kMostMs = 60'000;
  DivertPolicy& divert = options->divert;
  return {
      {"path",
       {"a directory",
        [=](const std::string& value) {
          options->path = value;
          return !value.empty();
        }}},
      {"capacity", {"a size above 0", read_size(&options->capacity_bytes, 1)}},
      {"generation", {"a size above 0", read_size(&options->generation_bytes, 1)}},
      {"index", {"a size above 0", read_size(&options->index_bytes, 1)}},
      {"put_back", {"a size", read_size(&options->put_back_bytes, 0)}},
      {"rollback", {"adaptive, eager, lazy or off", read_policy(&options->rollback)}},
      {"poll_ms", {"milliseconds, 1 to 60000", read_number<std::uint32_t>(&options->poll_ms, 1, kMostMs)}},
      {"divert_l0_files", {"a number of files", read_number<int>(&divert.divert_l0_files, 0, kAnyInt)}},
      {"resume_l0_files", {"a number of files", read_number<int>(&divert.resume_l0_files, 0, kAnyInt)}},
      {"divert_pending", {"a share, 0 to 1", read_number<double>(&divert.divert_pending, 0, 1)}},
      {"resume_pending", {"a share, 0 to 1", read_number<double>(&divert.resume_pending, 0, 1)}},
  };
}

std::vector<std::string> entries_of(const std::string& text) {
  std::vector<std::string> entries;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(';', begin), text.size());
    if (end > begin) entries.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return entries;
}

Status set_one(const std::string& entry, std::map<std::string, OptionKey>& keys) {
  const std::size_t equals = entry.find('=');
  if (equals == std::string::npos) return Status::InvalidArgument(entry + " is not KEY=VALUE");
  const std::string name = entry.substr(0, equals);
  const std::string value = entry.substr(equals + 1);
  const auto found = keys.find(name);
  if (found == keys.end()) {
    std::vector<std::string> names;
    for (const auto& [one, key] : keys) names.push_back(one);
    const std::string near = nearest(name, names);
    return Status::InvalidArgument(name + " is no key, or comes twice" +
                                   (near.empty() ? "" : ": did you mean " + near + "?"));
  }
  if (!found->second.read(value)) {
    return Status::InvalidArgument(name + " is '" + value + "' and takes " + found->second.takes);
  }
  keys.erase(found);
  return {};
}

}  // namespace

Status set_from_text(const std::string& text, SpillOptions* options) {
  std::map<std::string, OptionKey> keys = keys_of(options);
  for (const std::string& entry : entries_of(text)) {
    if (Status status = set_one(entry, keys); !status.ok()) return status;
  }
  if (options->generation_bytes > options->capacity_bytes) {
    return Status::InvalidArgument("capacity is less than a generation: raise it or lower generation");
  }
  return {};
}

}  // namespace spillway::spill
