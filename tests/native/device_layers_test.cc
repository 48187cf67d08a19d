// What surrounds a drive: host stacks and caps. Each against the closed form that its header states.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "device/drive_model.h"
#include "device/emulated.h"
#include "device/preset.h"
#include "device_closed_loop.h"
#include "device_small_drive.h"
#include "ssd/random.h"

namespace spillway::device {
namespace {

using ssd::Command;
using ssd::Completion;
using ssd::Opcode;

Drive bare_drive() {
  Drive drive;
  drive.config = small_drive();
  return drive;
}

Drive drive_with(const HostStack& stack) {
  Drive drive = bare_drive();
  drive.host_stacks["test"] = stack;
  drive.host_stack = "test";
  return drive;
}

DriveModel filled(const Drive& drive) {
  DriveModel model(drive, 1);
  if (ssd::Ssd* const flash = model.flash()) flash->fill(0, flash->layout().logical_units);
  model.reset_counters();
  return model;
}

Measured measure(const Drive& drive, Opcode op, std::uint32_t concurrency, std::uint64_t count = 2000) {
  DriveModel model = filled(drive);
  return closed_loop(model, concurrency, count, random_4k(op, model.capacity_bytes()));
}

TEST(DriveModel, WithoutLayersIsTheFlashModelItself) {
  const std::vector<Completion> whole = measure(bare_drive(), Opcode::read, 8).completions;
  ssd::Ssd flash(small_drive(), 1);
  flash.fill(0, flash.layout().logical_units);
  DriveModel alone(std::move(flash));
  expect_same(whole, closed_loop(alone, 8, 2000, random_4k(Opcode::read, alone.capacity_bytes())).completions);
}

TEST(HostStack, AddsItsCostsToOneCommandAlone) {
  HostStack stack;
  stack.read_submit_ns = 3'000;
  stack.read_turn_ns = 2'000;
  stack.read_serial_ns = 700;
  stack.read_serial_mb_s = 4096;  // 4 KiB in 1 us
  stack.read_copy_mb_s = 2048;    // in 2 us
  stack.read_complete_ns = 1'300;
  const Measured bare = measure(bare_drive(), Opcode::read, 1);
  EXPECT_NEAR(measure(drive_with(stack), Opcode::read, 1).mean_latency_ns, bare.mean_latency_ns + 10'000, 1.0);
  // Writes have costs of their own, here none.
  EXPECT_NEAR(measure(drive_with(stack), Opcode::write, 1).mean_latency_ns,
              measure(bare_drive(), Opcode::write, 1).mean_latency_ns, 1.0);
}

TEST(HostStack, CostsBesideAllOthersDoNotLimitThroughput) {
  HostStack stack;
  stack.read_submit_ns = 100'000;
  const Measured bare = measure(bare_drive(), Opcode::read, 256, 20'000);
  EXPECT_NEAR(measure(drive_with(stack), Opcode::read, 256, 20'000).iops / bare.iops, 1.0, 0.1);
}

TEST(HostStack, ALockLimitsThroughputToItsOwnTime) {
  HostStack stack;
  stack.read_serial_ns = 200'000;
  const Drive drive = drive_with(stack);
  EXPECT_NEAR(measure(drive, Opcode::read, 16).iops, 1e9 / 200e3, 60);
  EXPECT_NEAR(measure(drive, Opcode::read, 64).iops, 1e9 / 200e3, 60);
}

// A turn is paid once for all that wait: T(c) = c / (turn + c x serial) when the rest takes no time.
TEST(HostStack, ATurnIsShared) {
  HostStack stack;
  stack.read_turn_ns = 5'000'000;
  stack.read_serial_ns = 100'000;
  for (const std::uint32_t concurrency : {1U, 4U, 32U}) {
    const double alone = 1e9 / (5e6 + 1e5);
    const double expected = concurrency == 1 ? alone : concurrency / 2.0 * 1e9 / (5e6 + concurrency / 2.0 * 1e5);
    const double iops = measure(drive_with(stack), Opcode::read, concurrency).iops;
    // Two crowds may take turns, or one crowd ride together: between half and all of them share a turn.
    EXPECT_GT(iops, 0.9 * expected) << concurrency;
    EXPECT_LT(iops, 1.05 * concurrency * 1e9 / (5e6 + concurrency * 1e5)) << concurrency;
  }
}

// Waking is paid for by those who wait, and by nobody who is alone.
TEST(HostStack, OnlyWhoWaitsIsWoken) {
  HostStack stack;
  stack.read_wake_ns = 1'500'000;
  stack.read_wake_mb_s = 4096.0 / 500'000 * 1000;  // 4 KiB in 0.5 ms
  stack.read_serial_ns = 100'000;
  const Measured bare = measure(bare_drive(), Opcode::read, 1);
  EXPECT_NEAR(measure(drive_with(stack), Opcode::read, 1).mean_latency_ns, bare.mean_latency_ns + 100'000, 1.0);
  const double iops = measure(drive_with(stack), Opcode::read, 32).iops;
  EXPECT_LT(iops, 1.05 * 32 * 1e9 / (2e6 + 32 * 1e5)) << "a turn of all of them";
  EXPECT_GT(iops, 0.85 * 32 * 1e9 / (2e6 + 32 * 1e5));
}

TEST(HostStack, PartialBlocksGoOneAtATime) {
  HostStack stack;
  stack.write_complete_ns = 300'000;
  stack.block_bytes = 4096;
  // Few enough for the write cache: the drive itself takes its time for none of them.
  const auto write = [&stack](std::uint32_t lbas, std::uint32_t concurrency) {
    DriveModel model = filled(drive_with(stack));
    ssd::Random random(7);
    const std::uint64_t places = model.capacity_bytes() / 4096;
    return closed_loop(model, concurrency, 48, [&] {
      return Command{.op = Opcode::write, .lba_count = lbas, .lba = random.below(places) * kLbasIn4k};
    });
  };
  EXPECT_NEAR(write(2, 16).iops / write(2, 1).iops, 1.0, 0.02) << "no faster with more";
  EXPECT_GT(write(kLbasIn4k, 16).iops / write(kLbasIn4k, 1).iops, 12.0) << "whole blocks are";
  EXPECT_EQ(write(2, 16).completions.size(), 48U) << "nobody is left behind";
}

TEST(Cap, RationsCommandsAndBytes) {
  Drive by_count = bare_drive();
  by_count.cap.iops = 500;
  EXPECT_NEAR(measure(by_count, Opcode::read, 32).iops, 500, 10);
  EXPECT_NEAR(measure(by_count, Opcode::write, 32).iops, 500, 10);
  Drive by_bytes = bare_drive();
  by_bytes.cap.bandwidth_mb_s = 1;
  EXPECT_NEAR(measure(by_bytes, Opcode::read, 32).iops, 1e6 / 4096, 6);
}

TEST(Cap, TheNetworkIsThereAndBack) {
  Drive drive = bare_drive();
  drive.cap.read_network_ns = 150'000;
  const double alone = measure(bare_drive(), Opcode::read, 1).mean_latency_ns;
  EXPECT_NEAR(measure(drive, Opcode::read, 1).mean_latency_ns, alone + 150'000, 1.0);
}

TEST(Cap, AnIdleDriveMayBurst) {
  Drive drive = bare_drive();
  drive.cap.iops = 1000;
  drive.cap.burst_ns = 10'000'000;  // ten commands
  DriveModel model = filled(drive);
  std::vector<Completion> done;
  const Nanos later = 1'000'000'000;
  for (int i = 0; i < 20; ++i) model.submit(later, {.op = Opcode::read, .lba_count = 8, .lba = 0});
  while (const auto next = model.next_event()) model.advance(*next, done);
  const auto soon =
      std::count_if(done.begin(), done.end(), [&](const Completion& c) { return c.completed < later + 900'000; });
  EXPECT_EQ(soon, 11) << "the burst, and the one that is due";
}

TEST(Cap, WritesThatCommitTogetherTakeUpToTwoCommits) {
  Drive drive = bare_drive();
  drive.cap.commit_ns = 10'000'000;
  EXPECT_NEAR(measure(drive, Opcode::write, 1, 200).mean_latency_ns, 10e6, 0.2e6);
  EXPECT_NEAR(measure(drive, Opcode::write, 16, 3000).mean_latency_ns, 20e6, 2e6);
  EXPECT_LT(measure(drive, Opcode::read, 16).mean_latency_ns, 5e6) << "reads do not commit";
}

// --- Laws

Drive everything() {
  HostStack stack;
  stack.read_submit_ns = 1'500;
  stack.write_submit_ns = 2'500;
  stack.read_complete_ns = 900;
  stack.write_copy_mb_s = 3000;
  stack.read_turn_ns = 20'000;
  stack.write_turn_ns = 5'000;
  stack.write_wake_ns = 3'000;
  stack.read_serial_ns = 1'000;
  stack.write_serial_mb_s = 700;
  stack.block_bytes = 4096;
  Drive drive = drive_with(stack);
  drive.cap.iops = 20'000;
  drive.cap.burst_ns = 1'000'000;
  drive.cap.write_network_ns = 40'000;
  drive.cap.commit_ns = 120'000;
  return drive;
}

TEST(Layers, TimeMayBeAdvancedAsOftenAsOneLikes) {
  const auto run = [](bool often) {
    DriveModel model = filled(everything());
    ssd::Random random(3);
    std::vector<Completion> done;
    Nanos now = 0;
    for (int i = 0; i < 3000; ++i) {
      now += static_cast<Nanos>(random.below(60'000));
      const auto op = random.below(2) == 0 ? Opcode::read : Opcode::write;
      const Command command{.tag = static_cast<std::uint64_t>(i),
                            .op = op,
                            .lba_count = 2 + 6 * static_cast<std::uint32_t>(random.below(2)),
                            .lba = 8 * random.below(2000)};
      if (often) {
        for (auto next = model.next_event(); next && *next <= now; next = model.next_event())
          model.advance(*next, done);
      }
      model.submit(now, command);
    }
    while (const auto next = model.next_event()) model.advance(*next, done);
    return done;
  };
  expect_same(run(true), run(false));
}

TEST(Layers, APacedRunReplaysInVirtualTime) {
  const Drive drive = everything();
  std::vector<Arrival> arrivals;
  std::vector<Completion> completions;
  const auto device = make_paced(filled(drive), 0.5);
  device->record_trace(&arrivals, &completions);
  {
    const auto queue = device->open_queue();
    ssd::Random random(5);
    std::vector<Done> done(8);
    for (std::uint64_t i = 0; i < 300; ++i) {
      const Io io{.tag = i,
                  .op = i % 3 == 0 ? Opcode::read : Opcode::write,
                  .offset_bytes = 4096 * random.below(500),
                  .length_bytes = 4096};
      ASSERT_TRUE(queue->submit({&io, 1}));
      if (queue->pending() >= 8) queue->reap(done, 1);
    }
  }
  device->record_trace(nullptr, nullptr);
  DriveModel model = filled(drive);
  std::vector<Completion> replayed;
  for (const Arrival& arrival : arrivals) {
    for (auto next = model.next_event(); next && *next <= arrival.now; next = model.next_event())
      model.advance(*next, replayed);
    model.submit(arrival.now, arrival.command);
  }
  while (model.in_flight() > 0) model.advance(*model.next_event(), replayed);
  expect_same(completions, replayed);
}

}  // namespace
}  // namespace spillway::device
