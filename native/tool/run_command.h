// The command `run`: one arm of a plan, from a drive in its initial state to the figures of its measured phases.
#pragma once

#include <atomic>

#include "base/result.h"
#include "tool/events.h"

namespace spillway::tool {

Status run_command(const Json& json, Events& events, const std::atomic<bool>& stop);

}  // namespace spillway::tool
