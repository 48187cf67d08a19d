// `spillway-native probe`: a conversation in JSON lines. The request brings a target to where the work starts; each
// further line is answered before the next is read.
#pragma once

#include <atomic>

#include "base/result.h"
#include "tool/protocol/events.h"
#include "tool/protocol/line_reader.h"

namespace spillway::tool {

Status probe_command(LineReader& lines, Events& events, const std::atomic<bool>& stop);

}  // namespace spillway::tool
