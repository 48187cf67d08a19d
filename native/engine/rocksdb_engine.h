// RocksDB behind the engine seam.
#pragma once

#include <memory>

#include "base/result.h"
#include "engine/engine.h"
#include "engine/factory.h"

namespace spillway::engine {

// REQUIRES: spec.name == "rocksdb"
Result<std::unique_ptr<Engine>> open_rocksdb(const EngineSpec& spec);

}  // namespace spillway::engine
