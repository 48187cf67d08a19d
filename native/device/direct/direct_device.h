// A real drive as a Device: a DirectFile's reads and writes, through io_uring or by pread and pwrite.
//
// An io without data of its own uses a buffer of its queue, registered with the kernel, so that nothing is mapped or
// copied for it; what it writes does not compress and is nowhere the same.
#pragma once

#include <cstdint>
#include <memory>

#include "device/device.h"
#include "device/direct/direct_file.h"

namespace spillway::device {

struct DirectQueues {
  bool io_uring = true;        // false: an io is done while it is waited for, one at a time
  std::uint32_t depth = 1;     // ios that a queue may have pending
  std::uint64_t io_bytes = 0;  // the longest io without data of its own
};

// Whether this kernel lets this process have io_uring: containers and cautious administrators often switch it off.
bool io_uring_is_there();

// A queue that cannot be had (rings or memory are short) says so when it is first submitted to.
// counters() has the host's commands and bytes; the rest of them only the drive knows.
// REQUIRES: `file` outlives the device.
std::unique_ptr<Device> make_direct(const DirectFile& file, const DirectQueues& queues);

}  // namespace spillway::device
