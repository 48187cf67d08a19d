#pragma once

#include "engine/engine_kind.h"

namespace spillway::engine {

EngineKind wiredtiger_engine();

}  // namespace spillway::engine
