// Measures one point on a device: a closed loop of numjobs x iodepth ios.
//
// In virtual time one thread runs all jobs on one queue, because no thread waits. In real time each job has its own
// thread and queue, as in fio.
#pragma once

#include <cstdint>
#include <functional>

#include "base/histogram.h"
#include "base/result.h"
#include "device/device.h"
#include "probe/point.h"

namespace spillway::probe {

struct Measurement {
  Histogram read_latency;
  Histogram write_latency;
  Nanos length_ns = 0;  // device time
  bool complete = false;

  std::uint64_t ios() const { return read_latency.count() + write_latency.count(); }
};

// Called at intervals with the number of counted I/Os. Returns false to end the point early.
using Watch = std::function<bool(std::uint64_t ios)>;

// No I/O is in flight when it returns. A failed I/O ends the point with the device's fault.
// REQUIRES: check(point, extent) passed, and the extent is of the device.
Result<Measurement> measure(device::Device& device, const Point& point, const Extent& extent, std::uint64_t seed,
                            const Watch& watch);

}  // namespace spillway::probe
