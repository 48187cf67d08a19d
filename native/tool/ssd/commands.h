// The commands on a drive model alone, in virtual time.
#pragma once

#include "tool/protocol/command.h"
#include "tool/protocol/line_reader.h"

namespace spillway::tool {

Status ssd_simulate(const Json& request, Events& events, const std::atomic<bool>& stop);
Status ssd_precondition(const Json& request, Events& events, const std::atomic<bool>& stop);
Status ssd_show(const Json& request, Events& events, const std::atomic<bool>& stop);

// A dialogue in JSON lines. The request prepares a drive. Each further line submits I/Os, waits for some, or both, and
// is answered before the next one is read.
Status ssd_interact(LineReader& lines, Events& events, const std::atomic<bool>& stop);

}  // namespace spillway::tool
