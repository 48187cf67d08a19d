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
  lsm::Spec spec;
  std::uint32_t grain = 0;  // 0: chosen
};

Result<LsmRequest> read_lsm_request(const Json& json);

}  // namespace spillway::tool
