// Reads a phase's arrivals from a request.
#pragma once

#include <string>

#include "base/result.h"
#include "load/arrivals.h"
#include "tool/protocol/events.h"

namespace spillway::tool {

// `path`: the key in messages. `rate_ops_s`: the phase's; 0: none. Reads the file of a trace.
Result<load::ArrivalSpec> read_arrivals(const Json& json, const std::string& path, double rate_ops_s);

}  // namespace spillway::tool
