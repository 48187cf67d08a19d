// The accelerator as a policy: spillway::DB in the place of RocksDB's slowdown.
#pragma once

#include <memory>

#include "base/result.h"
#include "engine/engine_kind.h"
#include "engine/rocksdb/policy.h"

namespace spillway::engine {

// Of the settings `spill.…`, with the library's defaults. bad_input: one that it does not know or take; the store kv
// without a key-value namespace.
Result<std::unique_ptr<Policy>> make_spillway_policy(const EngineSpec& spec);

}  // namespace spillway::engine
