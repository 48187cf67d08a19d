// RocksDB behind the engine seam, plain or under the accelerator: the policy opens it.
#pragma once

#include <memory>

#include "base/result.h"
#include "engine/engine.h"
#include "engine/factory.h"

namespace spillway::engine {

// REQUIRES: spec.name is "rocksdb" or "spillway"
Result<std::unique_ptr<Engine>> open_rocksdb(const EngineSpec& spec);

}  // namespace spillway::engine
