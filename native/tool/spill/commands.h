// The commands on the spill store of a database that no program has open.
#pragma once

#include "tool/protocol/command.h"

namespace spillway::tool {

Status spill_show(const Json& request, Events& events, const std::atomic<bool>& stop);
Status spill_drain(const Json& request, Events& events, const std::atomic<bool>& stop);

}  // namespace spillway::tool
