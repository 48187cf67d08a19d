#include "spill/live/sorted_size.h"

#include <algorithm>

namespace spillway::spill {
namespace {

// Bytes that an entry adds to a file in addition to its key and value, if it is a block by itself: sequence number,
// lengths, the block's trailer and restarts, its handle in the index, its share of a filter; and bytes of the file
// itself: properties, footer, the last blocks. A compressed value takes less. Source: RocksDB's block-based table,
// rounded up.
constexpr std::uint64_t kSortedEntryBytes = 64;
constexpr std::uint64_t kSortedFileBytes = 16 << 10;
}  // namespace

std::uint64_t most_sorted_bytes(const Generation& generation, std::uint64_t more_bytes) {
  // The index has a key for each block, and an entry may be as large as one.
  return generation.user_bytes() + generation.key_bytes() + 2 * more_bytes +
         (generation.entries() + generation.range_tombstone_count()) * kSortedEntryBytes +
         std::max<std::uint64_t>(1, generation.column_families()) * kSortedFileBytes;
}

std::uint64_t most_sorted_bytes(std::uint64_t bytes) { return 2 * bytes + kSortedFileBytes; }

}  // namespace spillway::spill
