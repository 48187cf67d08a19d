#include "tool/ssd/held_drive.h"

#include <string>
#include <utility>

namespace spillway::tool {
namespace {

std::string of_io(std::size_t index, const char* field, std::uint64_t value, const std::string& takes) {
  return "submit." + std::string(field) + "[" + std::to_string(index) + "] is " + std::to_string(value) +
         "; it takes " + takes;
}

Status check_io(const RequestedIo& io, std::size_t index, const device::DeviceInfo& drive) {
  const std::string lbas = "a multiple of the drive's " + std::to_string(drive.lba_bytes) + "-byte LBAs";
  if (io.offset_bytes % drive.lba_bytes != 0) {
    return Status::bad_input(of_io(index, "offset_bytes", io.offset_bytes, lbas));
  }
  if (io.length_bytes == 0 || io.length_bytes % drive.lba_bytes != 0) {
    return Status::bad_input(of_io(index, "length_bytes", io.length_bytes, lbas + ", at least one"));
  }
  if (io.offset_bytes >= drive.capacity_bytes || io.length_bytes > drive.capacity_bytes - io.offset_bytes) {
    return Status::bad_input("submit: io " + std::to_string(index) + " ends at byte " +
                             std::to_string(io.offset_bytes + io.length_bytes) + "; the drive has " +
                             std::to_string(drive.capacity_bytes));
  }
  return {};
}

Status drive_is_full() {
  return Status::error(Fault::drive_full,
                       "the drive has no clean erase block left and garbage collection cannot make one; raise "
                       "capacity.spare_factor or lower initial.fill");
}

}  // namespace

HeldDrive::HeldDrive(device::DriveModel drive, bool threads)
    : device_(device::make_simulated(std::move(drive))), queue_(device_->open_queue()), threads_(threads) {}

Result<std::vector<device::Done>> HeldDrive::perform(const HeldDriveLine& line) {
  if (Status status = check(line); !status) {
    return Status::error(status.fault(), "line " + std::to_string(line.number) + ": " + status.message());
  }
  if (line.spend_ns > 0) {
    spend_until_issued();
    device_->spend(line.spend_ns);
  }
  submit(line.ios);
  return wait(line.wait);
}

Status HeldDrive::check(const HeldDriveLine& line) const {
  for (std::size_t i = 0; i < line.ios.size(); ++i) {
    if (Status status = check_io(line.ios[i], i, info()); !status) return status;
  }
  const std::size_t most = queue_->pending() + line.ios.size();
  if (most > kMostInFlight) {
    return Status::bad_input("submit: " + std::to_string(most) + " ios would be in flight; at most " +
                             std::to_string(kMostInFlight) + " may be");
  }
  if (line.wait > most) {
    return Status::bad_input("wait is " + std::to_string(line.wait) + ", and " + std::to_string(most) +
                             " ios are in flight");
  }
  return {};
}

void HeldDrive::spend_until_issued() {
  const device::Nanos now = device_->now();
  if (issued_at_ > now) device_->spend(issued_at_ - now);
}

void HeldDrive::submit(std::span<const RequestedIo> ios) {
  for (const RequestedIo& wanted : ios) {
    device::Io io;
    io.tag = submitted_++;
    io.op = wanted.op;
    io.offset_bytes = wanted.offset_bytes;
    io.length_bytes = wanted.length_bytes;
    if (!threads_) spend_until_issued();
    static_cast<void>(queue_->submit({&io, 1}));  // check() has found nothing that the drive refuses
    if (!threads_) issued_at_ = device_->now() + device_->issue_ns(io);
  }
}

Result<std::vector<device::Done>> HeldDrive::wait(std::size_t at_least) {
  std::vector<device::Done> done;
  if (at_least == 0) return done;
  // The thread that issues is the one that waits.
  spend_until_issued();
  done.resize(queue_->pending());
  done.resize(queue_->reap(done, at_least));
  for (const device::Done& each : done) {
    if (each.fault != Fault::none) return drive_is_full();
  }
  return done;
}

device::Nanos HeldDrive::finish() {
  std::vector<device::Done> done(queue_->pending());
  queue_->reap(done, done.size());
  const device::Nanos now = device_->now();
  static_cast<void>(device_->drive());  // completes the drive's background work
  return now;
}

}  // namespace spillway::tool
