#include "engine/factory.h"

#include <rocksdb/version.h>

#include <filesystem>

#include "device/preset.h"
#include "engine/policy.h"
#include "engine/rocksdb_engine.h"
#include "engine/rocksdb_options.h"

namespace spillway::engine {

namespace {

Status check_name(const std::string& name) {
  if (name == "rocksdb" || name == "spillway") return Status::ok();
  const std::string near = device::nearest(name, engine_names());
  return Status::bad_input("engine.name: there is no engine '" + name + "'" +
                           (near.empty() ? "; there are 'rocksdb' and 'spillway'" : ", the nearest is '" + near + "'"));
}

}  // namespace

std::vector<std::string> engine_names() { return {"rocksdb", "spillway"}; }

std::map<std::string, std::string> engine_versions() {
  return {{"rocksdb",
           std::to_string(ROCKSDB_MAJOR) + "." + std::to_string(ROCKSDB_MINOR) + "." + std::to_string(ROCKSDB_PATCH)}};
}

Status check_engine(const EngineSpec& spec) {
  if (Status status = check_name(spec.name); !status) return status;
  if (auto policy = make_policy(spec); !policy) return policy.status();
  auto options = parse_rocksdb_options(spec.options);
  return options ? Status::ok() : options.status();
}

Result<std::unique_ptr<Engine>> open_engine(const EngineSpec& spec) {
  if (Status status = check_engine(spec); !status) return status;
  std::error_code problem;
  std::filesystem::create_directories(spec.directory, problem);
  if (problem) {
    return Status::bad_input("directory: cannot make " + spec.directory + " (" + problem.message() +
                             "); name one that can be written");
  }
  return open_rocksdb(spec);
}

}  // namespace spillway::engine
