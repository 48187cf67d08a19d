// A command of spillway-native. It reads its request, reports events up to the result, and returns an error if it has
// no result. main() turns the error into an error event and the exit code.
#pragma once

#include <atomic>

#include "base/result.h"
#include "tool/protocol/events.h"

namespace spillway::tool {

// SIGINT and SIGTERM set `stop`. A command then ends soon, with an incomplete result.
using Command = Status (*)(const Json& request, Events& events, const std::atomic<bool>& stop);

}  // namespace spillway::tool
