// Rotating disks: the write cache, and laws of queue and cache together.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "device/model/dirty_extents.h"
#include "device_disk_drive.h"
#include "ssd/structures/random.h"

namespace spillway::device {
namespace {

// --- The write cache

constexpr std::uint64_t kCache = 32 << 20;

TEST(DiskCache, AWriteThatFindsRoomTakesOnlyTheLinksTime) {
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
    // The last part is in the cache and was faster: 32 of 2097 MB.
    EXPECT_NEAR(stream.iops * 512 * 512 / 1e6, 200 * 2097 / (2097 - 33.5), 4) << concurrency;
  }
}

// The cache sorts by itself: a host that waits for each write gains as much as one that submits many.
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

TEST(DiskCache, AdjacentRunsAreWrittenAsOne) {
  const auto time_to_empty = [](std::uint64_t stride) {
    DriveModel model(caching(1, kCache), 1);
    std::vector<Completion> done;
    // The first one is written at once, and the others gather after it.
    for (std::uint64_t i = 0; i < 64; ++i) model.submit(0, write_at(kLbasInGiB + (63 - i) * stride));
    return drain(model, done);
  };
  // Two accesses: the first write, whose data arrives over the link, and the 63 others as one.
  const Nanos first = 100'000 + 4096 * 1000 / 600 + longest_service(disk_drive(), 4096);
  EXPECT_LE(time_to_empty(kLbasIn4k), first + longest_service(disk_drive(), 63 * 4096));
  EXPECT_GT(time_to_empty(100 * kLbasIn4k), 64 * 1'000'000);
}

TEST(DiskCache, ReadsHitDirtyData) {
  DriveModel model(caching(32, kCache), 1);
  std::vector<Completion> done;
  model.submit(0, write_at(500 * kLbasInGiB, 2 * kLbasIn4k));  // written back for some 10 ms
  model.submit(0, write_at(900 * kLbasInGiB, 2 * kLbasIn4k));  // still in the cache
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

TEST(DiskCache, ReadsHitOnlyIfAllTheirDataIsDirty) {
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

TEST(DiskCache, AFlushWaitsUntilItIsEmptyAndLaterCommandsWaitForIt) {
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

// Reads one at a time, each right after the last one, with data in the cache to write back.
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
  // Data older than the limit gets every other access. A write is the best placed of a thousand and takes no longer
  // than a random read on average, so reads have at least half of the time: 1/2, within 3 standard errors of some 50
  // accesses (a third of the mean each). How much shorter a write is depends on their order, for which there is no
  // closed form.
  const double aged = static_cast<double>(reads_in(1'000'000, kSpan, 1000)) / static_cast<double>(undisturbed);
  EXPECT_GT(aged, 0.5 * (1 - 3 * 0.33 / std::sqrt(50.0)));
  EXPECT_LT(aged, 0.8);
}

// Endless writes in one place, and one write far away, which must reach the medium nevertheless.
TEST(DiskCache, EveryWriteIsWrittenBackEventually) {
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

// --- Laws of queue and cache

// A random command of any kind.
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

TEST(DiskLaws, AdvancingTimeMoreOftenChangesNothingAndLosesNothing) {
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

// Compared with one flag per byte.
TEST(DirtyExtents, AgreeWithAFlagPerByte) {
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
    // Each run of bytes is one extent, extents are in the order of places, and the oldest is right.
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
