// A drive in virtual time that another program holds: the program submits I/Os, and waits until some are complete.
//
// Time passes only while the program waits, says that it works, or issues. One thread issues the I/Os of the program
// one after another; each keeps it busy for as long as the drive's host stack says (device::Device::issue_ns). With
// `threads`, each I/O is issued by a thread of its own, all at the same time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "device/emulated/emulated.h"
#include "tool/ssd/held_drive_line.h"

namespace spillway::tool {

class HeldDrive {
 public:
  // REQUIRES: the drive is in its initial state, and idle
  HeldDrive(device::DriveModel drive, bool threads);

  // Does what the line says, in this order: works, submits, waits. Returns the completions in their order; their tags
  // are the numbers of the I/Os, from 0 in the order of submission.
  // Fault::bad_input, with nothing submitted, if the line does not fit the drive or what is in flight.
  // Fault::drive_full if an I/O failed for that.
  Result<std::vector<device::Done>> perform(const HeldDriveLine& line);

  // Waits for everything in flight, and for the drive's background work. Returns the time before the latter.
  device::Nanos finish();

  const device::DeviceInfo& info() const { return device_->info(); }
  device::Nanos now() { return device_->now(); }
  std::size_t in_flight() const { return queue_->pending(); }
  std::uint64_t submitted() const { return submitted_; }
  ssd::Counters counters() { return device_->counters(); }

 private:
  Status check(const HeldDriveLine& line) const;
  void spend_until_issued();
  void submit(std::span<const RequestedIo> ios);
  Result<std::vector<device::Done>> wait(std::size_t at_least);

  std::unique_ptr<device::EmulatedDevice> device_;
  std::unique_ptr<device::Queue> queue_;
  const bool threads_;
  std::uint64_t submitted_ = 0;
  device::Nanos issued_at_ = 0;  // when the issuing thread is free again
};

}  // namespace spillway::tool
