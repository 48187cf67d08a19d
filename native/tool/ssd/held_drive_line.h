// The input lines of `ssd-interact`, read and checked as far as that is possible without the drive.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "tool/protocol/events.h"

namespace spillway::tool {

struct RequestedIo {
  device::Opcode op = device::Opcode::read;
  std::uint64_t offset_bytes = 0;
  std::uint64_t length_bytes = 0;
};

struct HeldDriveLine {
  int number = 0;              // of the line, for messages
  device::Nanos spend_ns = 0;  // first: the program works for so long
  std::vector<RequestedIo> ios;
  std::uint64_t wait = 0;  // then: until at least so many of those in flight are complete; 0: does not wait
  bool end = false;
};

// As many as an NVMe queue holds.
inline constexpr std::uint64_t kMostInFlight = 65536;

Result<HeldDriveLine> read_held_drive_line(const std::string& text, int number);

}  // namespace spillway::tool
