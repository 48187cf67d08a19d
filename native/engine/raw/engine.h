// The drive without an engine, under the same workloads and counters as engines.
#pragma once

#include "engine/engine_kind.h"

namespace spillway::engine {

EngineKind raw_engine();

}  // namespace spillway::engine
