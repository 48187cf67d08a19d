// The I/Os of a volume: made from runs of pages, submitted to the drive, waited for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "fs/extents.h"
#include "fs/queue_pool.h"

namespace spillway::fs {

// I/Os of at most max_bytes each for these pages of the drive. The tag of each is its length.
std::vector<device::Io> make_ios(const std::vector<Extent>& parts, device::Opcode op, device::Cause cause,
                                 std::uint64_t max_bytes);

// The result of one wait: completed bytes, and the first fault.
struct Reaped {
  std::uint64_t bytes = 0;
  Fault fault = Fault::none;
};

// Waits for at_least I/Os and reaps all that have completed. REQUIRES: the tag of every pending I/O is its length.
Reaped reap(device::Queue& queue, std::size_t at_least);

// A fault as a message. `what` names what the drive was doing, such as "a write".
Status status_of(Fault fault, const std::string& what);

// Submits all I/Os, which belong to no particular file, and waits for them. Does nothing after the pool is shut.
Status run(QueuePool& queues, const std::vector<device::Io>& ios, const std::string& what);

}  // namespace spillway::fs
