// How near RocksDB is to a write stall.
#pragma once

#include <cstdint>

namespace spillway::spill {

// What RocksDB's properties say, and the limits that its options set. Of all column families: the one nearest to its
// limits.
struct Signals {
  bool is_stalled = false;  // by RocksDB's own word: it stops or delays writes
  int l0_files = 0;
  int immutable_memtables = 0;
  std::uint64_t pending_compaction_bytes = 0;

  int l0_compaction_trigger = 4;
  int l0_stop_trigger = 36;  // 0: none, as where automatic compactions are off
  int max_write_buffer_number = 2;
  std::uint64_t hard_pending_compaction_bytes = 0;  // 0: no limit
};

}  // namespace spillway::spill
