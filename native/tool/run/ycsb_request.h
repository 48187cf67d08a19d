// Reads YCSB's properties out of a phase of a request.
#pragma once

#include <string>

#include "base/result.h"
#include "load/ycsb/properties.h"
#include "tool/protocol/events.h"

namespace spillway::tool {

// `path`: of the object in messages ("phases[0].ycsb"). What is absent has YCSB's default.
Result<load::ycsb::Properties> read_ycsb(const Json& json, const std::string& path);

}  // namespace spillway::tool
