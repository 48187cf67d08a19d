// Points on drive models, against results computed from the model's own figures.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <tuple>

#include "device/faulty_device.h"
#include "device_small_drive.h"
#include "probe/measure.h"
#include "probe/target.h"

namespace spillway::probe {
namespace {

using device::InitialState;
using device::small_drive;

const WriteWatch kGoOnWriting = [](std::uint64_t, std::uint64_t) { return true; };
const Watch kGoOn = [](std::uint64_t) { return true; };

std::unique_ptr<Target> make(const ssd::SsdConfig& config, InitialState::Kind kind = InitialState::Kind::sequential,
                             std::optional<double> time_scale = std::nullopt) {
  EmulatedSpec spec;
  spec.drive.config = config;
  spec.initial.kind = kind;
  spec.time_scale = time_scale;
  auto made = make_emulated(std::move(spec), kGoOnWriting);
  EXPECT_TRUE(made) << made.status().message();
  return std::move(made->target);
}

Measurement measured(Target& target, const Point& point, std::uint64_t seed = 1) {
  const Extent extent = target.info().extent();
  EXPECT_TRUE(check(point, extent)) << check(point, extent).message();
  EXPECT_TRUE(target.admits(point)) << target.admits(point).message();
  auto result = measure(target.device_for(point), point, extent, seed, kGoOn);
  EXPECT_TRUE(result) << result.status().message();
  return result.value();
}

Point reads_of(std::uint32_t numjobs, std::uint32_t iodepth, std::uint64_t ios) {
  Point point;
  point.id = 1;
  point.numjobs = numjobs;
  point.iodepth = iodepth;
  point.ios = ios;
  return point;
}

double iops(const Measurement& result) {
  return static_cast<double>(result.ios()) * 1e9 / static_cast<double>(result.length_ns);
}

double moved_ns(double bytes, double mb_s) { return bytes * 1e3 / mb_s; }

// One at a time, a read takes the time of firmware, sense, channel and link, and nothing else.
TEST(Measure, OneReadAtATimeTakesTheModelledTime) {
  const ssd::SsdConfig config = small_drive();
  const auto target = make(config);
  const Measurement result = measured(*target, reads_of(1, 1, 2000));
  const double expected_ns =
      5'000 + 40'000 + moved_ns(4096, config.timing.channel_mb_s) + moved_ns(4096, config.timing.host_link_mb_s);
  EXPECT_NEAR(result.read_latency.mean_ns(), expected_ns, 3);
  EXPECT_NEAR(iops(result), 1e9 / expected_ns, 1);
  EXPECT_EQ(result.ios(), 2000U);
  EXPECT_TRUE(result.complete);
}

// A point of reads does not wait for what the write cache of the point before still holds.
TEST(Measure, AReadAfterWritesTakesTheModelledTime) {
  ssd::SsdConfig config = small_drive();
  config.write_cache.bytes = 4 << 20;
  const auto target = make(config, InitialState::Kind::steady);
  Point writes = reads_of(1, 32, 2000);
  writes.read_share = 0;
  measured(*target, writes);
  Point reads = reads_of(1, 1, 200);
  reads.id = 2;
  const Measurement result = measured(*target, reads);
  const double expected_ns =
      5'000 + 40'000 + moved_ns(4096, config.timing.channel_mb_s) + moved_ns(4096, config.timing.host_link_mb_s);
  EXPECT_NEAR(result.read_latency.mean_ns(), expected_ns, 3);
}

// With every die busy, throughput is the number of dies / the time that a read occupies one: sense, and the transfer
// out of the register.
TEST(Measure, DeepQueuesReachWhatTheDiesCan) {
  const ssd::SsdConfig config = small_drive();
  const auto target = make(config);
  Point point = reads_of(8, 32, 40'000);
  point.ramp_ios = 1000;
  const double dies = 4;
  const double most = dies * 1e9 / (40'000 + moved_ns(4096, config.timing.channel_mb_s));
  const double reached = iops(measured(*target, point));
  EXPECT_LE(reached, most * 1.001);
  EXPECT_GE(reached, most * 0.97);
}

using Shape = std::tuple<Pattern, double, std::uint32_t, std::uint32_t>;
class Little : public testing::TestWithParam<Shape> {};

// In flight = throughput x mean latency, for every closed loop that is kept full.
TEST_P(Little, HoldsForEveryPoint) {
  const auto [pattern, read_share, numjobs, iodepth] = GetParam();
  const auto target = make(small_drive(), InitialState::Kind::steady);
  Point point = reads_of(numjobs, iodepth, 20'000);
  point.pattern = pattern;
  point.read_share = read_share;
  if (pattern != Pattern::staggered) point.ramp_ios = 5000;
  const Measurement result = measured(*target, point);
  EXPECT_EQ(result.ios(), 20'000U);
  Histogram both = result.read_latency;
  both.merge(result.write_latency);
  const double in_flight = iops(result) * both.mean_ns() / 1e9;
  const double depth = numjobs * iodepth;
  // The edges of the window cut off up to iodepth of 20 000 ios at each end. A staggered point ends with the slowest
  // job.
  EXPECT_NEAR(in_flight, depth, depth * (0.001 + 2 * depth / 20'000 + (pattern == Pattern::staggered ? 0.03 : 0)));
}

INSTANTIATE_TEST_SUITE_P(Shapes, Little,
                         testing::Combine(testing::Values(Pattern::random, Pattern::sequential, Pattern::staggered),
                                          testing::Values(0.0, 0.5, 1.0), testing::Values(1, 8),
                                          testing::Values(1, 16)));

TEST(Measure, SameSeedSameFiguresAnotherSeedOthers) {
  const auto figures = [](std::uint64_t seed) {
    const auto target = make(small_drive(), InitialState::Kind::steady);
    Point point = reads_of(4, 8, 10'000);
    point.read_share = 0.5;
    const Measurement result = measured(*target, point, seed);
    return std::tuple(result.length_ns, result.read_latency.mean_ns(), result.write_latency.mean_ns(),
                      result.read_latency.max_ns(), result.write_latency.count());
  };
  EXPECT_EQ(figures(1), figures(1));
  EXPECT_NE(figures(1), figures(2));
}

TEST(Measure, EndsAfterSecondsOfTheDrivesTime) {
  const auto target = make(small_drive());
  Point point = reads_of(1, 4, 1);
  point.ios.reset();
  point.seconds = 0.05;
  const Measurement result = measured(*target, point);
  EXPECT_EQ(result.length_ns, 50'000'000);
  EXPECT_TRUE(result.complete);
  EXPECT_NEAR(iops(result), 4e9 / result.read_latency.mean_ns(), 0.005 * iops(result));
}

// Sequential writes into a full cache are as fast as the dies program; before, as fast as the link.
TEST(Measure, TheRampLeavesOutWhatTheWriteCacheHides) {
  ssd::SsdConfig config = small_drive();
  config.write_cache.bytes = 4 << 20;
  Point point = reads_of(1, 32, 900);  // of the 1024 units that the cache holds
  point.pattern = Pattern::sequential;
  point.read_share = 0;
  const auto hidden = make(config);
  const double burst = iops(measured(*hidden, point));
  point.ios = 4000;
  point.ramp_ios = 3000;
  const auto shown = make(config);
  const double lasting = iops(measured(*shown, point));
  const double erase_ns = 1'000'000.0 / config.geometry.pages_per_block;  // each flash page's share of it
  const double programmed = 4 * 1e9 / (200'000 + moved_ns(4096, config.timing.channel_mb_s) + erase_ns);
  // The last of 900 units is there when the link has carried all and the drive has worked on its command.
  const double link_ns = 4096e3 / config.timing.host_link_mb_s;
  const double linked = 900e9 / (900 * link_ns + static_cast<double>(config.timing.write_command_ns));
  EXPECT_NEAR(burst, linked, 0.01 * linked);
  EXPECT_NEAR(lasting, programmed, 0.05 * programmed);
}

TEST(Measure, AWatchThatReturnsFalseEndsThePoint) {
  const auto target = make(small_drive());
  const Point point = reads_of(1, 32, 1'000'000'000);
  int looks = 0;
  const auto result = measure(target->device_for(point), point, target->info().extent(), 1,
                              [&looks](std::uint64_t) { return ++looks < 3; });
  ASSERT_TRUE(result) << result.status().message();
  EXPECT_FALSE(result.value().complete);
  EXPECT_GT(result.value().ios(), 0U);
  EXPECT_LT(result.value().ios(), 1'000'000U);
}

TEST(Measure, AFailedIoEndsThePointWithItsFault) {
  const auto target = make(small_drive());
  const Point point = reads_of(1, 8, 1000);
  int ios = 0;
  device::FaultyDevice faulty(target->device_for(point), [&ios](const device::Io&) {
    return device::IoFault{.fault = ++ios == 500 ? Fault::io_error : Fault::none};
  });
  const auto result = measure(faulty, point, target->info().extent(), 1, kGoOn);
  EXPECT_EQ(result.status().fault(), Fault::io_error);
  EXPECT_EQ(result.status().message(), "point 1: a read failed on the drive");
  EXPECT_LT(ios, 520) << "nothing more is asked of a drive that fails";
}

TEST(Measure, PacedJobsHaveThreadsOfTheirOwnAndTakeRealTime) {
  const auto target = make(small_drive(), InitialState::Kind::sequential, 1.0);
  EXPECT_EQ(target->info().time_scale, 1);
  const Point point = reads_of(4, 2, 400);
  const Measurement result = measured(*target, point);
  EXPECT_EQ(result.ios(), 400U);
  EXPECT_TRUE(result.complete);
  EXPECT_GE(result.read_latency.min_ns(), 45'000U) << "no read is faster than its sense";
}

TEST(EmulatedTarget, StartsEachPointWithAQuietDrive) {
  const auto target = make(small_drive(), InitialState::Kind::steady);
  const double before = measured(*target, reads_of(1, 1, 500)).read_latency.mean_ns();
  Point writes = reads_of(1, 64, 5000);
  writes.read_share = 0;
  measured(*target, writes);
  EXPECT_NEAR(measured(*target, reads_of(1, 1, 500)).read_latency.mean_ns(), before, 0.01 * before);
}

TEST(EmulatedTarget, FillCreatesANewDriveWithThatMuchData) {
  const auto target = make(small_drive());
  EXPECT_EQ(target->info().range_bytes, 32U << 20);
  const auto written = target->reset_to_steady(0.5, kGoOnWriting);
  ASSERT_TRUE(written) << written.status().message();
  EXPECT_EQ(target->info().fill, 0.5);
  EXPECT_EQ(target->info().range_bytes, 16U << 20);
  const Point point = reads_of(1, 16, 5000);
  const std::uint64_t before = target->device_for(point).counters().unmapped_reads;
  measured(*target, point);
  EXPECT_EQ(target->device_for(point).counters().unmapped_reads, before) << "range 1 is what holds data";
}

TEST(EmulatedTarget, PrepareWritesAllOfItAndTakesNoModelTime) {
  const auto target = make(small_drive(), InitialState::Kind::trimmed);
  EXPECT_EQ(target->info().fill, 0);
  device::Device& device = target->device_for(reads_of(1, 1, 1));
  const device::Nanos before = device.now();
  const auto half = target->prepare({Preparation::Kind::sequential, 0.5, std::nullopt}, 1, kGoOnWriting);
  ASSERT_TRUE(half) << half.status().message();
  EXPECT_EQ(half.value().bytes, 16U << 20);
  EXPECT_EQ(target->info().range_bytes, 16U << 20);
  const auto all = target->prepare({Preparation::Kind::random, 2, std::nullopt}, 1, kGoOnWriting);
  ASSERT_TRUE(all) << all.status().message();
  EXPECT_TRUE(all.value().complete);
  EXPECT_EQ(all.value().bytes, 64U << 20);
  EXPECT_EQ(target->info().range_bytes, 32U << 20);
  EXPECT_GT(*target->info().fill, 0.85);  // 1 - (1 - 1/2)e^-2 = 0.93 of the units, less what arrives out of order
  EXPECT_EQ(device.now(), before);
  const auto stopped = target->prepare({Preparation::Kind::random, 100, std::nullopt}, 1,
                                       [](std::uint64_t done, std::uint64_t) { return done == 0; });
  ASSERT_TRUE(stopped) << stopped.status().message();
  EXPECT_FALSE(stopped.value().complete);
}

TEST(EmulatedTarget, RandomWritesNeedSpareFlash) {
  ssd::SsdConfig config = small_drive();
  config.capacity.spare_factor = 0;
  const auto target = make(config);
  Point point = reads_of(1, 1, 10);
  point.read_share = 0;
  EXPECT_TRUE(target->admits(point).message().starts_with("point 1: capacity.spare_factor leaves random writes"))
      << target->admits(point).message();
  point.range = 0.5;
  EXPECT_TRUE(target->admits(point));
  point.range = 1;
  point.pattern = Pattern::sequential;
  EXPECT_TRUE(target->admits(point));
  const auto written = target->prepare({Preparation::Kind::random, 1, std::nullopt}, 1, kGoOnWriting);
  EXPECT_EQ(written.status().fault(), Fault::bad_input);
}

}  // namespace
}  // namespace spillway::probe
