// WiscKey's design as an engine: LevelDB's tree, with values in a log that a write appends them to.
// docs/decisions/0025-value-log.md says what follows the paper and what does not.
#pragma once

#include "engine/engine_kind.h"

namespace spillway::engine {

EngineKind leveldb_vlog_engine();

}  // namespace spillway::engine
