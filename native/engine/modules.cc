#include "engine/modules.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <vector>

#include "engine/sources_stamp.h"

namespace spillway::engine {

namespace {

std::vector<std::filesystem::path> places() {
  std::vector<std::filesystem::path> found;
  if (const char* const given = std::getenv("SPILLWAY_ENGINES"); given != nullptr && *given != '\0') {
    std::istringstream directories(given);
    for (std::string directory; std::getline(directories, directory, ':');) {
      if (!directory.empty()) found.emplace_back(directory);
    }
    return found;
  }
  std::error_code failure;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (!failure) found.push_back(program.parent_path().parent_path() / "lib");
  return found;
}

template <typename Function>
Function function_of(void* module, const char* name) {
  return reinterpret_cast<Function>(::dlsym(module, name));
}

Result<EngineKind> load(const std::string& name, const std::string& path, const std::string& brought_by) {
  void* const module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) {
    return Status::bad_input("engine.name: " + name + " cannot be loaded (" + ::dlerror() + "); " + brought_by +
                             " and build again");
  }
  const auto sources = function_of<const char* (*)()>(module, "spillway_engine_sources");
  const auto kind = function_of<const EngineKind* (*)()>(module, "spillway_engine_kind");
  if (sources == nullptr || kind == nullptr || std::string(sources()) != sources_stamp()) {
    return Status::bad_input("engine.name: " + path +
                             " was built from other sources than this program; build both again (scripts/native.sh)");
  }
  return *kind();
}

}  // namespace

const char* sources_stamp() { return SPILLWAY_SOURCES_STAMP; }

Result<EngineKind> load_engine(const std::string& name, const std::string& brought_by) {
  for (const std::filesystem::path& place : places()) {
    const auto path = place / ("libspillway-engine-" + name + ".so");
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored)) return load(name, path.string(), brought_by);
  }
  return Status::bad_input("engine.name: " + name + " is not installed; " + brought_by + " and build again");
}

}  // namespace spillway::engine
