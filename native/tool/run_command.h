// The command `run`: one arm of a plan, from a drive in its initial state to the figures of its measured phases.
#pragma once

#include <atomic>

#include "base/result.h"
#include "tool/events.h"
#include "tool/line_reader.h"

namespace spillway::tool {

// `lines`: those behind the request, which ask something of the run meanwhile; null: there are none.
Status run_command(const Json& json, Events& events, const std::atomic<bool>& stop, LineReader* lines = nullptr);

}  // namespace spillway::tool
