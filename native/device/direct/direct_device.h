// A real drive as a Device: a DirectFile's reads and writes, through io_uring or by pread and pwrite.
//
// An io without data uses a buffer of its queue, registered with the kernel, so that nothing is mapped or copied for
// it. What it writes is not compressible and not repeated.
#pragma once

#include <cstdint>
#include <memory>

#include "device/device.h"
#include "device/direct/direct_file.h"

namespace spillway::device {

struct DirectQueues {
  bool io_uring = true;        // false: an io is executed during the wait for it, one at a time
  std::uint32_t depth = 1;     // most pending ios of a queue
  std::uint64_t io_bytes = 0;  // length of the longest io without data
};

// Whether this process may use io_uring. Containers and administrators often disable it.
bool io_uring_is_there();

// If a queue cannot be created (rings or memory are short), its first submit() returns the error. counters() has the
// host's commands and bytes; only the drive knows the other counts.
// REQUIRES: `file` outlives the device.
std::unique_ptr<Device> make_direct(const DirectFile& file, const DirectQueues& queues);

}  // namespace spillway::device
