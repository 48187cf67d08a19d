// LevelDB behind the engine seam, through an Env of ours.
#pragma once

#include "engine/factory.h"

namespace spillway::engine {

EngineKind leveldb_engine();

}  // namespace spillway::engine
