// LevelDB behind the engine seam, through an Env of ours.
#pragma once

#include "engine/engine_kind.h"

namespace spillway::engine {

EngineKind leveldb_engine();

}  // namespace spillway::engine
