#pragma once

#include "engine/factory.h"

namespace spillway::engine {

EngineKind wiredtiger_engine();

}  // namespace spillway::engine
