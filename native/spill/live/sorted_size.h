// How large the sorted files can be in which a generation is ingested into RocksDB.
#pragma once

#include <cstdint>

#include "spill/live/generation.h"

namespace spillway::spill {

// Bytes of a file itself: properties, footer, the last blocks. Source: RocksDB's block-based table, rounded up.
inline constexpr std::uint64_t kSortedFileBytes = 16 << 10;

// Most bytes that one entry adds to a file.
std::uint64_t most_sorted_bytes_of_entry(std::uint64_t key_bytes, std::uint64_t value_bytes);
// Most bytes of the files that are made of a generation, or of one to which `more_bytes` are added.
std::uint64_t most_sorted_bytes(const Generation& generation, std::uint64_t more_bytes = 0);
// The same for a generation of at most `bytes`.
std::uint64_t most_sorted_bytes(std::uint64_t bytes);

}  // namespace spillway::spill
