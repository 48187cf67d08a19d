// The accelerator as a policy: spillway::DB in the place of RocksDB's slowdown.
#pragma once

#include <memory>

#include "engine/policy.h"
#include "spillway/options.h"

namespace spillway::engine {

std::unique_ptr<Policy> make_spill_policy(SpillOptions options);

}  // namespace spillway::engine
