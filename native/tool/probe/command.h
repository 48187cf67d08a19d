// `spillway-native probe`: a dialogue in JSON lines. The request prepares a target. Each further line is answered
// before the next one is read.
#pragma once

#include <atomic>

#include "base/result.h"
#include "tool/protocol/events.h"
#include "tool/protocol/line_reader.h"

namespace spillway::tool {

Status probe_command(LineReader& lines, Events& events, const std::atomic<bool>& stop);

}  // namespace spillway::tool
