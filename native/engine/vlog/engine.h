// WiscKey's design behind the engine seam: LevelDB's tree with the values in a log, where they go at write time.
// docs/decisions/0025-value-log.md says what follows the paper and what does not.
#pragma once

#include "engine/engine_kind.h"

namespace spillway::engine {

EngineKind leveldb_vlog_engine();

}  // namespace spillway::engine
