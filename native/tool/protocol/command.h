// A command of spillway-native: reads its request, reports its events up to the result, and returns what kept it from
// one; main() turns that into the error event and the exit code.
#pragma once

#include <atomic>

#include "base/result.h"
#include "tool/protocol/events.h"

namespace spillway::tool {

// `stop` is set by SIGINT and SIGTERM: a command then ends soon, with a result that is not complete.
using Command = Status (*)(const Json& request, Events& events, const std::atomic<bool>& stop);

}  // namespace spillway::tool
