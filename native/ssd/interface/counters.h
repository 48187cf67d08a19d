// What the drive has done since it was created, as SMART and OCP logs would report it.
//
// Stores bytes and counts. Ratios are derived where they are shown. Always:
//   nand_pages_programmed x page size = nand_bytes_programmed, host + gc + mapping + wear + fold.
// For a hard disk, nand_bytes_programmed are bytes of its medium, and no pages are counted (device/model/hard_disk.cc).
#pragma once

#include <array>
#include <cstdint>

namespace spillway::ssd {

// The host's causes of writes. The drive only counts by them.
inline constexpr std::size_t kHostCauses = 10;

// The drive's causes of reads and programs.
enum class FlashCause : std::uint8_t { host, gc, mapping, wear, fold };
inline constexpr std::size_t kFlashCauses = 5;

struct Counters {
  std::uint64_t host_reads = 0;   // commands
  std::uint64_t host_writes = 0;  // commands
  std::uint64_t host_flushes = 0;
  std::uint64_t host_deallocates = 0;
  std::uint64_t host_bytes_read = 0;
  std::uint64_t host_bytes_written = 0;
  std::uint64_t host_bytes_deallocated = 0;
  std::array<std::uint64_t, kHostCauses> host_bytes_written_by_cause{};
  std::array<std::uint64_t, kHostCauses> host_bytes_read_by_cause{};

  std::uint64_t nand_pages_programmed = 0;  // flash pages: Ftl::finish_step, BlockMapping::program
  std::array<std::uint64_t, kFlashCauses> nand_bytes_programmed{};  // counted by what they hold
  std::array<std::uint64_t, kFlashCauses> nand_bytes_read{};
  std::uint64_t nand_bytes_padded = 0;  // part of the above: programmed without data, to complete a flash page
  std::uint64_t erases = 0;
  std::uint64_t gc_victims = 0;
  std::uint64_t gc_victim_valid_units = 0;  // sum over victims; units of the mapping
  std::uint64_t wear_moves = 0;
  // Block and hybrid mapping, in rows of erase blocks. The newer row replaces the older one, as it is (switch) or after
  // the missing data was copied to it (partial), or both are copied to a third row (full).
  std::uint64_t switch_merges = 0;
  std::uint64_t partial_merges = 0;
  std::uint64_t full_merges = 0;
  std::uint64_t slc_bytes_programmed = 0;  // part of the above: written to the SLC cache, always by the host
  std::uint64_t slc_blocks_folded = 0;     // erase blocks of the SLC cache emptied and erased

  std::uint64_t unmapped_reads = 0;           // mapping units read that were never written, or deallocated
  std::uint64_t write_cache_read_hits = 0;    // mapping units
  std::uint64_t write_cache_overwrites = 0;   // mapping units rewritten before they reached flash
  std::uint64_t write_cache_deallocated = 0;  // mapping units deallocated before they reached flash
  std::uint64_t mapping_cache_hits = 0;
  std::uint64_t mapping_cache_misses = 0;
  std::uint64_t sub_unit_writes = 0;  // writes that had to read the rest of their mapping unit first (P28)

  // Busy time, summed over dies (channels): divide by elapsed time x dies for a fraction.
  std::uint64_t die_read_busy_ns = 0;
  std::uint64_t die_program_busy_ns = 0;
  std::uint64_t die_erase_busy_ns = 0;
  std::uint64_t channel_busy_ns = 0;

  std::uint64_t nand_bytes_programmed_total() const {
    std::uint64_t sum = 0;
    for (const auto bytes : nand_bytes_programmed) sum += bytes;
    return sum;
  }
};

// What the key-value namespaces have done. Counters includes their host commands and bytes, and counts the flash of
// their runs in nand_bytes_programmed as the host's. These counters show which part that is.
struct KvCounters {
  std::uint64_t stores = 0;  // commands; a batch is one
  std::uint64_t stored_pairs = 0;
  std::uint64_t retrieves = 0;  // values; a batch retrieve counts each of its keys
  std::uint64_t deletes = 0;
  std::uint64_t exists = 0;
  std::uint64_t lists = 0;
  std::uint64_t scans = 0;  // iterates and bulk scans
  std::uint64_t scanned_pairs = 0;
  std::uint64_t resets = 0;
  std::uint64_t refused_for_capacity = 0;
  std::uint64_t stores_that_waited = 0;  // for the flush of a memtable
  std::uint64_t answered_from_dram = 0;  // retrieves
  std::uint64_t flushes = 0;             // memtables flushed to runs
  std::uint64_t compactions = 0;
  std::uint64_t bytes_flushed = 0;    // written to flash for memtables, whole mapping units
  std::uint64_t bytes_compacted = 0;  // written to flash by compaction, whole mapping units
  std::uint64_t core_busy_ns = 0;     // busy time of the one core that does all of it (K16)
};

}  // namespace spillway::ssd
