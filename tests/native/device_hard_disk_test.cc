// Rotating disks: their mechanics, the queue that sorts, the write cache. Closed forms where there are some, else laws.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "device/dirty_extents.h"
#include "device/drive_model.h"
#include "device/emulated.h"
#include "device/preset.h"
#include "device_closed_loop.h"
#include "ssd/random.h"

namespace spillway::device {
namespace {

constexpr std::uint64_t kLbasInGiB = (std::uint64_t{1} << 30) / 512;

Drive disk_drive() {
  Drive drive;
  drive.config.name = "disk";
  drive.config.capacity.capacity_bytes = std::uint64_t{1} << 40;
  drive.disk.revolution_ns = 8'333'333;
  drive.disk.track_seek_ns = 1'000'000;
  drive.disk.full_seek_ns = 16'000'000;
  drive.disk.write_settle_ns = 400'000;
  drive.disk.command_ns = 100'000;
  drive.disk.outer_mb_s = 200;
  drive.disk.inner_mb_s = 100;
  drive.config.timing.host_link_mb_s = 600;
  drive.config.write_cache = {0, false};
  return drive;
}

Drive sorting(std::uint32_t queue_depth) {
  Drive drive = disk_drive();
  drive.disk.queue_depth = queue_depth;
  return drive;
}

Drive caching(std::uint32_t queue_depth, std::uint64_t cache_bytes) {
  Drive drive = sorting(queue_depth);
  drive.config.write_cache.bytes = cache_bytes;
  return drive;
}

// The longest that one access takes: a whole stroke, a whole revolution.
Nanos longest_service(const Drive& drive, std::uint64_t bytes) {
  const Mechanics& disk = drive.disk;
  return disk.command_ns + disk.full_seek_ns + disk.write_settle_ns + disk.revolution_ns +
         static_cast<Nanos>(static_cast<double>(bytes) * 1000 / disk.inner_mb_s);
}

Command read_at(std::uint64_t lba, std::uint32_t lbas = kLbasIn4k, std::uint64_t tag = 0) {
  return {.tag = tag, .op = Opcode::read, .lba_count = lbas, .lba = lba};
}
Command write_at(std::uint64_t lba, std::uint32_t lbas = kLbasIn4k, std::uint64_t tag = 0) {
  return {.tag = tag, .op = Opcode::write, .lba_count = lbas, .lba = lba};
}

// Lets the drive live until nothing happens any more. Returns when that was.
Nanos drain(DriveModel& model, std::vector<Completion>& done) {
  Nanos now = 0;
  while (const auto next = model.next_event()) model.advance(now = *next, done);
  return now;
}

Measured measure(const Drive& drive, Opcode op, std::uint32_t concurrency, std::uint64_t count = 2000) {
  DriveModel model(drive, 1);
  return closed_loop(model, concurrency, count, random_4k(op, model.capacity_bytes()));
}

// --- One command at a time

TEST(HardDisk, ARandomReadIsASeekHalfARevolutionAndATransfer) {
  // E sqrt|x - y| of two uniform places is 8/15.
  const double seek = 1e6 + (16e6 - 1e6) * 8 / 15;
  const double expected = 0.1e6 + seek + 8'333'333 / 2.0 + 4096 / 150e6 * 1e9;
  EXPECT_NEAR(measure(disk_drive(), Opcode::read, 1, 4000).mean_latency_ns, expected, 0.02 * expected);
  EXPECT_NEAR(measure(disk_drive(), Opcode::write, 1, 4000).mean_latency_ns, expected + 0.4e6, 0.02 * expected);
}

TEST(HardDisk, MoreAtOnceBuyNothing) {
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

TEST(HardDisk, RefusesWhatItDoesNotHoldAndHasNoState) {
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

TEST(HardDisk, IsADriveBehindTheDeviceSeam) {
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
    drive.disk.revolution_ns = 1;  // as good as none
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
  // More in flight than the drive's queue holds only keep it full. With as many as it holds one is still on its way
  // from the host whenever the drive chooses, hence a place more to compare with.
  const double full = measure(sorting(9), Opcode::read, 9).iops;
  EXPECT_NEAR(measure(sorting(8), Opcode::read, 64).iops / full, 1.0, 0.02);
  EXPECT_NEAR(measure(sorting(32), Opcode::read, 1).iops / measure(sorting(1), Opcode::read, 1).iops, 1.0, 0.001);
}

// A crowd in one place, one command far away from it.
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

TEST(DiskQueue, NobodyWaitsMuchLongerThanTheAgeLimit) {
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

TEST(DiskQueue, AStreamRunsAtTheMediaRateBesideNobody) {
  DriveModel model(sorting(32), 1);
  std::uint64_t lba = 0;
  const Measured stream = closed_loop(model, 4, 2000, [&] {
    const Command command = read_at(lba, 512);
    lba += 512;
    return command;
  });
  EXPECT_NEAR(stream.iops * 512 * 512 / 1e6, 200, 4);
}

// --- The write cache

constexpr std::uint64_t kCache = 32 << 20;

TEST(DiskCache, AWriteThatFindsRoomTakesTheLinkOnly) {
  const Drive drive = caching(32, kCache);
  DriveModel model(drive, 1);
  const Measured burst = closed_loop(model, 1, 100, random_4k(Opcode::write, model.capacity_bytes()));
  EXPECT_NEAR(burst.mean_latency_ns, 100'000 + 4096 * 1000 / 600.0, 1);
  EXPECT_EQ(model.counters().host_bytes_written, model.counters().nand_bytes_programmed_total()) << "C3: WA2 is 1";
}

TEST(DiskCache, AStreamRunsAtTheMediaRateOnceItIsFull) {
  for (const std::uint32_t concurrency : {1U, 8U}) {
    DriveModel model(caching(32, kCache), 1);
    std::uint64_t lba = 0;
    const Measured stream = closed_loop(model, concurrency, 8000, [&] {
      const Command command = write_at(lba, 512);
      lba += 512;
      return command;
    });
    // What the cache holds at the end was faster: 32 of 2097 MB.
    EXPECT_NEAR(stream.iops * 512 * 512 / 1e6, 200 * 2097 / (2097 - 33.5), 4) << concurrency;
  }
}

// The cache finds near ones by itself: a host that waits for each write gains as much as one that hands over many.
TEST(DiskCache, RandomWritesAreSortedWhateverTheHostsDepth) {
  const double alone = measure(sorting(32), Opcode::write, 1).iops;
  const double sorted = measure(sorting(32), Opcode::write, 32).iops;
  const auto steady = [](std::uint32_t concurrency) {
    DriveModel model(caching(32, 4 << 20), 1);
    return closed_loop(model, concurrency, 8000, random_4k(Opcode::write, model.capacity_bytes())).iops;
  };
  EXPECT_GT(steady(1), sorted);
  EXPECT_NEAR(steady(1) / steady(32), 1.0, 0.02);
  EXPECT_GT(steady(1) / alone, 3.0);
  EXPECT_LT(steady(1) / alone, 6.0);
}

TEST(DiskCache, AWriteLargerThanTheCacheGoesToTheMedium) {
  DriveModel model(caching(32, 4096), 1);
  EXPECT_GT(closed_loop(model, 1, 200, [&] { return write_at(8 * kLbasInGiB, 64); }).mean_latency_ns, 160'000);
  EXPECT_FALSE(model.next_event()) << "nothing is left to write back";
}

TEST(DiskCache, WhatTouchesIsWrittenAsOne) {
  const auto time_to_empty = [](std::uint64_t stride) {
    DriveModel model(caching(1, kCache), 1);
    std::vector<Completion> done;
    // The first one goes out at once, and the others gather behind it.
    for (std::uint64_t i = 0; i < 64; ++i) model.submit(0, write_at(kLbasInGiB + (63 - i) * stride));
    return drain(model, done);
  };
  EXPECT_LT(time_to_empty(kLbasIn4k), 3 * longest_service(disk_drive(), 64 * 4096));
  EXPECT_GT(time_to_empty(100 * kLbasIn4k), 64 * 1'000'000);
}

TEST(DiskCache, ReadsHitWhatIsDirty) {
  DriveModel model(caching(32, kCache), 1);
  std::vector<Completion> done;
  model.submit(0, write_at(500 * kLbasInGiB, 2 * kLbasIn4k));  // being written back for some 10 ms
  model.submit(0, write_at(900 * kLbasInGiB, 2 * kLbasIn4k));  // still waiting
  const auto latency = [&](const Command& command) {
    const Nanos now = 1'000'000;
    model.submit(now, command);
    done.clear();
    while (done.empty()) model.advance(*model.next_event(), done);
    return done[0].completed - now;
  };
  model.advance(999'999, done);
  const Nanos over_link = 100'000 + 4096 * 1000 / 600;
  EXPECT_EQ(latency(read_at(500 * kLbasInGiB + kLbasIn4k)), over_link) << "on its way to the medium";
  EXPECT_EQ(model.counters().write_cache_read_hits, 1U);
}

TEST(DiskCache, ReadsHitWhatIsDirtyOnlyWhereAllOfItIs) {
  for (const bool whole : {true, false}) {
    DriveModel model(caching(32, kCache), 1);
    std::vector<Completion> done;
    model.submit(0, write_at(500 * kLbasInGiB));
    for (const std::uint64_t part : {0U, 1U}) model.submit(0, write_at(900 * kLbasInGiB + part * kLbasIn4k));
    model.advance(1'000'000, done);
    ASSERT_EQ(done.size(), 3U);
    model.submit(1'000'000, read_at(900 * kLbasInGiB, (whole ? 2 : 3) * kLbasIn4k, 9));
    done.clear();
    while (done.empty()) model.advance(*model.next_event(), done);
    EXPECT_EQ(done[0].completed - done[0].submitted < 1'000'000, whole);
    EXPECT_EQ(model.counters().write_cache_read_hits, whole ? 2U : 0U);
    drain(model, done);
    model.submit(10'000'000'000, read_at(900 * kLbasInGiB));
    drain(model, done);
    EXPECT_EQ(model.counters().write_cache_read_hits, whole ? 2U : 0U) << "it has left the cache";
  }
}

TEST(DiskCache, WritingAgainTakesNoMoreRoom) {
  DriveModel model(caching(32, 64 << 10), 1);
  std::vector<Completion> done;
  for (int i = 0; i < 1000; ++i) model.submit(0, write_at(kLbasInGiB * (i % 8)));
  model.advance(200'000'000, done);
  EXPECT_EQ(done.size(), 1000U);
  EXPECT_GT(model.counters().write_cache_overwrites, 900U);
  EXPECT_EQ(model.counters().host_bytes_written, 1000U * 4096);
}

TEST(DiskCache, AFlushWaitsUntilItIsEmptyAndAllBehindWaitForIt) {
  DriveModel model(caching(32, kCache), 1);
  std::vector<Completion> done;
  ssd::Random random(5);
  std::uint64_t tag = 0;
  for (; tag < 100; ++tag) model.submit(0, write_at(random.below(1000) * kLbasInGiB, kLbasIn4k, tag));
  model.submit(0, read_at(999 * kLbasInGiB + 64, kLbasIn4k, tag++));
  model.submit(0, {.tag = tag++, .op = Opcode::flush});
  model.submit(0, write_at(0, kLbasIn4k, tag++));
  model.submit(0, read_at(kLbasInGiB, kLbasIn4k, tag++));
  drain(model, done);
  ASSERT_EQ(done.size(), tag);
  const auto at = [&done](std::uint64_t wanted) {
    return std::find_if(done.begin(), done.end(), [&](const Completion& c) { return c.tag == wanted; })->completed;
  };
  const Nanos flushed = at(101);
  EXPECT_GT(flushed, 100 * 1'400'000) << "a hundred accesses, each a seek and a settling at least";
  for (std::uint64_t before = 0; before < 101; ++before) EXPECT_LE(at(before), flushed);
  EXPECT_GT(at(102), flushed);
  EXPECT_GT(at(103), flushed);
  EXPECT_EQ(model.counters().host_flushes, 1U);
}

TEST(DiskCache, AFlushOfAProtectedCacheWaitsForNothing) {
  Drive drive = caching(32, kCache);
  drive.config.write_cache.power_loss_protection = true;
  DriveModel model(drive, 1);
  std::vector<Completion> done;
  for (std::uint64_t i = 0; i < 10; ++i) model.submit(0, write_at(100 * kLbasInGiB * i));
  model.advance(2'000'000, done);
  model.submit(2'000'000, {.tag = 77, .op = Opcode::flush});
  done.clear();
  while (done.empty()) model.advance(*model.next_event(), done);
  EXPECT_EQ(done[0].completed - done[0].submitted, 100'000);
}

// Reads one at a time, each as soon as the one before is done, over a cache that holds something to write back.
TEST(DiskCache, ReadsGoFirstUntilTheDataIsOld) {
  const auto reads_in = [](Nanos age_limit_ns, Nanos span, std::uint64_t dirty) {
    Drive drive = caching(32, kCache);
    drive.disk.age_limit_ns = age_limit_ns;
    DriveModel model(drive, 1);
    ssd::Random random(9);
    const std::uint64_t places = model.capacity_bytes() / 4096;
    std::vector<Completion> done;
    std::uint64_t count = 0;
    const auto read = [&] { return read_at(random.below(places) * kLbasIn4k, kLbasIn4k, 1); };
    model.submit(0, read());
    for (std::uint64_t i = 0; i < dirty; ++i) model.submit(0, write_at(random.below(places) * kLbasIn4k));
    for (Nanos now = 0; now < span;) {
      done.clear();
      model.advance(now = *model.next_event(), done);
      for (const Completion& one : done) {
        if (one.tag != 1) continue;  // a write
        ++count;
        model.submit(now, read());
      }
    }
    return count;
  };
  constexpr Nanos kSpan = 900'000'000;
  const std::uint64_t undisturbed = reads_in(1'000'000'000, kSpan, 0);
  EXPECT_NEAR(static_cast<double>(reads_in(1'000'000'000, kSpan, 1000)) / static_cast<double>(undisturbed), 1.0, 0.1);
  // Data older than the limit has every other access.
  EXPECT_LT(reads_in(1'000'000, kSpan, 1000), 0.8 * static_cast<double>(undisturbed));
  EXPECT_GT(reads_in(1'000'000, kSpan, 1000), 0.4 * static_cast<double>(undisturbed));
}

// Writes that never end in one place, one write far from it: it reaches the medium all the same.
TEST(DiskCache, NothingStaysBehindForEver) {
  DriveModel model(caching(8, 256 << 10), 1);
  const std::uint64_t far = 1000 * kLbasInGiB;
  ssd::Random random(21);
  std::vector<Completion> done;
  Nanos now = 0;
  const auto near = [&random] { return write_at(random.below(100'000) * 2 * kLbasIn4k); };
  for (int i = 0; i < 16; ++i) model.submit(0, near());
  model.submit(0, write_at(far));
  for (int i = 0; i < 64; ++i) model.submit(0, near());
  // 64 runs fit: it is written after at most 64 x 64 others.
  for (int served = 0; served < 64 * 64 + 100;) {
    done.clear();
    model.advance(now = *model.next_event(), done);
    for (const Completion& one : done) {
      static_cast<void>(one);
      ++served;
      model.submit(now, near());
    }
  }
  model.submit(now, read_at(far));
  EXPECT_EQ(model.counters().write_cache_read_hits, 0U);
}

// --- Laws of both

// Everything that a host may ask for, at random.
Command anything(ssd::Random& random, std::uint64_t tag, std::uint64_t lbas) {
  const std::uint64_t kind = random.below(40);
  const auto length = static_cast<std::uint32_t>(1 + random.below(600));
  if (kind == 0) return {.tag = tag, .op = Opcode::flush};
  if (kind == 1) return {.tag = tag, .op = Opcode::deallocate, .lba_count = length, .lba = random.below(lbas / 2)};
  if (kind == 2) return {.tag = tag, .op = Opcode::write, .lba_count = length, .lba = lbas - 1};
  const Opcode op = kind % 2 == 0 ? Opcode::read : Opcode::write;
  const bool near = random.below(2) == 0;
  return {.tag = tag, .op = op, .lba_count = length, .lba = near ? random.below(4000) : random.below(lbas - 600)};
}

TEST(DiskLaws, TimeMayBeAdvancedAsOftenAsOneLikesAndNothingIsLost) {
  for (const std::uint32_t depth : {1U, 3U, 32U}) {
    for (const std::uint64_t cache : {std::uint64_t{0}, std::uint64_t{1} << 18, std::uint64_t{1} << 25}) {
      const auto run = [&](bool often) {
        Drive drive = caching(depth, cache);
        drive.disk.age_limit_ns = 30'000'000;
        DriveModel model(drive, 1);
        ssd::Random random(3);
        std::vector<Completion> done;
        Nanos now = 0;
        for (std::uint64_t tag = 0; tag < 600; ++tag) {
          now += static_cast<Nanos>(random.below(tag % 200 < 100 ? 60'000 : 30'000'000));
          if (often) {
            for (auto next = model.next_event(); next && *next <= now; next = model.next_event()) {
              model.advance(*next, done);
            }
          }
          model.submit(now, anything(random, tag, model.capacity_bytes() / 512));
        }
        drain(model, done);
        EXPECT_EQ(model.in_flight(), 0U);
        EXPECT_EQ(model.counters().host_bytes_written, model.counters().nand_bytes_programmed_total());
        return done;
      };
      const std::vector<Completion> often = run(true);
      expect_same(often, run(false));
      std::vector<bool> seen(600);
      for (std::size_t i = 0; i < often.size(); ++i) {
        EXPECT_FALSE(seen[often[i].tag]);
        seen[often[i].tag] = true;
        EXPECT_GE(often[i].completed, often[i].submitted);
        if (i > 0) {
          EXPECT_GE(often[i].completed, often[i - 1].completed) << "in the order of completion";
        }
      }
      EXPECT_EQ(often.size(), 600U);
    }
  }
}

// Against one flag a byte.
TEST(DirtyExtents, AreWhatAPlainMapOfBytesIs) {
  constexpr std::uint64_t kBytes = 200;
  ssd::Random random(1);
  DirtyExtents extents;
  std::vector<bool> plain(kBytes);
  for (int step = 0; step < 20'000; ++step) {
    const std::uint64_t begin = random.below(kBytes - 1);
    const std::uint64_t end = begin + 1 + random.below(std::min<std::uint64_t>(kBytes - begin - 1, 12));
    const auto missing = static_cast<std::uint64_t>(std::count(
        plain.begin() + static_cast<std::ptrdiff_t>(begin), plain.begin() + static_cast<std::ptrdiff_t>(end), false));
    ASSERT_EQ(extents.missing(begin, end), missing);
    if (random.below(3) != 0) {
      extents.add(begin, end, step);
      std::fill(plain.begin() + static_cast<std::ptrdiff_t>(begin), plain.begin() + static_cast<std::ptrdiff_t>(end),
                true);
    } else if (!extents.empty()) {
      const std::uint64_t most = 1 + random.below(9);
      const DirtyExtents::Extent taken = extents.take(extents.oldest_begin(), most);
      ASSERT_LE(taken.end - taken.begin, most);
      for (std::uint64_t i = taken.begin; i < taken.end; ++i) {
        ASSERT_TRUE(plain[i]);
        plain[i] = false;
      }
    }
    ASSERT_EQ(extents.bytes(), static_cast<std::uint64_t>(std::count(plain.begin(), plain.end(), true)));
    // Each run of bytes is one extent, in the order of places, and the oldest is the oldest.
    std::vector<bool> seen(kBytes);
    std::uint64_t last_end = 0;
    Nanos oldest = step;
    extents.visit_from(0, kBytes, [&](const DirtyExtents::Extent& extent) {
      EXPECT_TRUE(last_end == 0 || extent.begin > last_end);
      last_end = extent.end;
      oldest = std::min(oldest, extent.since);
      for (std::uint64_t i = extent.begin; i < extent.end; ++i) seen[i] = true;
    });
    ASSERT_EQ(seen, plain);
    if (!extents.empty()) {
      ASSERT_EQ(extents.oldest(), oldest);
    }
  }
}

}  // namespace
}  // namespace spillway::device
