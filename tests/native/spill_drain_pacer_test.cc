// Pacing on a simulated store: bytes leave in lumps, by a drain that is steady, changes, stops, or comes in bursts.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "spill/live/commit_role.h"
#include "spill/store/drain_pacer.h"
#include "spill/store/write_pacer.h"

namespace spillway::spill {
namespace {

constexpr double kMiB = 1 << 20;

struct Second {
  double written = 0;    // bytes
  double longest_s = 0;  // wait of a writer, from when it has its group to when that is written
  double least_free = 1;
};

// A store and a writer in a closed loop. Rates are in bytes per second.
struct Simulation {
  double capacity = 1024 * kMiB;
  double lump = 64 * kMiB;
  double fastest = 400 * kMiB;  // of the writer, when it is not slowed
  double write_bytes = 4096;
  double writers = 1;                   // in a closed loop, which write together
  std::function<double(double)> drain;  // of the time
  double free = 1;
  bool groups = false;  // several lumps are released together
  std::uint64_t largest_seen = 0;

  // A group on its way back, one lump after the other.
  struct Group {
    std::uint64_t lumps = 0;
    std::uint64_t back = 0;
  };
  // Releases what has come back when a lump has. Returns what is on its way.
  double after_a_lump(const WritePacer& pacer, double live, Group* group) {
    if (group->lumps > 0 && ++group->back == group->lumps) {
      free += static_cast<double>(group->lumps) * lump / capacity;
      *group = {};
      return 0;  // the next begins with the next write, if writers are slowed
    }
    if (group->lumps == 0) {
      const auto most = static_cast<std::uint64_t>(live / lump);
      group->lumps = std::min(groups ? pacer.next_group({free}) : 1, most);
      largest_seen = std::max(largest_seen, group->lumps);
    }
    return static_cast<double>(group->lumps - group->back) * lump / capacity;
  }

  std::vector<Second> run(int seconds) {
    in_commit_queue.assume_held();
    WritePacer pacer(static_cast<std::uint64_t>(capacity), static_cast<std::uint64_t>(lump),
                     groups ? WritePacer::Groups::some : WritePacer::Groups::none);
    Group group;
    double returning = 0;
    std::vector<Second> result;
    double now = 0;
    double live = (1 - free) * capacity;
    double leaving = 0;
    for (int second = 0; second < seconds; ++second) {
      Second& one = result.emplace_back();
      while (now < second + 1) {
        const auto time = WritePacer::Clock::time_point(std::chrono::hours(1)) +
                          std::chrono::duration_cast<WritePacer::Clock::duration>(std::chrono::duration<double>(now));
        const double together = std::min({writers * write_bytes, static_cast<double>(pacer.most_group_bytes()), kMiB});
        const double bytes = std::max(write_bytes, std::floor(together / write_bytes) * write_bytes);
        const auto pause = pacer.pause({free, groups ? returning : 0}, static_cast<std::uint64_t>(bytes), time);
        const double took = bytes / fastest + std::chrono::duration<double>(pause).count();
        one.longest_s = std::max(one.longest_s, std::chrono::duration<double>(pause).count());
        if (free * capacity >= bytes) {
          free -= bytes / capacity;
          live += bytes;
          one.written += bytes;
        }
        one.least_free = std::min(one.least_free, free);
        if (group.lumps == 0 && live >= (groups && !pacer.is_pacing() ? 0.7 * capacity : lump)) {
          group.lumps = std::min(groups ? pacer.next_group({free}) : 1, static_cast<std::uint64_t>(live / lump));
          largest_seen = std::max(largest_seen, group.lumps);
          returning = static_cast<double>(group.lumps) * lump / capacity;
        }
        leaving += group.lumps > 0 ? drain(now) * took : 0;
        if (leaving >= lump) {
          leaving -= lump;
          live -= lump;
          returning = after_a_lump(pacer, live, &group);
        }
        now += took;
      }
    }
    return result;
  }
};

double median_of(std::vector<Second> seconds) {
  std::sort(seconds.begin(), seconds.end(), [](const Second& a, const Second& b) { return a.written < b.written; });
  return seconds[seconds.size() / 2].written;
}

double least(const std::vector<Second>& seconds, double Second::*what) {
  const auto less = [what](const Second& a, const Second& b) { return a.*what < b.*what; };
  return (*std::min_element(seconds.begin(), seconds.end(), less)).*what;
}

double most(const std::vector<Second>& seconds, double Second::*what) {
  const auto less = [what](const Second& a, const Second& b) { return a.*what < b.*what; };
  return (*std::max_element(seconds.begin(), seconds.end(), less)).*what;
}

std::vector<Second> part(const std::vector<Second>& all, std::size_t from, std::size_t to) {
  return {all.begin() + static_cast<std::ptrdiff_t>(from), all.begin() + static_cast<std::ptrdiff_t>(to)};
}

class DrainPacerOf : public ::testing::TestWithParam<std::tuple<double, double, double>> {};

// Whatever the store, the lump and the drain: what comes in is what leaves, no second is below half of the median one,
// and the store is never full.
TEST_P(DrainPacerOf, SettlesAtWhatLeavesWithoutFilling) {
  const auto [capacity, lump, drain] = GetParam();
  Simulation simulation{
      .capacity = capacity * kMiB, .lump = lump * kMiB, .drain = [drain = drain](double) { return drain * kMiB; }};
  // Two minutes, and as long as twelve lumps take to leave.
  const auto settled = static_cast<std::size_t>(60 + 6 * lump / drain);
  const auto seconds = simulation.run(static_cast<int>(2 * settled));
  const auto late = part(seconds, settled, seconds.size());
  EXPECT_NEAR(median_of(late) / kMiB, drain, drain * 0.1);
  EXPECT_GT(least(late, &Second::written), median_of(late) / 2);
  EXPECT_LT(most(late, &Second::written), median_of(late) * 1.5) << "it oscillates";
  EXPECT_GT(least(seconds, &Second::least_free) * capacity, 0.0) << "an overshoot";
  double all = 0;
  for (const Second& one : late) all += one.written;
  EXPECT_NEAR(all / static_cast<double>(late.size()) / kMiB, drain, drain * 0.05);
}

INSTANTIATE_TEST_SUITE_P(Stores, DrainPacerOf,
                         ::testing::Values(std::tuple(1024.0, 64.0, 100.0), std::tuple(1024.0, 64.0, 10.0),
                                           std::tuple(512.0, 32.0, 20.0), std::tuple(3584.0, 64.0, 200.0),
                                           std::tuple(4096.0, 256.0, 80.0), std::tuple(128.0, 32.0, 30.0)));

class DrainPacerOfWriters : public ::testing::TestWithParam<std::tuple<double, double>> {};

// Few or many writers, of small or large writes: they get what leaves, the store is never full, and a group waits for
// the longest pause at most, or for its own part of the time if one write takes longer.
TEST_P(DrainPacerOfWriters, SettleAtWhatLeavesWithoutFilling) {
  const auto [kib, writers] = GetParam();
  constexpr double kDrain = 20 * kMiB;
  Simulation simulation{.write_bytes = kib * 1024, .writers = writers, .drain = [](double) { return kDrain; }};
  const auto seconds = simulation.run(240);
  const auto late = part(seconds, 120, seconds.size());
  double all = 0;
  for (const Second& one : late) all += one.written;
  EXPECT_NEAR(all / static_cast<double>(late.size()) / kDrain, 1, 0.1);
  EXPECT_GT(least(seconds, &Second::least_free), 0.0) << "an overshoot";
  const double a_write = simulation.write_bytes;  // begun in one second and counted in the next
  EXPECT_GT(least(late, &Second::written), kDrain / 2 - a_write);
  EXPECT_LT(most(late, &Second::written), kDrain * 1.5 + a_write) << "it oscillates";
  const double its_own = simulation.write_bytes / (kDrain / 2);
  const double longest = std::chrono::duration<double>(WritePacer::kLongest).count();
  EXPECT_LE(most(late, &Second::longest_s), std::max(longest, its_own) * 1.001);
}

INSTANTIATE_TEST_SUITE_P(Writers, DrainPacerOfWriters,
                         ::testing::Values(std::tuple(0.5, 1.0), std::tuple(4.0, 64.0), std::tuple(4.0, 1000.0),
                                           std::tuple(64.0, 1.0), std::tuple(64.0, 16.0), std::tuple(1024.0, 1.0),
                                           std::tuple(1024.0, 8.0), std::tuple(8192.0, 1.0)));

TEST(DrainPacer, LeavesABurstAloneUntilLittleIsFree) {
  Simulation simulation{.drain = [](double) { return 50 * kMiB; }};
  const auto seconds = simulation.run(2);
  EXPECT_NEAR(seconds.front().written, simulation.fastest, simulation.fastest * 0.01);
}

// When the drain becomes slower or faster, what comes in follows, and has done so when a few lumps have left.
TEST(DrainPacer, FollowsADrainThatChanges) {
  Simulation simulation{.drain = [](double t) { return (t < 60 ? 80 : t < 120 ? 20 : 80) * kMiB; }};
  const auto seconds = simulation.run(180);
  EXPECT_NEAR(median_of(part(seconds, 30, 60)) / kMiB, 80, 8);
  EXPECT_NEAR(median_of(part(seconds, 90, 120)) / kMiB, 20, 2);
  EXPECT_NEAR(median_of(part(seconds, 150, 180)) / kMiB, 80, 8);
  EXPECT_GT(least(seconds, &Second::least_free), 0.0);
}

// A compaction stops the drain for some seconds: writers become slow and do not stop.
TEST(DrainPacer, OutlastsADrainThatStops) {
  Simulation simulation{.drain = [](double t) { return t > 60 && t < 68 ? 0.0 : 40 * kMiB; }};
  const auto seconds = simulation.run(90);
  EXPECT_GT(least(seconds, &Second::least_free), 0.0);
  EXPECT_GT(least(seconds, &Second::written), 0.0);
  // And recovers within two seconds of the first lump that leaves again, which takes 1.6 s.
  for (std::size_t second = 72; second < 90; ++second) EXPECT_GT(seconds[second].written / kMiB, 20) << second;
  // What is to be free then comes back too, in twice the 3.2 s in which it leaves.
  for (std::size_t second = 76; second < 90; ++second) EXPECT_GT(seconds[second].written / kMiB, 32) << second;
}

class DrainPacerOfGroups : public ::testing::TestWithParam<std::tuple<double, double, double>> {};

// The rate does not swing with them: no second is below half of the median one, but for the first group, which begins
// with less free than it has lumps.
TEST_P(DrainPacerOfGroups, SettleAtWhatLeavesWithoutFilling) {
  const auto [capacity, lump, drain] = GetParam();
  Simulation simulation{.capacity = capacity * kMiB,
                        .lump = lump * kMiB,
                        .drain = [drain = drain](double) { return drain * kMiB; },
                        .groups = true};
  // In which eight capacities leave.
  const auto all = static_cast<std::size_t>(std::max(8 * capacity / drain, 60.0));
  const auto seconds = simulation.run(static_cast<int>(all));
  EXPECT_EQ(simulation.largest_seen, DrainPacer::next_group(1, lump / capacity));
  EXPECT_GT(least(seconds, &Second::least_free), 0.0) << "an overshoot";
  const auto late = part(seconds, all / 2, all);
  EXPECT_GT(least(late, &Second::written), median_of(late) / 2);
  double written = 0;
  for (const Second& one : late) written += one.written;
  EXPECT_NEAR(written / static_cast<double>(late.size()) / kMiB, drain, drain * 0.1);
  const auto full = static_cast<std::size_t>(capacity * kMiB / simulation.fastest) + 1;
  const auto first = part(seconds, full, all / 2);
  EXPECT_GT(least(first, &Second::written) / kMiB, drain * 0.15) << "writers are slowed, and not stopped";
}

// The last four have drains that are slow for the store: a group takes minutes.
INSTANTIATE_TEST_SUITE_P(Stores, DrainPacerOfGroups,
                         ::testing::Values(std::tuple(1024.0, 64.0, 100.0), std::tuple(1400.0, 64.0, 40.0),
                                           std::tuple(512.0, 32.0, 20.0), std::tuple(3584.0, 64.0, 200.0),
                                           std::tuple(4096.0, 256.0, 80.0), std::tuple(128.0, 32.0, 30.0),
                                           std::tuple(4096.0, 64.0, 10.0), std::tuple(1024.0, 64.0, 5.0),
                                           std::tuple(384.0, 48.0, 8.0), std::tuple(16384.0, 64.0, 40.0)));

// What was begun with much free, between bursts, is not yet back when little is: writers are slowed to what lasts.
TEST(DrainPacer, SpreadsWhatIsFreeOverALargeGroup) {
  const double lump = 0.05;
  DrainPacer pacer(lump, DrainPacer::Groups::some);
  DrainPacer::Time now{std::chrono::hours(1)};
  for (int i = 0; i < 8; ++i) {  // a lump a second has come back
    pacer.observe({0.14, 0.4 + lump}, now);
    pacer.observe({0.14, 0.4}, now += std::chrono::seconds(1));
  }
  pacer.observe({0.14, 0.4}, now);
  const auto limit = pacer.limit(now);
  ASSERT_TRUE(limit);
  EXPECT_GT(*limit, 0.01) << "for eight seconds";
  EXPECT_LT(*limit * 8, 0.14) << "and no more than there is";
}

// What came back last was little, and then RocksDB compacts a long L0, and nothing comes back meanwhile.
TEST(DrainPacer, WhatIsFreeIsForTheTimeInWhichNothingLeaves) {
  constexpr double kLump = 0.04;
  DrainPacer pacer(kLump, DrainPacer::Groups::some);
  DrainPacer::Time now{std::chrono::seconds(1)};
  double free = 0.1;
  double returning = 6 * kLump;
  pacer.observe({free, returning}, now);
  for (int lump = 0; lump < 6; ++lump) {
    returning -= kLump / 2;
    pacer.observe({free += kLump, returning}, now += std::chrono::seconds(3));
  }
  pacer.observe({free = 0.28, 0}, now);
  for (int tenth = 0; tenth < 95; ++tenth) {
    now += std::chrono::milliseconds(100);
    const auto limit = pacer.limit(now);
    ASSERT_TRUE(limit.has_value()) << tenth;
    EXPECT_GE(*limit, free / DrainPacer::kUseUp.count()) << tenth;
    free -= *limit * 0.1;
    pacer.observe({free, 0}, now);
  }
  EXPECT_GT(free, 0.1);
}

// Small runs come back as fast as a base load comes in, which says nothing of the drain. Then a burst is over, all of
// it comes back as one run in three seconds, and the base load needs half of what is free beside its sorted files.
TEST(DrainPacer, DoesNotSlowABaseLoadBehindABurst) {
  constexpr double kLump = 0.0625;
  constexpr double kBase = 0.03;  // a second
  DrainPacer pacer(kLump, DrainPacer::Groups::some);
  DrainPacer::Time now{std::chrono::hours(1)};
  for (int run = 0; run < 20; ++run) {
    pacer.observe({0.95, kBase}, now += std::chrono::milliseconds(500));
    pacer.observe({0.96, 0}, now += std::chrono::milliseconds(500));
  }
  double free = 0.2;
  for (int tenth = 0; tenth < 30; ++tenth) {
    pacer.observe({free, 0.38}, now);
    const auto limit = pacer.limit(now);
    if (limit) {
      EXPECT_GE(*limit, kBase) << tenth;
    }
    free -= kBase / 10;
    now += std::chrono::milliseconds(100);
  }
  EXPECT_GT(free, 0.05);
}

// Where all has come back since, the next burst is another one, and as much of the store is there for it as for the
// first.
TEST(DrainPacer, AnEmptyStoreBeginsAnew) {
  constexpr double kLump = 1.0 / 16;
  DrainPacer pacer(kLump, DrainPacer::Groups::some);
  DrainPacer::Time now{std::chrono::hours(1)};
  const auto slows_at = [&](double free) {
    pacer.observe({free}, now += std::chrono::milliseconds(100));
    return pacer.limit(now).has_value();
  };
  EXPECT_FALSE(slows_at(0.3));
  EXPECT_TRUE(slows_at(2.9 * kLump));
  EXPECT_FALSE(slows_at(0.6));
  EXPECT_TRUE(slows_at(0.3)) << "it goes on: a group is about to come back";
  EXPECT_FALSE(slows_at(0.6));
  EXPECT_FALSE(slows_at(0.8));
  EXPECT_FALSE(pacer.is_watching());
  EXPECT_FALSE(slows_at(0.3));
  EXPECT_TRUE(slows_at(2.9 * kLump));
}

TEST(DrainPacer, LetsGoAtOnceWhenMuchIsFreeAgain) {
  DrainPacer pacer(0.05);
  DrainPacer::Time now{std::chrono::hours(1)};
  pacer.observe({0.1}, now);
  EXPECT_TRUE(pacer.limit(now));
  pacer.observe({0.5}, now += std::chrono::milliseconds(1));
  EXPECT_FALSE(pacer.limit(now));
}

// Where nothing leaves, because of a snapshot or an error, the store fills as it would without pacing.
TEST(DrainPacer, LetsGoWhenNothingLeaves) {
  DrainPacer pacer(0.05);
  DrainPacer::Time now{std::chrono::hours(1)};
  pacer.observe({0.1}, now);
  EXPECT_TRUE(pacer.limit(now + std::chrono::seconds(9)));
  EXPECT_FALSE(pacer.limit(now + std::chrono::seconds(17)));
}

TEST(WritePacer, APauseIsWorthASleepAndNeverLong) {
  in_commit_queue.assume_held();
  WritePacer pacer(static_cast<std::uint64_t>(1024 * kMiB), static_cast<std::uint64_t>(64 * kMiB));
  WritePacer::Clock::time_point now{std::chrono::hours(1)};
  WritePacer::Clock::duration all{};
  for (const std::uint64_t bytes : {std::uint64_t{100}, std::uint64_t{4096}, WritePacer::kStep}) {
    for (int i = 0; i < 1000; ++i) {
      const auto pause = pacer.pause({0.1}, bytes, now);
      EXPECT_LE(pause, WritePacer::kLongest);
      EXPECT_TRUE(pause == pause.zero() || pause >= WritePacer::kShortest);
      now += pause + std::chrono::microseconds(10);
      all += pause;
    }
  }
  EXPECT_GT(all, std::chrono::seconds(1)) << "it was not slowed";
}

// Otherwise writers of large batches would fill a store that is slowly emptied.
TEST(WritePacer, ALargeWriteWaitsForItsOwnPartOfTheTimeAndNotForEver) {
  in_commit_queue.assume_held();
  for (const double free : {0.1, 1e-6}) {
    WritePacer pacer(static_cast<std::uint64_t>(1024 * kMiB), static_cast<std::uint64_t>(64 * kMiB));
    WritePacer::Clock::time_point now{std::chrono::hours(1)};
    (void)pacer.pause({free}, 4096, now);
    const auto small = pacer.pause({free}, WritePacer::kStep, now += std::chrono::seconds(1));
    const auto large = pacer.pause({free}, 16 * WritePacer::kStep, now += std::chrono::seconds(1));
    EXPECT_GE(large, 4 * small);
    EXPECT_LE(large, 16 * WritePacer::kLongest);
    const auto largest = pacer.pause({free}, std::uint64_t{1} << 40, now += std::chrono::seconds(1));
    EXPECT_GE(largest, large);
    EXPECT_LE(largest, WritePacer::kLongestOfAll);
  }
}

// What little there is of an index is paced as what little there is of a store.
TEST(WritePacer, AWriteIsPacedByTheShareThatItTakes) {
  in_commit_queue.assume_held();
  const auto pause_of = [](double share) {
    WritePacer pacer(static_cast<std::uint64_t>(1024 * kMiB), static_cast<std::uint64_t>(64 * kMiB));
    WritePacer::Clock::time_point now{std::chrono::hours(1)};
    WritePacer::Clock::duration all{};
    for (int i = 0; i < 1000; ++i) {
      const auto pause = pacer.pause({0.15}, 100, share, now);
      now += pause + std::chrono::microseconds(10);
      all += pause;
    }
    return std::chrono::duration<double>(all).count();
  };
  EXPECT_GT(pause_of(2e-6), 0);
  EXPECT_GT(pause_of(8e-6), 3 * pause_of(2e-6));
}

}  // namespace
}  // namespace spillway::spill
