// The command `bufferpool`: replays a page trace through a buffer pool on a drive.
#pragma once

#include "tool/protocol/command.h"

namespace spillway::tool {

Status bufferpool(const Json& request, Events& events, const std::atomic<bool>& stop);

}  // namespace spillway::tool
