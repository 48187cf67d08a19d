// Reads YCSB's properties from a phase of a request.
#pragma once

#include <string>

#include "base/result.h"
#include "load/ycsb/properties.h"
#include "tool/protocol/events.h"

namespace spillway::tool {

// `path`: the object's name in messages ("phases[0].ycsb"). Absent properties have YCSB's defaults.
Result<load::ycsb::Properties> read_ycsb(const Json& json, const std::string& path);

}  // namespace spillway::tool
