// Whether a block device or one of its partitions is in use: mounted, part of another device, or used for swap.
#pragma once

#include <optional>
#include <string>

namespace spillway::device {

// Where the kernel reports that. Parameters, so that a test can replace them.
struct SystemFiles {
  std::string mountinfo = "/proc/self/mountinfo";
  std::string swaps = "/proc/swaps";
  std::string dev_block = "/sys/dev/block";  // a directory MAJOR:MINOR for each device
};

// How it is used, as a phrase that follows its name ("is mounted at /"); none if it is not in use, as far as is known.
std::optional<std::string> use_of_device(unsigned major, unsigned minor, const SystemFiles& files = {});

}  // namespace spillway::device
