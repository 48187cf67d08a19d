// The commands on a drive model alone, in virtual time.
#pragma once

#include "tool/protocol/command.h"

namespace spillway::tool {

Status ssd_simulate(const Json& request, Events& events, const std::atomic<bool>& stop);
Status ssd_precondition(const Json& request, Events& events, const std::atomic<bool>& stop);
Status ssd_show(const Json& request, Events& events, const std::atomic<bool>& stop);

}  // namespace spillway::tool
