// The work of a drive between two readings of its counters.
#pragma once

#include "device/device.h"
#include "ssd/interface/counters.h"

namespace spillway::load {

// Every counter's growth. REQUIRES: `before` was read earlier from the same drive.
ssd::Counters growth(const ssd::Counters& before, const ssd::Counters& after);
ssd::Counters sum(const ssd::Counters& a, const ssd::Counters& b);

struct DriveReading {
  device::Nanos now = 0;  // the device's time: model seconds, not real ones, where time is dilated or virtual
  ssd::Counters counters;
};
DriveReading read(device::Device& device);

// Fractions of the interval, in the device's time; 0 where the device does not say how many dies it has, how fast its
// link is, or where no time went by. An operation is charged when it starts, so a fraction may pass 1 in a short
// interval and the next be lower by as much.
struct DriveInterval {
  ssd::Counters growth;
  double die_busy = 0;
  double channel_busy = 0;
  double link_write_utilisation = 0;
  double link_read_utilisation = 0;
};
DriveInterval between(const DriveReading& before, const DriveReading& after, const device::DeviceInfo& info);

}  // namespace spillway::load
