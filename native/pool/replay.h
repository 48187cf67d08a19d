// A trace through a buffer pool: what it took, in the drive's own time.
#pragma once

#include <cstdint>
#include <functional>

#include "base/histogram.h"
#include "base/result.h"
#include "pool/buffer_pool.h"
#include "pool/trace.h"

namespace spillway::pool {

struct ReplayEnds {
  std::uint64_t warmup = 0;      // references before the first that counts: they fill the pool and dirty its pages
  std::uint64_t operations = 0;  // references that count, unless the trace ends first
};

struct ReplayResult {
  std::uint64_t operations = 0;
  std::uint64_t writes = 0;
  device::Nanos duration_ns = 0;  // of the device's time
  Histogram latency;              // of a reference; a hit takes no time of a drive in virtual time
  Histogram miss_latency;
  PoolCounters counters;
  ssd::Counters drive_before;  // as the first reference that counts began
  bool complete = false;       // false: the watch ended it
};

// Told now and then how many references are done, the warm-up's too; false ends the replay early.
using Watch = std::function<bool(std::uint64_t references)>;

// One reference after another, as one thread issues them. Ends with the device's fault where an io fails.
Result<ReplayResult> replay(device::Device& device, BufferPool& pool, Trace& trace, const ReplayEnds& ends,
                            const Watch& watch);

}  // namespace spillway::pool
