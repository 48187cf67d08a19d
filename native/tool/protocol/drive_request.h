// The parts of requests and results that every command with a drive shares.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/histogram.h"
#include "base/result.h"
#include "device/device.h"
#include "device/emulated/emulated.h"
#include "device/preset/preset.h"
#include "tool/protocol/events.h"

namespace spillway::tool {

// Resolves the `drive` of a request. Without preset_dirs, searches those of this installation.
Result<device::Drive> read_drive(const Json& drive);

// The `initial` of a request; null: a trimmed drive.
Result<device::InitialState> read_initial(const Json& initial);

// Brings a drive to its initial state and reports progress. False: `stop` was set first, and the drive is only partly
// prepared.
Result<bool> prepare(device::DriveModel& drive, const device::InitialState& initial, std::uint64_t seed, Events& events,
                     const std::atomic<bool>& stop);

// The resolved drive in the form that every command reports: the preset's tables with their keys, and derived values.
Json shown(const device::Drive& drive);

// Derived sizes: logical units, spare units, erase blocks.
Json shown(const ssd::Layout& layout);

// Use of a drive's flash by garbage collection and the host, and its rated endurance. A disk has no physical bytes of
// flash.
Json shown(const device::Device::Wear& wear, const ssd::SsdConfig& config);

// {count, mean, p50, p99, p99_9, max} in microseconds.
Json latency_us(const Histogram& histogram);

// Processor time of this process so far, and its peak memory.
double cpu_seconds();
std::uint64_t peak_rss_bytes();

}  // namespace spillway::tool
