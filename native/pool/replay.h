// Replays a trace through a buffer pool, and returns its cost in the drive's time.
#pragma once

#include <cstdint>
#include <functional>

#include "base/histogram.h"
#include "base/result.h"
#include "pool/buffer_pool.h"
#include "pool/trace.h"

namespace spillway::pool {

struct ReplayEnds {
  std::uint64_t warmup = 0;      // references before the first counted one; they fill the pool and dirty its pages
  std::uint64_t operations = 0;  // counted references, unless the trace ends first
};

struct ReplayResult {
  std::uint64_t operations = 0;
  std::uint64_t writes = 0;
  device::Nanos duration_ns = 0;  // device time
  Histogram latency;              // of a reference; a hit takes no device time in virtual time
  Histogram miss_latency;
  PoolCounters counters;
  ssd::Counters drive_before;  // when the first counted reference began
  bool complete = false;       // false: the watch ended it
};

// Called at intervals with the number of references so far, including the warm-up. Returns false to end the replay
// early.
using Watch = std::function<bool(std::uint64_t references)>;

// Issues one reference after another, as one thread does. Ends with the device's fault if an I/O fails.
Result<ReplayResult> replay(device::Device& device, BufferPool& pool, Trace& trace, const ReplayEnds& ends,
                            const Watch& watch);

}  // namespace spillway::pool
