// Ios as a volume makes them: cut from runs of pages, given to the drive, waited for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "fs/extents.h"
#include "fs/queue_pool.h"

namespace spillway::fs {

// These pages of the drive as ios of at most max_bytes each. The tag of each is its length.
std::vector<device::Io> make_ios(const std::vector<Extent>& parts, device::Opcode op, device::Cause cause,
                                 std::uint64_t max_bytes);

// What a round of waiting found: how many bytes are done, and the first fault.
struct Reaped {
  std::uint64_t bytes = 0;
  Fault fault = Fault::none;
};

// Waits for at_least ios and takes what is done. REQUIRES: the tag of every pending io is its length.
Reaped reap(device::Queue& queue, std::size_t at_least);

// A fault in words. `what` names what the drive was doing, such as "a write".
Status status_of(Fault fault, const std::string& what);

// Ios of no file in particular, in flight together and waited for. Does nothing once the pool is shut.
Status run(QueuePool& queues, const std::vector<device::Io>& ios, const std::string& what);

}  // namespace spillway::fs
