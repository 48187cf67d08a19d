#include "fs/drive_ios.h"

#include <algorithm>
#include <array>
#include <memory>

#include "fs/volume.h"

namespace spillway::fs {

using device::Done;
using device::Io;

std::vector<Io> make_ios(const std::vector<Extent>& parts, device::Opcode op, Cause cause, std::uint64_t max_bytes) {
  std::vector<Io> ios;
  for (const Extent& part : parts) {
    std::uint64_t offset = part.first_page * kPageBytes;
    std::uint64_t left = part.pages * kPageBytes;
    while (left > 0) {
      const std::uint64_t length = std::min(left, max_bytes);
      ios.push_back({.tag = length, .op = op, .cause = cause, .offset_bytes = offset, .length_bytes = length});
      offset += length;
      left -= length;
    }
  }
  return ios;
}

Reaped reap(device::Queue& queue, std::size_t at_least) {
  Reaped reaped;
  std::array<Done, 32> done;
  do {
    const std::size_t n = queue.reap(done, std::min(at_least, done.size()));
    for (std::size_t i = 0; i < n; ++i) {
      reaped.bytes += done[i].tag;
      if (reaped.fault == Fault::none) reaped.fault = done[i].fault;
    }
    at_least -= std::min(at_least, n);
  } while (at_least > 0);
  return reaped;
}

Status status_of(Fault fault, const std::string& what) {
  switch (fault) {
    case Fault::none:
      return Status::ok();
    case Fault::drive_full:
      return Status::error(fault, "the drive has no clean erase block left for " + what +
                                      ": give it a larger spare factor, or write less");
    default:
      return Status::error(fault, "the drive failed " + what);
  }
}

Status run(QueuePool& queues, const std::vector<Io>& ios, const std::string& what) {
  if (ios.empty()) return Status::ok();
  auto queue = queues.borrow();
  if (!queue) return Status::ok();  // detached
  Status status = queue->submit(ios);
  if (status) status = status_of(reap(*queue, queue->pending()).fault, what);
  queues.give_back(std::move(queue));
  return status;
}

}  // namespace spillway::fs
