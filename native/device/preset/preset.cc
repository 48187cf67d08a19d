#include "device/preset/preset.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/spelling.h"
#include "device/preset/drive_keys.h"

namespace spillway::device {
namespace {

namespace filesystem = std::filesystem;

// Accepted as input in addition to the config's own keys, and converted to a spare factor.
constexpr std::string_view kOverProvisioning = "capacity.over_provisioning";
constexpr std::string_view kSpareFactor = "capacity.spare_factor";
constexpr std::string_view kCapacityBytes = "capacity.capacity_bytes";
constexpr std::string_view kBlocksPerPlane = "capacity.blocks_per_plane";
constexpr std::string_view kHostStack = "host.stack";
constexpr std::string_view kNoHostStack = "none";
constexpr std::string_view kOverrides = "--set";

std::string suggestion(const std::string& near) { return near.empty() ? "" : "; did you mean " + near + "?"; }

// A value in its original spelling, for messages.
std::string shown(const toml::node& value) {
  std::ostringstream out;
  value.visit([&out](const auto& v) { out << v; });
  return out.str();
}

// ---------------------------------------------------------------------------------------------------------------
// Stores one value in one slot. Each function returns "", or what the key takes if the value is not of that kind.

std::string store_whole(const toml::node& value, std::int64_t max, std::int64_t& out) {
  const auto number = value.value_exact<std::int64_t>();
  if (!number || *number < 0 || *number > max) return "a whole number from 0 to " + std::to_string(max);
  out = *number;
  return "";
}

std::string store_size(const toml::node& value, std::int64_t max, std::int64_t& out) {
  const std::string expected = "a number of bytes or a size with its unit, like 4096 or \"8GiB\"";
  if (!value.is_string()) return store_whole(value, max, out).empty() ? "" : expected;
  const auto size = parse_size(*value.value_exact<std::string>());
  if (!size || size.value() > static_cast<std::uint64_t>(max)) return expected;
  out = static_cast<std::int64_t>(size.value());
  return "";
}

std::string store(const toml::node& value, const DriveKey& key, std::uint32_t* slot) {
  constexpr std::int64_t max = std::numeric_limits<std::uint32_t>::max();
  std::int64_t number = 0;
  const bool is_size = key.key.ends_with("_bytes");
  const std::string expected = is_size ? store_size(value, max, number) : store_whole(value, max, number);
  if (expected.empty()) *slot = static_cast<std::uint32_t>(number);
  return expected;
}

std::string store(const toml::node& value, const DriveKey& /*key*/, SizeSlot slot) {
  std::int64_t number = 0;
  const std::string expected = store_size(value, std::numeric_limits<std::int64_t>::max(), number);
  if (expected.empty()) *slot.bytes = static_cast<std::uint64_t>(number);
  return expected;
}

std::string store(const toml::node& value, const DriveKey& /*key*/, std::int64_t* slot) {
  return store_whole(value, std::numeric_limits<std::int64_t>::max(), *slot);
}

std::string store(const toml::node& value, const DriveKey& /*key*/, double* slot) {
  const auto number = value.is_number() ? value.value<double>() : std::nullopt;
  if (!number || !std::isfinite(*number)) return "a number";
  *slot = *number;
  return "";
}

std::string store(const toml::node& value, const DriveKey& /*key*/, bool* slot) {
  const auto flag = value.value_exact<bool>();
  if (!flag) return "true or false";
  *slot = *flag;
  return "";
}

std::string store(const toml::node& value, const DriveKey& /*key*/, std::vector<std::int64_t>* slot) {
  const std::string expected = "nanoseconds, or one entry per page type like [40000, 60000, 90000]";
  constexpr std::int64_t max = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> entries(1);
  if (const auto* const list = value.as_array()) {
    if (list->empty()) return expected;
    entries.resize(list->size());
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (!store_whole((*list)[i], max, entries[i]).empty()) return expected;
    }
  } else if (!store_whole(value, max, entries[0]).empty()) {
    return expected;
  }
  *slot = std::move(entries);
  return "";
}

std::string store(const toml::node& value, const DriveKey& /*key*/, PolicySlot slot) {
  const std::string expected = R"("greedy", "fifo", "d-choices:D" with D at least 1, or "cost-benefit")";
  constexpr std::string_view choices_prefix = "d-choices:";
  const std::string text = value.value_exact<std::string>().value_or("");
  if (text == "greedy") {
    slot.gc->policy = ssd::GcPolicy::greedy;
  } else if (text == "fifo") {
    slot.gc->policy = ssd::GcPolicy::fifo;
  } else if (text == "cost-benefit") {
    slot.gc->policy = ssd::GcPolicy::cost_benefit;
  } else if (text.starts_with(choices_prefix)) {
    std::uint32_t choices = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data() + choices_prefix.size(), end, choices);
    if (error != std::errc() || rest != end || choices == 0) return expected;
    slot.gc->policy = ssd::GcPolicy::d_choices;
    slot.gc->choices = choices;
  } else {
    return expected;
  }
  return "";
}

std::string store(const toml::node& value, const DriveKey& /*key*/, SchemeSlot slot) {
  const std::string text = value.value_exact<std::string>().value_or("");
  for (const auto scheme : {ssd::MappingScheme::page, ssd::MappingScheme::block, ssd::MappingScheme::hybrid}) {
    if (text != spelling(scheme)) continue;
    *slot.scheme = scheme;
    return "";
  }
  return R"("page", "block" or "hybrid")";
}

// ---------------------------------------------------------------------------------------------------------------
// Reads one document (the preset file, or all overrides together) into a config.

class Document {
 public:
  // `where` begins every message: the file's path, or "--set".
  Document(std::string where, Drive& drive) : where_(std::move(where)), keys_(drive_keys(drive.config)), drive_(drive) {
    for (DriveKey& key : layer_keys(drive)) keys_.push_back(std::move(key));
  }

  Status take(const std::string& key, const toml::node& value) {
    if (key == kOverProvisioning || key == kSpareFactor) {
      if (spare_given_) {
        return refuse(std::string(kOverProvisioning) +
                      " and spare_factor are two names for one thing; give one of them");
      }
      spare_given_ = true;
    }
    if (key == kOverProvisioning) return take_over_provisioning(value);
    if (key == kHostStack) return take_host_stack(value);

    const auto known = std::find_if(keys_.begin(), keys_.end(), [&key](const DriveKey& k) { return k.key == key; });
    if (known == keys_.end()) return refuse("unknown key " + key + suggestion(nearest(key, names())));
    const std::string expected = std::visit([&](auto slot) { return store(value, *known, slot); }, known->slot);
    if (!expected.empty()) return refuse(key + " is " + shown(value) + "; it takes " + expected);
    return {};
  }

  Status take_table(const std::string& prefix, const toml::table& table) {
    for (const auto& [name, value] : table) {
      const std::string key = prefix + "." + std::string(name.str());
      const auto* const inner = prefix == "host_stack" ? value.as_table() : nullptr;
      Status status = inner != nullptr ? take_table(key, *inner) : take(key, value);
      if (!status) return status;
    }
    return {};
  }

  // Every name that a preset may use, including input spellings.
  std::vector<std::string> names() const {
    std::vector<std::string> result{std::string(kOverProvisioning), std::string(kHostStack)};
    for (const auto& key : keys_) result.push_back(key.key);
    return result;
  }

  bool knows(const std::string& key) const {
    const auto all = names();
    return std::find(all.begin(), all.end(), key) != all.end();
  }

  Status refuse(const std::string& sentence) const { return Status::bad_input(where_ + ": " + sentence); }

 private:
  Status take_over_provisioning(const toml::node& value) {
    double over = 0;
    if (!store(value, DriveKey{}, &over).empty() || over < 0) {
      return refuse(std::string(kOverProvisioning) + " is " + shown(value) + "; it takes a number of 0 or more");
    }
    drive_.config.capacity.spare_factor = over / (1 + over);
    return {};
  }

  Status take_host_stack(const toml::node& value) {
    const std::string name = value.value_exact<std::string>().value_or("");
    if (name == kNoHostStack || drive_.host_stacks.contains(name)) {
      drive_.host_stack = name == kNoHostStack ? "" : name;
      return {};
    }
    std::string known(kNoHostStack);
    std::vector<std::string> names = {known};
    for (const auto& [other, stack] : drive_.host_stacks) {
      known += ", " + other;
      names.push_back(other);
    }
    return refuse(std::string(kHostStack) + " is " + shown(value) + "; this drive takes " + known +
                  suggestion(nearest(name, names)));
  }

  std::string where_;
  std::vector<DriveKey> keys_;
  Drive& drive_;
  bool spare_given_ = false;
};

// "[sources] timing.read_ns = …" and "[sources] \"timing.read_ns\" = …" are equivalent.
Status take_sources(const Document& document, const std::string& prefix, const toml::table& table, Drive& drive) {
  for (const auto& [name, value] : table) {
    const std::string key = prefix.empty() ? std::string(name.str()) : prefix + "." + std::string(name.str());
    if (const auto* const inner = value.as_table()) {
      if (Status status = take_sources(document, key, *inner, drive); !status) return status;
      continue;
    }
    if (!value.is_string()) return document.refuse("sources." + key + " is " + shown(value) + "; it takes a text");
    if (!document.knows(key)) {
      return document.refuse("unknown key sources." + key + suggestion(nearest(key, document.names())));
    }
    drive.sources[key] = *value.value_exact<std::string>();
  }
  return {};
}

Status take_preset(const std::string& path, const toml::table& root, Drive& drive) {
  static const std::vector<std::string> all = {"name",          "summary",   "sources", "published",      "geometry",
                                               "capacity",      "timing",    "mapping", "compression",    "write_cache",
                                               "mapping_cache", "slc_cache", "gc",      "wear_levelling", "namespaces",
                                               "cap",           "disk",      "host",    "host_stack"};
  // The preset names its host stacks, so they are created before their keys are read.
  if (const auto* const stacks = root["host_stack"].as_table()) {
    for (const auto& [name, stack] : *stacks) drive.host_stacks[std::string(name.str())];
  }
  Document document(path, drive);
  for (const auto& [name, value] : root) {
    const std::string key(name.str());
    if (key == "name" || key == "summary") {
      const auto text = value.value_exact<std::string>();
      if (!text) return document.refuse(key + " is " + shown(value) + "; it takes a text");
      (key == "name" ? drive.config.name : drive.summary) = *text;
      continue;
    }
    if (std::find(all.begin(), all.end(), key) == all.end()) {
      return document.refuse("unknown key " + key + suggestion(nearest(key, all)));
    }
    const auto* const table = value.as_table();
    if (table == nullptr) return document.refuse(key + " is " + shown(value) + "; it takes a table: [" + key + "]");
    if (key == "published") continue;  // measured figures of the drive, for comparisons
    Status status = key == "sources" ? take_sources(document, "", *table, drive) : document.take_table(key, *table);
    if (!status) return status;
  }
  return {};
}

Result<toml::table> parse(const std::string& where, const std::string& text) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    return Status::bad_input(where + ": not TOML at line " + std::to_string(error.source().begin.line) + ": " +
                             std::string(error.description()));
  }
}

Status read_preset(const std::string& path, Drive& drive) {
  std::error_code error;
  if (filesystem::is_directory(path, error))
    return Status::bad_input(path + ": is a directory; name a preset file in it");
  std::ifstream file(path, std::ios::binary);
  if (!file) return Status::bad_input(path + ": cannot be read (" + std::strerror(errno) + "); name a preset file");
  std::ostringstream text;
  text << file.rdbuf();
  auto root = parse(path, text.str());
  if (!root) return root.status();
  drive.config.name = filesystem::path(path).stem().string();
  return take_preset(path, *root, drive);
}

Result<std::string> find_preset(const std::string& name, const std::vector<std::string>& dirs) {
  if (name.find('/') == std::string::npos) {
    for (const auto& dir : dirs) {
      const filesystem::path path = filesystem::path(dir) / (name + ".toml");
      std::error_code error;
      if (filesystem::exists(path, error)) return path.string();
    }
  }
  std::string message = "unknown preset \"" + name + "\"";
  const auto known = preset_names(dirs);
  const std::string near = nearest(name, known);
  if (!near.empty()) return Status::bad_input(message + "; did you mean \"" + near + "\"?");
  if (known.empty())
    return Status::bad_input(message + ": there is no preset in the preset directories; set SPILLWAY_PRESETS");
  message += "; known are";
  for (const auto& other : known) message += (other == known.front() ? " " : ", ") + other;
  return Status::bad_input(message);
}

// The first violated relation of the layers around the flash, or nothing.
std::optional<LayerProblem> layer_problem(const Drive& drive) {
  if (auto found = problem(drive.cap)) return found;
  if (auto found = problem(drive.disk)) return found;
  for (const auto& [name, stack] : drive.host_stacks) {
    if (auto found = problem(stack)) return LayerProblem{"host_stack." + name + "." + found->key, found->message};
  }
  return std::nullopt;
}

Status take_overrides(const std::map<std::string, std::string>& set, Drive& drive) {
  Document document(std::string(kOverrides), drive);
  for (const auto& [key, text] : set) {
    // A value that is not TOML is taken as an unquoted word: greedy, 8GiB.
    auto parsed = parse(std::string(kOverrides), "value = " + text);
    const bool one_value = parsed && parsed->size() == 1;
    const toml::value<std::string> word(text);
    const toml::node& value = one_value ? *parsed->get("value") : static_cast<const toml::node&>(word);
    if (Status status = document.take(key, value); !status) return status;
    // The two sizes of a drive exclude each other. An override replaces the preset's.
    if (key == kCapacityBytes && !set.contains(std::string(kBlocksPerPlane)))
      drive.config.capacity.blocks_per_plane = 0;
    if (key == kBlocksPerPlane && !set.contains(std::string(kCapacityBytes))) drive.config.capacity.capacity_bytes = 0;
    drive.sources[key == kOverProvisioning ? std::string(kSpareFactor) : key] = "--set";
  }
  return {};
}

}  // namespace

Result<Drive> resolve(const DriveSpec& spec) {
  Drive drive;
  std::string where(kOverrides);
  if (!spec.preset_file.empty() || !spec.preset.empty()) {
    std::string path = spec.preset_file;
    if (path.empty()) {
      auto found = find_preset(spec.preset, spec.preset_dirs);
      if (!found) return found.status();
      path = *found;
    }
    if (Status status = read_preset(path, drive); !status) return status;
    where = path;
  } else {
    drive.summary = "explicit geometry";
  }
  if (Status status = take_overrides(spec.set, drive); !status) return status;
  // FIFO collection has one log, as in its closed form: relocated data goes to the log's head with the host's. With
  // separate streams, erase blocks return in waves, and write amplification swings by some 5 %.
  const bool explicit_geometry = where == kOverrides;
  if (explicit_geometry && drive.config.gc.policy == ssd::GcPolicy::fifo && !spec.set.contains("gc.separate_streams")) {
    drive.config.gc.separate_streams = false;
  }
  // The error is the file's unless the key was overridden.
  const auto refuse = [&](const std::string& key, const std::string& message) {
    const bool overridden = spec.set.contains(key) || explicit_geometry;
    return Status::bad_input((overridden ? std::string(kOverrides) : where) + ": " + key + ": " + message);
  };
  if (const auto wrong = layer_problem(drive)) return refuse(wrong->key, wrong->message);
  if (const auto wrong = ssd::problem(drive.config)) return refuse(wrong->key, wrong->message);
  return drive;
}

Layers Drive::layers() const {
  const auto stack = host_stacks.find(host_stack);
  return {stack == host_stacks.end() ? HostStack{} : stack->second, cap, disk};
}

std::vector<std::string> preset_names(const std::vector<std::string>& preset_dirs) {
  std::vector<std::string> names;
  for (const auto& dir : preset_dirs) {
    std::error_code error;
    for (const auto& entry : filesystem::directory_iterator(dir, error)) {
      if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::vector<std::string> default_preset_dirs() {
  std::vector<std::string> dirs;
  if (const char* const variable = std::getenv("SPILLWAY_PRESETS")) {
    std::istringstream parts(variable);
    for (std::string part; std::getline(parts, part, ':');) {
      if (!part.empty()) dirs.push_back(part);
    }
  }
  dirs.emplace_back(SPILLWAY_PRESET_DIR);
  return dirs;
}

}  // namespace spillway::device
