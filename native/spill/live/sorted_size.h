// How large the sorted files can be in which a generation is ingested into RocksDB.
#pragma once

#include <cstdint>

#include "spill/live/generation.h"

namespace spillway::spill {

// No more than so many bytes of files are made of a generation, or of one to which so many bytes are added.
std::uint64_t most_sorted_bytes(const Generation& generation, std::uint64_t more_bytes = 0);
// Or of one that has no more than those.
std::uint64_t most_sorted_bytes(std::uint64_t bytes);

}  // namespace spillway::spill
