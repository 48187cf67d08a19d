// Measures one point on a device: a closed loop of numjobs x iodepth ios.
//
// In virtual time one thread plays all jobs on one queue, since nobody sleeps; in real time each job has a thread and a
// queue of its own, as fio's have.
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
  Nanos length_ns = 0;  // of the device's time
  bool complete = false;

  std::uint64_t ios() const { return read_latency.count() + write_latency.count(); }
};

// Told now and then how many ios have been counted; false ends the point early.
using Watch = std::function<bool(std::uint64_t ios)>;

// Every io has been waited for when it returns. A failed io ends the point with the device's fault.
// REQUIRES: check(point, extent) passed, and the extent is of the device.
Result<Measurement> measure(device::Device& device, const Point& point, const Extent& extent, std::uint64_t seed,
                            const Watch& watch);

}  // namespace spillway::probe
