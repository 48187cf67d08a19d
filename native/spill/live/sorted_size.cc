#include "spill/live/sorted_size.h"

#include <algorithm>

namespace spillway::spill {
namespace {

// Bytes that an entry adds to a file in addition to its key and value, if it is a block by itself: sequence number,
// lengths, the block's trailer and restarts, its handle in the index, its share of a filter. A compressed value takes
// less. Source: RocksDB's block-based table, rounded up.
constexpr std::uint64_t kSortedEntryBytes = 64;

}  // namespace

std::uint64_t most_sorted_bytes_of_entry(std::uint64_t key_bytes, std::uint64_t value_bytes) {
  return 2 * key_bytes + value_bytes + kSortedEntryBytes;  // the index has a key for each block
}

std::uint64_t most_sorted_bytes(const Generation& generation, std::uint64_t more_bytes) {
  // The index has a key for each block, and an entry may be as large as one.
  return generation.user_bytes() + generation.key_bytes() + 2 * more_bytes +
         (generation.entries() + generation.range_tombstone_count()) * kSortedEntryBytes +
         std::max<std::uint64_t>(1, generation.column_families()) * kSortedFileBytes;
}

std::uint64_t most_sorted_bytes(std::uint64_t bytes) { return 2 * bytes + kSortedFileBytes; }

}  // namespace spillway::spill
