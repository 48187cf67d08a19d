// The request of `run`, read and checked before anything is created.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/emulated/emulated.h"
#include "device/preset/preset.h"
#include "engine/engine_kind.h"
#include "fs/volume.h"
#include "load/run_spec.h"
#include "tool/protocol/events.h"

namespace spillway::tool {

// Whether a drive's time passes in real time, or as virtual time.
enum class Pacing : std::uint8_t { real, off };

// The drive under the store, and how its time passes.
struct EmulatedTarget {
  device::Drive drive;
  device::InitialState initial;
  double time_scale = 1;
  Pacing pacing = Pacing::real;
};

// The state that the run starts from, and where it keeps its result: directories of kept states (kept_directory.h).
struct KeptRequest {
  enum class Takes : std::uint8_t {
    database,  // the run continues its database, on the kept drive
    files,     // it begins an empty database on a drive that holds the other databases
    drive,     // it begins one on the kept drive, from which all files are deleted first
  };
  std::string from;  // "": none
  std::string to;    // "": none
  Takes takes = Takes::database;
  std::string database = "database";  // the name of the run's database in the state
  Json note;                          // any value, kept with the state
};

struct RunRequest {
  std::uint64_t seed = 1;  // of the drive: its initial state, random choices of its policies
  std::string directory;
  std::optional<EmulatedTarget> emulated;  // none: a plain directory
  // For a plain directory: counters in sysfs of the drives under it, and the drive model that observes.
  std::vector<std::string> counters;
  std::optional<EmulatedTarget> estimate;
  fs::VolumeOptions fs;
  engine::EngineSpec engine;
  load::RunSpec load;
  std::optional<KeptRequest> kept;
};

// If the run continues a kept database, the relations between its phases are not checked yet.
Result<RunRequest> read_run_request(const Json& json);

// Parsers for parts of a request, with their names in messages: `load`, and one of its phases.
Status read_load(const Json& json, load::RunSpec& spec);
Status read_phase(const Json& json, const std::string& path, load::PhaseSpec& phase);

// Refuses phases that write more than fits on the drive, or on the directory's file system. REQUIRES: the directory
// exists.
Status check_space(const RunRequest& request);

}  // namespace spillway::tool
