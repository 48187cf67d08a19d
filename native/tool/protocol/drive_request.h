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

// `drive` of a request → the resolved drive. Without preset_dirs, those of this installation.
Result<device::Drive> read_drive(const Json& drive);

// `initial` of a request; null is a trimmed drive.
Result<device::InitialState> read_initial(const Json& initial);

// Brings a drive to its initial state and tells how far that is. False: `stop` came first, and the drive is somewhere
// on the way.
Result<bool> prepare(device::DriveModel& drive, const device::InitialState& initial, std::uint64_t seed, Events& events,
                     const std::atomic<bool>& stop);

// The resolved drive as every command shows it: the preset's tables with their keys, and what they come to.
Json shown(const device::Drive& drive);

// The relations' outcome: logical units, spare units, erase blocks.
Json shown(const ssd::Layout& layout);

// What garbage collection and the host have taken of a drive's flash, and what it is rated for; a disk has no physical
// bytes of flash.
Json shown(const device::Device::Wear& wear, const ssd::SsdConfig& config);

// {count, mean, p50, p99, p99_9, max} in microseconds.
Json latency_us(const Histogram& histogram);

// Processor time of this process so far, and the most memory it has held.
double cpu_seconds();
std::uint64_t peak_rss_bytes();

}  // namespace spillway::tool
