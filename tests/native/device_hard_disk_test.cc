// Rotating disks: mechanics and the sorting queue, against closed forms where they exist, else laws.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "device/emulated/emulated.h"
#include "device_disk_drive.h"
#include "ssd/structures/random.h"

namespace spillway::device {
namespace {

// --- One command at a time

TEST(HardDisk, ARandomReadIsASeekHalfARevolutionAndATransfer) {
  // E sqrt|x - y| of two uniform places is 8/15.
  const double seek = 1e6 + (16e6 - 1e6) * 8 / 15;
  const double expected = 0.1e6 + seek + 8'333'333 / 2.0 + 4096 / 150e6 * 1e9;
  EXPECT_NEAR(measure(disk_drive(), Opcode::read, 1, 4000).mean_latency_ns, expected, 0.02 * expected);
  EXPECT_NEAR(measure(disk_drive(), Opcode::write, 1, 4000).mean_latency_ns, expected + 0.4e6, 0.02 * expected);
}

TEST(HardDisk, ConcurrencyGainsNothingWithoutAQueue) {
  const double alone = measure(disk_drive(), Opcode::read, 1).iops;
  EXPECT_NEAR(measure(disk_drive(), Opcode::read, 16).iops / alone, 1.0, 0.02);
}

TEST(HardDisk, StreamsAtItsMediaRate) {
  DriveModel model(disk_drive(), 1);
  std::uint64_t lba = 0;
  const Measured outer = closed_loop(model, 1, 2000, [&] {
    const Command command{.op = Opcode::write, .lba_count = 512, .lba = lba};
    lba += 512;
    return command;
  });
  EXPECT_NEAR(outer.iops * 512 * 512 / 1e6, 200, 4);
  EXPECT_EQ(model.counters().nand_bytes_programmed_total(), model.counters().host_bytes_written) << "C3: WA2 is 1";
}

TEST(HardDisk, RefusesKeyValueCommandsAndHasNoState) {
  DriveModel model(disk_drive(), 1);
  std::vector<Completion> done;
  model.submit(0, {.op = Opcode::read, .lba_count = 8, .lba = model.capacity_bytes() / 512});
  while (const auto next = model.next_event()) model.advance(*next, done);
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].outcome, ssd::Outcome::lba_out_of_range);
  EXPECT_EQ(save_state(model, "state").fault(), Fault::bad_input);
  InitialState initial;
  initial.kind = InitialState::Kind::steady;
  EXPECT_TRUE(prepare(model, initial, 1));
  initial.fill = 2;
  EXPECT_FALSE(prepare(model, initial, 1));
}

TEST(HardDisk, ImplementsTheDeviceSeam) {
  const auto device = make_simulated(DriveModel(disk_drive(), 1));
  EXPECT_EQ(device->info().dies, 0U);
  EXPECT_GT(device->info().capacity_bytes, std::uint64_t{1} << 39);
  const auto queue = device->open_queue();
  const auto done = run(*queue, {.op = Opcode::write, .offset_bytes = 1 << 20, .length_bytes = 4096});
  ASSERT_TRUE(done);
  EXPECT_EQ(done.value().fault, Fault::none);
  EXPECT_EQ(device->counters().host_bytes_written, 4096U);
  EXPECT_EQ(device->wear().rated_pe_cycles, 0U);
}

// --- The queue

// Heads at the edge, n places at random: the nearest is min of n uniforms, and with d^(1/2) as the seek's share
// E sqrt(min) = Gamma(n + 1) Gamma(3/2) / Gamma(n + 3/2).
TEST(DiskQueue, TheNearestOfManyIsNext) {
  for (const std::uint32_t n : {1U, 4U, 32U}) {
    Drive drive = sorting(n + 1);
    drive.disk.revolution_ns = 1;  // practically zero
    drive.disk.track_seek_ns = 0;
    drive.disk.command_ns = 0;
    const double expected = 16e6 * std::exp(std::lgamma(n + 1.0) + std::lgamma(1.5) - std::lgamma(n + 1.5));
    double sum = 0;
    constexpr int kTrials = 4000;
    ssd::Random random(n);
    for (int trial = 0; trial < kTrials; ++trial) {
      DriveModel model(drive, 1);
      const std::uint64_t places = model.capacity_bytes() / 4096;
      model.submit(0, read_at(0));
      for (std::uint32_t i = 0; i < n; ++i) model.submit(0, read_at(random.below(places) * kLbasIn4k));
      std::vector<Completion> done;
      while (done.size() < 2) model.advance(*model.next_event(), done);
      sum += static_cast<double>(done[1].completed - done[0].completed);
    }
    EXPECT_NEAR(sum / kTrials, expected, 0.03 * expected) << n;
  }
}

TEST(DiskQueue, SortingLosesNothingAndTakesLessTime) {
  double before = measure(sorting(1), Opcode::read, 32).iops;
  const double in_order = before;
  for (const std::uint32_t depth : {2U, 4U, 8U, 16U, 32U}) {
    DriveModel model(sorting(depth), 1);
    std::uint64_t tag = 0;
    const NextCommand next = random_4k(Opcode::read, model.capacity_bytes());
    const Measured found = closed_loop(model, 32, 2000, [&] {
      Command command = next();
      command.tag = tag++;
      return command;
    });
    std::vector<bool> seen(tag);
    for (const Completion& one : found.completions) {
      ASSERT_FALSE(seen[one.tag]) << "answered twice";
      seen[one.tag] = true;
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), true), static_cast<std::ptrdiff_t>(tag));
    EXPECT_GT(found.iops, 1.05 * before) << depth;
    before = found.iops;
  }
  EXPECT_GT(before / in_order, 2.0);
  EXPECT_LT(before / in_order, 3.0);
}

TEST(DiskQueue, OnlyWhatIsInTheQueueIsSorted) {
  // More in flight than the drive's queue holds only keep it full. With exactly as many, one is still on its way from
  // the host whenever the drive chooses. So this queue has one more command to choose from.
  const double full = measure(sorting(9), Opcode::read, 9).iops;
  EXPECT_NEAR(measure(sorting(8), Opcode::read, 64).iops / full, 1.0, 0.02);
  EXPECT_NEAR(measure(sorting(32), Opcode::read, 1).iops / measure(sorting(1), Opcode::read, 1).iops, 1.0, 0.001);
}

// Many commands in one place, one far away.
Nanos latency_of_the_far_one(std::int64_t age_limit_ns) {
  Drive drive = sorting(8);
  drive.disk.age_limit_ns = age_limit_ns;
  DriveModel model(drive, 1);
  ssd::Random random(11);
  std::vector<Completion> done;
  Nanos now = 0;
  const auto near = [&random] { return read_at(random.below(1000) * kLbasIn4k); };
  for (int i = 0; i < 7; ++i) model.submit(0, near());
  model.submit(0, read_at(1000 * kLbasInGiB, kLbasIn4k, 1));
  for (int served = 0; served < 5000;) {
    done.clear();
    model.advance(now = *model.next_event(), done);
    for (const Completion& one : done) {
      if (one.tag == 1) return one.completed - one.submitted;
      ++served;
      model.submit(now, near());
    }
  }
  return now;
}

TEST(DiskQueue, NoCommandWaitsMuchLongerThanTheAgeLimit) {
  EXPECT_GT(latency_of_the_far_one(1'000'000'000), 1'000'000'000) << "it would starve";
  for (const Nanos limit : {Nanos{0}, Nanos{50'000'000}, Nanos{400'000'000}}) {
    const Nanos latency = latency_of_the_far_one(limit);
    EXPECT_GE(latency, limit);
    EXPECT_LE(latency, limit + 9 * longest_service(sorting(8), 4096)) << limit;
  }
}

TEST(DiskQueue, AnAgeLimitOfZeroIsTheOrderOfArrival) {
  Drive drive = sorting(32);
  drive.disk.age_limit_ns = 0;
  DriveModel model(drive, 1);
  ssd::Random random(3);
  for (std::uint64_t tag = 0; tag < 32; ++tag) {
    model.submit(0, read_at(random.below(1000) * kLbasInGiB, kLbasIn4k, tag));
  }
  std::vector<Completion> done;
  drain(model, done);
  ASSERT_EQ(done.size(), 32U);
  for (std::uint64_t i = 0; i < 32; ++i) EXPECT_EQ(done[i].tag, i);
}

TEST(DiskQueue, AStreamAloneRunsAtTheMediaRate) {
  DriveModel model(sorting(32), 1);
  std::uint64_t lba = 0;
  const Measured stream = closed_loop(model, 4, 2000, [&] {
    const Command command = read_at(lba, 512);
    lba += 512;
    return command;
  });
  EXPECT_NEAR(stream.iops * 512 * 512 / 1e6, 200, 4);
}

}  // namespace
}  // namespace spillway::device
