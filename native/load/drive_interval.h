// The work of a drive between two readings of its counters.
#pragma once

#include "device/device.h"
#include "ssd/interface/counters.h"

namespace spillway::load {

// Every counter's growth. REQUIRES: `before` was read earlier from the same drive.
ssd::Counters growth(const ssd::Counters& before, const ssd::Counters& after);
ssd::Counters sum(const ssd::Counters& a, const ssd::Counters& b);

struct DriveReading {
  device::Nanos now = 0;  // device time: model seconds, not real ones, if time is scaled or virtual
  ssd::Counters counters;
};
DriveReading read(device::Device& device);

// Fractions of the interval, in device time. 0 if the device does not report its number of dies or the speed of its
// link, or if no time has passed. An operation is charged when it starts. So a fraction may exceed 1 in a short
// interval, and the next one is lower by as much.
struct DriveInterval {
  ssd::Counters growth;
  double die_busy = 0;
  double channel_busy = 0;
  double link_write_utilisation = 0;
  double link_read_utilisation = 0;
};
DriveInterval between(const DriveReading& before, const DriveReading& after, const device::DeviceInfo& info);

}  // namespace spillway::load
