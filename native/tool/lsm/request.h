// The request of `lsm-simulate`, read and checked.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "device/emulated/emulated.h"
#include "device/preset/preset.h"
#include "lsm/spec.h"
#include "tool/protocol/events.h"

namespace spillway::tool {

struct LsmRequest {
  device::Drive drive;
  device::InitialState initial;
  bool overwrites_initial = false;  // the tree lies over what `initial` wrote; else beside it
  lsm::Spec spec;
  std::uint32_t grain = 0;  // 0: chosen
};

// Where on a drive of this capacity at this grain the tree lies: in the partition of the initial state, or else after
// what that has filled.
lsm::DriveRegion region_of(const LsmRequest& request, std::uint64_t capacity_bytes, std::uint32_t grain);

Result<LsmRequest> read_lsm_request(const Json& json);

}  // namespace spillway::tool
