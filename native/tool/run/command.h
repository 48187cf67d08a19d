// The command `run`: runs one arm of a plan, from a drive in its initial state to the figures of its measured phases.
#pragma once

#include <atomic>

#include "base/result.h"
#include "tool/protocol/events.h"
#include "tool/protocol/line_reader.h"

namespace spillway::tool {

// `lines`: standard input after the request, with commands to the run (control.h); null: no commands.
Status run_command(const Json& json, Events& events, const std::atomic<bool>& stop, LineReader* lines = nullptr);

}  // namespace spillway::tool
