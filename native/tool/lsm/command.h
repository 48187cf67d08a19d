// The command `lsm-simulate`: an LSM tree's shape in virtual time, without an engine, on the drive model.
#pragma once

#include "tool/protocol/command.h"

namespace spillway::tool {

Status lsm_simulate(const Json& json, Events& events, const std::atomic<bool>& stop);

}  // namespace spillway::tool
