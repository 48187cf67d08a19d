// The layers around a drive: host stacks and caps, each against the closed form in its header.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "device/emulated/emulated.h"
#include "device/model/drive_model.h"
#include "device/preset/preset.h"
#include "device_closed_loop.h"
#include "device_small_drive.h"
#include "ssd/structures/random.h"

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
  if (ssd::Ssd* const flash = model.flash()) flash->write_sequentially(0, flash->layout().logical_units);
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
  flash.write_sequentially(0, flash.layout().logical_units);
  DriveModel alone(std::move(flash));
  expect_same(whole, closed_loop(alone, 8, 2000, random_4k(Opcode::read, alone.capacity_bytes())).completions);
}

// Commands at random times, and how time goes on between them: event by event, or from completion to completion.
std::vector<Completion> completions_of(const Drive& drive, bool to_completion) {
  DriveModel model = filled(drive);
  ssd::Random random(7);
  std::vector<Completion> done;
  ssd::Nanos now = 0;
  for (int i = 0; i < 3000; ++i) {
    Command command;
    command.tag = static_cast<std::uint64_t>(i);
    command.op = random.uniform() < 0.5 ? Opcode::read : random.uniform() < 0.9 ? Opcode::write : Opcode::flush;
    command.lba_count = 8;
    command.lba = random.below(static_cast<std::uint32_t>(model.capacity_bytes() / 4096)) * 8;
    model.submit(now, command);
    const ssd::Nanos until = now + static_cast<ssd::Nanos>(random.below(300'000));
    while (to_completion) {
      const std::size_t before = done.size();
      model.advance_to_completion(until, done);
      if (done.size() == before) break;
      for (std::size_t at = before; at < done.size(); ++at) EXPECT_EQ(done[at].completed, done.back().completed);
    }
    for (auto next = model.next_event(); next && *next <= until; next = model.next_event()) model.advance(*next, done);
    now = until;
  }
  while (model.in_flight() > 0) model.advance(*model.next_event(), done);
  return done;
}

TEST(DriveModel, RunsOnToItsNextCompletion) {
  HostStack stack;
  stack.read_submit_ns = 3'000;
  stack.write_submit_ns = 4'000;
  stack.write_turn_ns = 2'000;
  stack.read_serial_ns = 700;
  stack.write_serial_ns = 20'000;
  Drive disk = bare_drive();
  disk.disk.revolution_ns = 8'333'333;
  disk.disk.track_seek_ns = 1'000'000;
  disk.disk.full_seek_ns = 16'000'000;
  disk.disk.command_ns = 100'000;
  disk.disk.outer_mb_s = 200;
  disk.disk.inner_mb_s = 100;
  disk.config.write_cache = {0, false};
  Drive capped = drive_with(stack);
  capped.cap.commit_ns = 50'000;
  capped.cap.iops = 20'000;
  for (const Drive& drive : {bare_drive(), drive_with(stack), capped, disk}) {
    const std::vector<Completion> steps = completions_of(drive, false);
    EXPECT_EQ(steps.size(), 3000U);
    expect_same(steps, completions_of(drive, true));
  }
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
  // Writes have costs of their own, which are zero here.
  EXPECT_NEAR(measure(drive_with(stack), Opcode::write, 1).mean_latency_ns,
              measure(bare_drive(), Opcode::write, 1).mean_latency_ns, 1.0);
}

TEST(HostStack, ConcurrentCostsDoNotLimitThroughput) {
  HostStack stack;
  stack.read_submit_ns = 100'000;
  const Measured bare = measure(bare_drive(), Opcode::read, 256, 20'000);
  // Of 256 some 7 are in flight to the drive (Little's law: throughput times 0.1 ms). The 249 that wait at 4 dies keep
  // them as busy as 256 would: N / (N + 3) of the time, 98.8 %.
  EXPECT_NEAR(measure(drive_with(stack), Opcode::read, 256, 20'000).iops / bare.iops, 1.0, 0.01);
}

TEST(HostStack, ALockLimitsThroughputToItsOwnTime) {
  HostStack stack;
  stack.read_serial_ns = 200'000;
  const Drive drive = drive_with(stack);
  EXPECT_NEAR(measure(drive, Opcode::read, 16).iops, 1e9 / 200e3, 60);
  EXPECT_NEAR(measure(drive, Opcode::read, 64).iops, 1e9 / 200e3, 60);
}

// The first of c commands begins a turn alone, and the c - 1 others wait for the next one. During their turn the first
// comes back and waits, and so on: two turns serve c commands, T(c) = c / (2 turn + c serial), while the drive's own
// time is less than a turn. A command that is always alone also waits for the drive.
TEST(HostStack, ATurnIsShared) {
  HostStack stack;
  stack.read_turn_ns = 5'000'000;
  stack.read_serial_ns = 100'000;
  const double drive_ns = measure(bare_drive(), Opcode::read, 1).mean_latency_ns;
  EXPECT_NEAR(measure(drive_with(stack), Opcode::read, 1).iops, 1e9 / (5e6 + 1e5 + drive_ns), 0.1);
  for (const std::uint32_t concurrency : {4U, 32U}) {
    const double expected = concurrency * 1e9 / (2 * 5e6 + concurrency * 1e5);
    // The last cycle of 63 at c = 32 is half empty, but both its turns count.
    EXPECT_NEAR(measure(drive_with(stack), Opcode::read, concurrency).iops / expected, 1.0, 0.01) << concurrency;
  }
}

// Commands that wait pay for waking. A command that is alone does not.
TEST(HostStack, OnlyCommandsThatWaitPayForWaking) {
  HostStack stack;
  stack.read_wake_ns = 1'500'000;
  stack.read_wake_mb_s = 4096.0 / 500'000 * 1000;  // 4 KiB in 0.5 ms
  stack.read_serial_ns = 100'000;
  const Measured bare = measure(bare_drive(), Opcode::read, 1);
  EXPECT_NEAR(measure(drive_with(stack), Opcode::read, 1).mean_latency_ns, bare.mean_latency_ns + 100'000, 1.0);
  // One leaves every 0.1 ms, and the drive is faster than that: the last of a turn is in the drive when the next one
  // begins, and all others wait again. A turn wakes and serves 31.
  ASSERT_LT(bare.mean_latency_ns, 100'000);
  const double expected = 31 * 1e9 / (2e6 + 31 * 1e5);
  EXPECT_NEAR(measure(drive_with(stack), Opcode::read, 32).iops / expected, 1.0, 0.01);
}

TEST(HostStack, PartialBlocksAreServedOneAtATime) {
  HostStack stack;
  stack.write_complete_ns = 300'000;
  stack.block_bytes = 4096;
  // Few enough for the write cache, so the drive's own time does not count.
  const auto write = [&stack](std::uint32_t lbas, std::uint32_t concurrency) {
    DriveModel model = filled(drive_with(stack));
    ssd::Random random(7);
    const std::uint64_t places = model.capacity_bytes() / 4096;
    return closed_loop(model, concurrency, 48, [&] {
      return Command{.op = Opcode::write, .lba_count = lbas, .lba = random.below(places) * kLbasIn4k};
    });
  };
  EXPECT_NEAR(write(2, 16).iops / write(2, 1).iops, 1.0, 0.02) << "no faster with more";
  // Writes of whole blocks run concurrently, in three rounds of 16. Only their commands, 3 us each, pass the controller
  // one at a time.
  const double alone_ns = 1e9 / write(kLbasIn4k, 1).iops;
  EXPECT_NEAR(1e9 / write(kLbasIn4k, 16).iops, (3 * alone_ns + 15 * 3'000) / 48, 0.01 * alone_ns);
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
  // As with turns: one commit alone, then 15 that have waited for it. Each waits for two commits.
  EXPECT_NEAR(measure(drive, Opcode::write, 1, 200).mean_latency_ns, 10e6, 0.02e6);
  EXPECT_NEAR(measure(drive, Opcode::write, 16, 3000).mean_latency_ns, 20e6, 0.2e6);
  EXPECT_EQ(measure(drive, Opcode::read, 16).mean_latency_ns, measure(bare_drive(), Opcode::read, 16).mean_latency_ns)
      << "reads do not commit";
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

TEST(Layers, AdvancingTimeMoreOftenChangesNothing) {
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
