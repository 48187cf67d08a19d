#include "engine/factory.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "device/preset.h"
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

// Engines that a build may lack, and the Debian package that brings each.
struct Absent {
  const char* name;
  const char* package;
};
constexpr std::array kMayBeAbsent = {Absent{"leveldb", "libleveldb-dev"}, Absent{"leveldb-vlog", "libleveldb-dev"}};
constexpr std::array kLoaded = {Absent{"wiredtiger", "libwiredtiger-dev"}};

Result<EngineKind> find(const std::string& name) {
  const auto found =
      std::find_if(kinds().begin(), kinds().end(), [&](const EngineKind& kind) { return name == kind.name; });
  if (found != kinds().end()) return *found;
  for (const Absent& absent : kMayBeAbsent) {
    if (name != absent.name) continue;
    return Status::bad_input("engine.name: " + name + " is not in this build; install " + absent.package +
                             " and build again");
  }
  for (const Absent& absent : kLoaded) {
    if (name == absent.name) return load_engine(name, "`apt-get install " + std::string(absent.package) + "`");
  }
  const std::vector<std::string> names = engine_names();
  const std::string near = device::nearest(name, names);
  std::string message = "engine.name: there is no engine '" + name + "'";
  if (!near.empty()) return Status::bad_input(message + ", the nearest is '" + near + "'");
  message += "; there are";
  for (const std::string& known : names) message += (&known == &names.front() ? " '" : ", '") + known + "'";
  return Status::bad_input(message);
}

// WiredTiger would begin a database beside one of RocksDB's or LevelDB's, and they beside one of WiredTiger's.
Status check_directory(const EngineSpec& spec) {
  const bool is_wiredtiger = spec.name == "wiredtiger";
  std::error_code ignored;
  if (!std::filesystem::exists(spec.directory + (is_wiredtiger ? "/CURRENT" : "/WiredTiger"), ignored)) {
    return Status::ok();
  }
  return Status::bad_input("directory: " + spec.directory + " holds a database of " +
                           (is_wiredtiger ? "RocksDB's or LevelDB's" : "WiredTiger's") + ", which " + spec.name +
                           " cannot open; name another directory");
}

}  // namespace

std::vector<std::string> engine_names() {
  std::vector<std::string> names;
  for (const EngineKind& kind : kinds()) names.emplace_back(kind.name);
  for (const Absent& absent : kMayBeAbsent) {
    if (std::find(names.begin(), names.end(), absent.name) == names.end()) names.emplace_back(absent.name);
  }
  for (const Absent& absent : kLoaded) names.emplace_back(absent.name);
  return names;
}

Texts engine_versions(const std::string& name) {
  auto kind = find(name);
  return kind ? kind->versions() : Texts();
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
  if (Status status = check_directory(spec); !status) return status;
  std::error_code problem;
  std::filesystem::create_directories(spec.directory, problem);
  if (problem) {
    return Status::bad_input("directory: cannot make " + spec.directory + " (" + problem.message() +
                             "); name one that can be written");
  }
  return kind->open(spec);
}

}  // namespace spillway::engine
