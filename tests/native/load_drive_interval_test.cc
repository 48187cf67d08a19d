#include <gtest/gtest.h>

#include "load/drive_interval.h"

namespace spillway::load {
namespace {

ssd::Counters some(std::uint64_t factor) {
  ssd::Counters c;
  c.host_bytes_written = 100 * factor;
  c.host_bytes_read = 40 * factor;
  c.host_bytes_written_by_cause[2] = 60 * factor;
  c.nand_bytes_programmed = {10 * factor, 20 * factor, 30 * factor, 40 * factor, 50 * factor};
  c.erases = 3 * factor;
  c.die_read_busy_ns = 100 * factor;
  c.die_program_busy_ns = 200 * factor;
  c.die_erase_busy_ns = 300 * factor;
  c.channel_busy_ns = 250 * factor;
  return c;
}

TEST(LoadDriveInterval, GrowthIsTheDifferenceOfEveryCounter) {
  const ssd::Counters grown = growth(some(2), some(5));
  EXPECT_EQ(grown.host_bytes_written, 300U);
  EXPECT_EQ(grown.host_bytes_written_by_cause[2], 180U);
  EXPECT_EQ(grown.nand_bytes_programmed, (std::array<std::uint64_t, ssd::kFlashCauses>{30, 60, 90, 120, 150}));
  EXPECT_EQ(grown.erases, 9U);
  EXPECT_EQ(sum(grown, some(2)).channel_busy_ns, some(5).channel_busy_ns);
  EXPECT_EQ(sum(grown, some(2)).nand_bytes_programmed, some(5).nand_bytes_programmed);
}

// 2 dies over 1000 ns of the drive's time: 600 ns of work are 0.3. One channel: 250 ns are 0.25. A link of 1000 MB/s
// carries one byte a nanosecond: 100 of 1000 bytes are 0.1.
TEST(LoadDriveInterval, FractionsAreOfTheDrivesTimeAndParts) {
  device::DeviceInfo info;
  info.dies = 2;
  info.channels = 1;
  info.host_link_mb_s = 1000;
  const DriveInterval interval = between({5000, some(1)}, {6000, some(2)}, info);
  EXPECT_DOUBLE_EQ(interval.die_busy, 0.3);
  EXPECT_DOUBLE_EQ(interval.channel_busy, 0.25);
  EXPECT_DOUBLE_EQ(interval.link_write_utilisation, 0.1);
  EXPECT_DOUBLE_EQ(interval.link_read_utilisation, 0.04);
}

TEST(LoadDriveInterval, WhatIsNotKnownIsZeroAndNotInfinite) {
  const DriveInterval interval = between({5000, some(1)}, {6000, some(2)}, device::DeviceInfo());
  EXPECT_EQ(interval.die_busy, 0);
  EXPECT_EQ(interval.link_write_utilisation, 0);
  device::DeviceInfo info;
  info.dies = 2;
  EXPECT_EQ(between({5000, some(1)}, {5000, some(2)}, info).die_busy, 0) << "no time went by";
}

}  // namespace
}  // namespace spillway::load
