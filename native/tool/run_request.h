// The request of `run`, read and checked before anything is made.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/emulated.h"
#include "device/preset.h"
#include "engine/factory.h"
#include "fs/volume.h"
#include "load/run_spec.h"
#include "tool/events.h"

namespace spillway::tool {

// The drive under the store, and how its time goes by.
struct EmulatedTarget {
  device::Drive drive;
  device::InitialState initial;
  double time_scale = 1;
  bool paced = true;  // else jumped through in virtual time
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
};

Result<RunRequest> read_run_request(const Json& json);

// Refuses phases that write more than the drive, or the directory's file system, has room for. REQUIRES: the directory
// is there.
Status check_room(const RunRequest& request);

}  // namespace spillway::tool
