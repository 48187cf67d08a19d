// How large the sorted files can be in which a generation is ingested into RocksDB.
#pragma once

#include <cstdint>

#include "spill/live/generation.h"

namespace spillway::spill {

// Most bytes of the files that are made of a generation, or of one to which `more_bytes` are added.
std::uint64_t most_sorted_bytes(const Generation& generation, std::uint64_t more_bytes = 0);
// The same for a generation of at most `bytes`.
std::uint64_t most_sorted_bytes(std::uint64_t bytes);

}  // namespace spillway::spill
