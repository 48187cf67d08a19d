// Initial states: how much of the drive holds data, and which requests are refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "device/emulated/emulated.h"
#include "device_small_drive.h"
#include "ssd/structures/random.h"

namespace spillway::device {
namespace {

using Kind = InitialState::Kind;

Status prepared(const InitialState& initial, std::uint64_t& mapped, ssd::SsdConfig config = small_drive()) {
  ssd::Ssd ssd(config, 1);
  Status status = prepare(ssd, initial, 1);
  mapped = ssd.mapped_units();
  if (status) {
    EXPECT_EQ(ssd.audit(), std::nullopt);
    EXPECT_EQ(ssd.counters().nand_bytes_programmed_total(), 0U) << "what came before is history";
  }
  return status;
}

TEST(InitialState, FillsTheGivenShare) {
  const std::uint64_t units = ssd::layout(small_drive()).logical_units;
  std::uint64_t mapped = 0;
  EXPECT_TRUE(prepared({.kind = Kind::trimmed, .path = ""}, mapped));
  EXPECT_EQ(mapped, 0U);
  EXPECT_TRUE(prepared({.kind = Kind::sequential, .fill = 0.5, .path = ""}, mapped));
  EXPECT_EQ(mapped, units / 2);
  EXPECT_TRUE(prepared({.kind = Kind::steady, .fill = 1, .path = ""}, mapped));
  EXPECT_EQ(mapped, units);
  EXPECT_TRUE(prepared({.kind = Kind::sequential, .fill = 0.75, .warmup_capacities = 2, .path = ""}, mapped));
  EXPECT_EQ(mapped, units * 3 / 4) << "a warm-up stays within the filled range";
  EXPECT_TRUE(prepared({.kind = Kind::steady, .fill = 0, .path = ""}, mapped));
  EXPECT_EQ(mapped, 0U);
}

// The data takes half the flash, so a drive that is full of it is overwritten like one with twice the flash.
TEST(InitialState, UsesTheCompressionRatioOfItsData) {
  ssd::SsdConfig config = small_drive();
  config.geometry.page_bytes = 16384;
  config.geometry.pages_per_block = 8;
  config.compression.granule_bytes = 512;
  for (const Kind kind : {Kind::sequential, Kind::steady}) {
    ssd::Ssd ssd(config, 1);
    ASSERT_TRUE(prepare(ssd, {.kind = kind, .compression_ratio = 0.5, .path = ""}, 1));
    const std::uint64_t units = ssd.layout().logical_units;
    for (std::uint64_t i = 0; i < units; ++i) ssd.overwrite(i, 128);
    const auto nand = static_cast<double>(ssd.counters().nand_bytes_programmed_total());
    EXPECT_LT(nand, 0.75 * 4096 * static_cast<double>(units));
    EXPECT_EQ(ssd.audit(), std::nullopt);
  }
}

// The compressed share of an Io reaches the flash.
TEST(Compression, UsesTheShareOfTheIo) {
  ssd::SsdConfig config = small_drive();
  config.geometry.page_bytes = 16384;
  config.geometry.pages_per_block = 8;
  config.compression.granule_bytes = 512;
  for (const double ratio : {1.0, 0.5}) {
    auto device = make_simulated(ssd::Ssd(config, 1));
    auto queue = device->open_queue();
    for (std::uint64_t at = 0; at < config.capacity.capacity_bytes; at += 1 << 20) {
      Io io;
      io.op = Opcode::write;
      io.offset_bytes = at;
      io.length_bytes = 1 << 20;
      io.compressed_share = share_of(ratio);
      ASSERT_TRUE(run(*queue, io));
    }
    const auto nand = static_cast<double>(device->counters().nand_bytes_programmed_total());
    EXPECT_NEAR(nand / static_cast<double>(config.capacity.capacity_bytes), ratio, 0.02);
  }
}

using Partition = InitialState::Partition;

InitialState with_partition(Kind kind, Partition partition, std::uint64_t bytes) {
  InitialState initial;
  initial.kind = kind;
  initial.partition = partition;
  initial.partition_bytes = bytes;
  return initial;
}

// The talk's four procedures (B4): the drive is used or trimmed, and then its partition is trimmed or written.
TEST(InitialState, APartitionIsTrimmedOrPreconditionedAndTheRestStays) {
  const ssd::SsdConfig config = small_drive();
  const std::uint64_t units = ssd::layout(config).logical_units;
  const std::uint64_t half_bytes = config.capacity.capacity_bytes / 2;
  std::uint64_t mapped = 0;
  EXPECT_TRUE(prepared(with_partition(Kind::steady, Partition::trimmed, half_bytes), mapped));
  EXPECT_EQ(mapped, units / 2) << "what lies behind the partition keeps its flash";
  EXPECT_TRUE(prepared(with_partition(Kind::steady, Partition::preconditioned, half_bytes), mapped));
  EXPECT_EQ(mapped, units);
  EXPECT_TRUE(prepared(with_partition(Kind::trimmed, Partition::trimmed, half_bytes), mapped));
  EXPECT_EQ(mapped, 0U);
  EXPECT_TRUE(prepared(with_partition(Kind::trimmed, Partition::preconditioned, half_bytes), mapped));
  EXPECT_EQ(mapped, units / 2);
  EXPECT_TRUE(prepared(with_partition(Kind::steady, Partition::trimmed, 0), mapped));
  EXPECT_EQ(mapped, 0U) << "without a size it is the whole drive";
}

// Unused flash is spare: writing to the partition of a trimmed drive costs less than to the same one of a full drive.
TEST(InitialState, DataOutsideThePartitionDeterminesItsWriteAmplification) {
  const ssd::SsdConfig config = small_drive();
  const std::uint64_t half = ssd::layout(config).logical_units / 2;
  std::vector<double> costs;
  for (const Kind kind : {Kind::trimmed, Kind::steady}) {
    ssd::Ssd ssd(config, 1);
    ASSERT_TRUE(prepare(ssd, with_partition(kind, Partition::preconditioned, config.capacity.capacity_bytes / 2), 1));
    ssd::Random random(7);
    for (std::uint64_t i = 0; i < 2 * half; ++i) ssd.overwrite(random.below(half));
    costs.push_back(static_cast<double>(ssd.counters().nand_bytes_programmed_total()) /
                    (2.0 * 4096 * static_cast<double>(half)));
    EXPECT_EQ(ssd.audit(), std::nullopt);
  }
  EXPECT_LT(costs[0], 1.2);
  EXPECT_GT(costs[1], 1.5);
}

TEST(InitialState, RefusesImpossibleStates) {
  std::uint64_t mapped = 0;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const InitialState& initial :
       {InitialState{.kind = Kind::steady, .fill = 1.1, .path = ""},
        InitialState{.kind = Kind::steady, .fill = nan, .path = ""},
        InitialState{.kind = Kind::steady, .warmup_capacities = -1, .path = ""},
        InitialState{.kind = Kind::steady, .compression_ratio = 0, .path = ""},
        InitialState{.kind = Kind::steady, .compression_ratio = 1.5, .path = ""},
        InitialState{.kind = Kind::trimmed, .warmup_capacities = 1, .path = ""},
        InitialState{.kind = Kind::sequential, .fill = 0, .warmup_capacities = 1, .path = ""},
        InitialState{.kind = Kind::file, .path = ""}}) {
    const Status status = prepared(initial, mapped);
    EXPECT_EQ(status.fault(), Fault::bad_input);
    EXPECT_TRUE(status.message().starts_with("initial.")) << status.message();
  }
}

TEST(InitialState, RandomOverwritesNeedSpareFlash) {
  ssd::SsdConfig config = small_drive();
  config.capacity.spare_factor = 0;
  std::uint64_t mapped = 0;
  EXPECT_TRUE(prepared({.kind = Kind::sequential, .path = ""}, mapped, config));
  const Status status = prepared({.kind = Kind::steady, .path = ""}, mapped, config);
  EXPECT_EQ(status.fault(), Fault::bad_input);
  EXPECT_TRUE(status.message().starts_with("capacity.spare_factor ")) << status.message();
}

TEST(InitialState, ReportsItsProgress) {
  ssd::Ssd ssd(small_drive(), 1);
  std::vector<std::uint64_t> told;
  std::uint64_t last_total = 0;
  ASSERT_TRUE(prepare(ssd, {.kind = Kind::sequential, .fill = 0.5, .warmup_capacities = 20, .path = ""}, 1,
                      [&](std::uint64_t done, std::uint64_t total) {
                        told.push_back(done);
                        last_total = total;
                        return true;
                      }));
  EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
  EXPECT_EQ(told.front(), 0U);
  EXPECT_EQ(told.back(), last_total);
  EXPECT_EQ(last_total, ssd.layout().logical_units / 2 * 21);
}

TEST(InitialState, StopsEarlyAndLeavesAConsistentDrive) {
  for (const Kind kind : {Kind::sequential, Kind::steady}) {
    ssd::Ssd ssd(small_drive(), 1);
    std::uint64_t reached = 0;
    const Status status =
        prepare(ssd, {.kind = kind, .warmup_capacities = 1e6, .path = ""}, 1, [&](std::uint64_t done, std::uint64_t) {
          reached = done;
          return done < 100'000;
        });
    EXPECT_EQ(status.fault(), Fault::stopped);
    EXPECT_LT(reached, 200'000U) << "once told to stop it writes no more";
    EXPECT_EQ(ssd.audit(), std::nullopt);
  }
}

TEST(InitialState, KindsHaveNames) {
  EXPECT_EQ(parse_initial_kind("steady").value(), Kind::steady);
  EXPECT_EQ(parse_initial_kind("trimmed").value(), Kind::trimmed);
  EXPECT_EQ(parse_initial_kind("sequential").value(), Kind::sequential);
  EXPECT_EQ(parse_initial_kind("file").value(), Kind::file);
  EXPECT_EQ(parse_initial_kind("stedy").status().message(),
            "initial.kind \"stedy\" is not known; did you mean steady?");
  EXPECT_EQ(parse_initial_kind("").status().fault(), Fault::bad_input);
}

}  // namespace
}  // namespace spillway::device
