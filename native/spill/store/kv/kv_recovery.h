// What a process finds in a key-value namespace and in its staging: records without a gap, and whether what is missing
// was known to be durable.
#pragma once

#include <rocksdb/status.h>

#include "spill/store/kv/kv_commands.h"
#include "spill/store/kv/kv_ends.h"
#include "spill/store/kv/kv_generations.h"
#include "spill/store/kv/kv_pairs.h"
#include "spill/store/kv/kv_staging.h"
#include "spill/store/store.h"

namespace spillway::spill {

// Calls `each` for every record, as Store::recover promises. `end`: the end of the last one. When it returns,
// everything that a killed process had in staging is on the drive, and staging is empty.
// REQUIRES: no other thread uses them yet
rocksdb::Status recover_pairs(const KvCommands& commands, std::uint32_t pair_bytes, KvStaging& staging,
                              KvGenerations& generations, KvEnds& ends, const Store::Each& each, Position* end);

}  // namespace spillway::spill
