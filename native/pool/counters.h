// What a buffer pool did, and how long its caller waited for the drive.
#pragma once

#include <cstdint>

#include "device/device.h"

namespace spillway::pool {

struct PoolCounters {
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  std::uint64_t pages_read = 0;  // including prefetched ones
  std::uint64_t pages_written = 0;
  std::uint64_t pages_written_in_vain = 0;  // of those: changed again before their frame was reused
  std::uint64_t pages_prefetched = 0;
  std::uint64_t prefetched_hits = 0;  // first requests of prefetched pages
  std::uint64_t write_batches = 0;    // evictions that had to write first, and flushes
  std::uint64_t evictions = 0;
  device::Nanos write_wait_ns = 0;  // device time that the pool's caller waited
  device::Nanos read_wait_ns = 0;
};

}  // namespace spillway::pool
