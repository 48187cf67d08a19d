#include "engine/factory/factory.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "base/spelling.h"
#include "engine/modules.h"
#include "engine/raw/engine.h"
#include "engine/rocksdb/engine.h"
#ifdef SPILLWAY_HAS_LEVELDB
#include "engine/leveldb/engine.h"
#include "engine/vlog/engine.h"
#endif

namespace spillway::engine {

namespace {

std::vector<EngineKind> built_in() {
  std::vector<EngineKind> kinds = rocksdb_engines();
  kinds.push_back(raw_engine());
#ifdef SPILLWAY_HAS_LEVELDB
  kinds.push_back(leveldb_engine());
  kinds.push_back(leveldb_vlog_engine());
#endif
  return kinds;
}

const std::vector<EngineKind>& kinds() {
  static const std::vector<EngineKind> all = built_in();
  return all;
}

// Engines that are not in every build, and the Debian package that brings each.
struct OptionalEngine {
  const char* name;
  const char* package;
};
constexpr std::array kLinkedIfInstalled = {OptionalEngine{"leveldb", "libleveldb-dev"},
                                           OptionalEngine{"leveldb-vlog", "libleveldb-dev"}};
constexpr std::array kModules = {OptionalEngine{"wiredtiger", "libwiredtiger-dev"}};

Result<EngineKind> find(const std::string& name) {
  const auto found =
      std::find_if(kinds().begin(), kinds().end(), [&](const EngineKind& kind) { return name == kind.name; });
  if (found != kinds().end()) return *found;
  for (const OptionalEngine& optional : kLinkedIfInstalled) {
    if (name != optional.name) continue;
    return Status::bad_input("engine.name: " + name + " is not in this build; install " + optional.package +
                             " and build again");
  }
  for (const OptionalEngine& optional : kModules) {
    if (name == optional.name) return load_engine(name, "`apt-get install " + std::string(optional.package) + "`");
  }
  const std::vector<std::string> names = engine_names();
  const std::string near = nearest(name, names);
  std::string message = "engine.name: there is no engine '" + name + "'";
  if (!near.empty()) return Status::bad_input(message + ", the nearest is '" + near + "'");
  message += "; there are";
  for (const std::string& known : names) message += (&known == &names.front() ? " '" : ", '") + known + "'";
  return Status::bad_input(message);
}

struct DatabaseFormat {
  const char* file;  // EngineKind::database_file
  const char* owner;
};
constexpr std::array kFormats = {DatabaseFormat{"CURRENT", "RocksDB's or LevelDB's"},
                                 DatabaseFormat{"WiredTiger", "WiredTiger's"}};

// Without this check an engine would create its own database among the files of another engine's.
Status check_directory(const EngineSpec& spec, const EngineKind& kind) {
  for (const DatabaseFormat& format : kFormats) {
    std::error_code ignored;
    const bool is_own = std::string_view(format.file) == kind.database_file;
    if (is_own || !std::filesystem::exists(spec.directory + "/" + format.file, ignored)) continue;
    return Status::bad_input("directory: " + spec.directory + " holds a database of " + format.owner + ", which " +
                             spec.name + " cannot open; name another directory");
  }
  return Status::ok();
}

}  // namespace

std::vector<std::string> engine_names() {
  std::vector<std::string> names;
  for (const EngineKind& kind : kinds()) names.emplace_back(kind.name);
  for (const OptionalEngine& optional : kLinkedIfInstalled) {
    if (std::find(names.begin(), names.end(), optional.name) == names.end()) names.emplace_back(optional.name);
  }
  for (const OptionalEngine& optional : kModules) names.emplace_back(optional.name);
  return names;
}

StringMap engine_versions(const std::string& name) {
  auto kind = find(name);
  return kind ? kind->versions() : StringMap();
}

std::string engine_compression(const EngineSpec& spec) {
  auto kind = find(spec.name);
  return kind && kind->compression != nullptr ? kind->compression(spec) : std::string();
}

Status check_engine(const EngineSpec& spec) {
  auto kind = find(spec.name);
  return kind ? kind->check(spec) : kind.status();
}

bool is_movable(const EngineSpec& spec) {
  auto kind = find(spec.name);
  return kind && kind->is_movable;
}

bool compresses(const EngineSpec& spec) {
  auto kind = find(spec.name);
  return kind && kind->compresses(spec);
}

bool is_store(const EngineSpec& spec) {
  auto kind = find(spec.name);
  return kind && kind->is_store;
}

Result<std::unique_ptr<Engine>> open_engine(const EngineSpec& spec) {
  auto kind = find(spec.name);
  if (!kind) return kind.status();
  if (Status status = kind->check(spec); !status) return status;
  if (Status status = check_directory(spec, *kind); !status) return status;
  std::error_code problem;
  std::filesystem::create_directories(spec.directory, problem);
  if (problem) {
    return Status::bad_input("directory: cannot make " + spec.directory + " (" + problem.message() +
                             "); name one that can be written");
  }
  return kind->open(spec);
}

}  // namespace spillway::engine
