// The request of `run`, read and checked before anything is made.
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

// The drive under the store, and how its time goes by.
struct EmulatedTarget {
  device::Drive drive;
  device::InitialState initial;
  double time_scale = 1;
  bool paced = true;  // else jumped through in virtual time
};

// What the run starts from and where it leaves what it has come to: directories of kept states (kept.h).
struct KeptRequest {
  enum class Takes : std::uint8_t {
    database,  // the run goes on with its database, on the drive as it is
    files,     // it begins an empty database beside those that are there
    drive,     // it begins one on the drive as it is, whose files are deleted first
  };
  std::string from;  // "": nothing
  std::string to;    // "": nowhere
  Takes takes = Takes::database;
  std::string database = "database";  // the name of the run's in the state
  Json note;                          // anything, to be kept with it
};

struct RunRequest {
  std::uint64_t seed = 1;  // of the drive: its state, its policies' draws
  std::string directory;
  std::optional<EmulatedTarget> emulated;  // none: the directory as it is
  // Of a plain directory: sysfs' counters of the drives under it, and the drive model that watches.
  std::vector<std::string> counters;
  std::optional<EmulatedTarget> estimate;
  fs::VolumeOptions volume;
  engine::EngineSpec engine;
  load::RunSpec load;
  std::optional<KeptRequest> kept;
};

// Of a run that goes on with a kept database the relations between its phases are not yet checked.
Result<RunRequest> read_run_request(const Json& json);

// Parts of a request: `load`, and one of its phases, by its name in messages.
Status read_load(const Json& json, load::RunSpec& spec);
Status read_phase(const Json& json, const std::string& path, load::PhaseSpec& phase);

// Refuses phases that write more than the drive, or the directory's file system, has room for. REQUIRES: the directory
// is there.
Status check_space(const RunRequest& request);

}  // namespace spillway::tool
