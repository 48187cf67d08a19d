// Stores by name: the one place that knows which engines this build has.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/adoc.h"
#include "engine/engine.h"
#include "spillway/options.h"

namespace spillway::fs {
class Volume;
}

namespace spillway::engine {

struct EngineSpec {
  std::string name = "rocksdb";
  std::string directory;                       // of the database; made when missing
  std::map<std::string, std::string> options;  // by the engine's own names and in its own spelling
  // What keeps the database's writers going: see policy_names(). Of rocksdb only.
  std::string policy = "slowdown";
  AdocOptions adoc = {};    // of policy "adoc"
  SpillOptions spill = {};  // of the engine "spillway"
  // The drive under the database. Null: the directory as it is, through the engine's own file system.
  // REQUIRES: outlives the engine.
  fs::Volume* volume = nullptr;
  bool host_sync = false;  // with a volume: also sync the host's files, see fs/rocksdb_file_system.h
};

// An open engine, or one sentence: an unknown engine or option with the nearest name, a value it does not take, a
// directory that cannot be used.
Result<std::unique_ptr<Engine>> open_engine(const EngineSpec& spec);

// Says what is wrong with `spec.name` and `spec.options` without opening anything.
Status check_engine(const EngineSpec& spec);

std::vector<std::string> engine_names();

// Of the libraries in this process: {"rocksdb": "7.8.3"}.
std::map<std::string, std::string> engine_versions();

}  // namespace spillway::engine
