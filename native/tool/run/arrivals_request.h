// A phase's arrivals as a request says them.
#pragma once

#include <string>

#include "base/result.h"
#include "load/arrivals.h"
#include "tool/protocol/events.h"

namespace spillway::tool {

// `path`: its key. `rate_ops_s` is the phase's; 0: none. A trace's file is read.
Result<load::ArrivalSpec> read_arrivals(const Json& json, const std::string& path, double rate_ops_s);

}  // namespace spillway::tool
