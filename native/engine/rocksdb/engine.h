// RocksDB behind the engine seam, plain or under the accelerator: the policy opens it.
#pragma once

#include <vector>

#include "engine/engine_kind.h"

namespace spillway::engine {

// "rocksdb" and "spillway".
std::vector<EngineKind> rocksdb_engines();

}  // namespace spillway::engine
