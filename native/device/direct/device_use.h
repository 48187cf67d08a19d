// Whether a block device is in use: mounted, held by a device made of it, or swapped to; itself or a partition of it.
#pragma once

#include <optional>
#include <string>

namespace spillway::device {

// Where the kernel says so. Arguments, so that a test can say something else.
struct SystemFiles {
  std::string mountinfo = "/proc/self/mountinfo";
  std::string swaps = "/proc/swaps";
  std::string dev_block = "/sys/dev/block";  // a directory MAJOR:MINOR for each device
};

// How it is used, to follow its name in a sentence ("is mounted at /"); nothing: not at all, as far as is known.
std::optional<std::string> use_of_device(unsigned major, unsigned minor, const SystemFiles& files = {});

}  // namespace spillway::device
