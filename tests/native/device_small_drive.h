// A drive that is small enough to be created in a test, and fast enough for a paced test.
#pragma once

#include "ssd/interface/config.h"

namespace spillway::device {

// 32 MiB: 2 channels x 2 dies x 1 plane, erase blocks of 32 flash pages of 4 KiB.
inline ssd::SsdConfig small_drive() {
  ssd::SsdConfig config;
  config.name = "small";
  config.geometry.channels = 2;
  config.geometry.dies_per_chip = 2;
  config.geometry.pages_per_block = 32;
  config.capacity.capacity_bytes = 32 << 20;
  config.capacity.spare_factor = 0.2;
  config.timing.read_ns = {40'000};
  config.timing.program_ns = {200'000};
  config.timing.erase_ns = 1'000'000;
  config.timing.read_command_ns = 5'000;
  config.timing.write_command_ns = 3'000;
  return config;
}

}  // namespace spillway::device
