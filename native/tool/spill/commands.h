// The commands on the spill store of a database that is not open in any program.
#pragma once

#include "tool/protocol/command.h"

namespace spillway::tool {

Status spill_show(const Json& request, Events& events, const std::atomic<bool>& stop);
Status spill_drain(const Json& request, Events& events, const std::atomic<bool>& stop);

}  // namespace spillway::tool
