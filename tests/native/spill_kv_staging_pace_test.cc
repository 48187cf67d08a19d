// How long writes wait for room in a simulated staging, whose drive stores nothing at times.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "spill/store/kv/kv_staging_pace.h"

namespace spillway::spill {
namespace {

constexpr std::size_t kStagingSlots = 1024;
constexpr double kPauseS = std::chrono::duration<double>(kLongestPause).count();

// A drive that stores `pairs_per_s` evenly, but for a gap of `gap_s` at the end of each `period_s`.
struct SimulatedDrive {
  double pairs_per_s;
  double gap_s = 0;
  double period_s = 1;

  double stored_by(double at) const {
    const auto periods = static_cast<double>(static_cast<long>(at / period_s));
    const double busy_s = period_s - gap_s;
    return pairs_per_s * (periods * busy_s + std::min(at - periods * period_s, busy_s));
  }
};

struct Waits {
  double longest_s = 0;
  double all_s = 0;
  int count = 0;
  double pairs_per_s = 0;
};

// Writers who fill up to `group` pairs at a time, and need `pair_s` for each.
Waits write(const SimulatedDrive& drive, double pair_s, std::size_t group = 1) {
  constexpr double kEnd = 20;
  constexpr double kStep = 20e-6;
  Waits waits;
  double now = 0;
  double sent = 0;
  double stored = 0;
  std::size_t filled = 0;
  const auto pass = [&] {
    stored = std::min(stored + drive.stored_by(now + kStep) - drive.stored_by(now), sent);
    now += kStep;
  };
  const auto free = [&] { return kStagingSlots - static_cast<std::size_t>(std::ceil(sent - stored)); };
  while (now < kEnd) {
    const std::size_t pairs = std::min(group, staging_step(kStagingSlots - free(), kStagingSlots));
    if (const auto pause = staging_pause(pairs, free(), kStagingSlots, filled)) {
      const double since = now;
      filled = 0;
      while (free() < pause->free && (pause->has_to || now - since < kPauseS)) pass();
      waits.longest_s = std::max(waits.longest_s, now - since);
      waits.all_s += now - since;
      ++waits.count;
      continue;
    }
    sent += static_cast<double>(pairs);
    filled += pairs;
    const double until = now + pair_s * static_cast<double>(pairs);
    while (now < until) pass();
  }
  waits.pairs_per_s = sent / kEnd;
  return waits;
}

TEST(StagingPace, ADriveThatStoresNothingForAWhileHoldsNoWriteUpForSoLong) {
  for (const double rate : {2000.0, 4000.0, 7000.0}) {  // of pairs of 17 KiB: 35 to 120 MB/s
    for (const double gap_s : {0.02, 0.06, 0.08}) {
      const Waits waits = write({.pairs_per_s = rate, .gap_s = gap_s, .period_s = 0.2}, 1e-4);
      EXPECT_LE(waits.longest_s, kPauseS + 1e-3) << rate << " pairs/s, gaps of " << gap_s;
      EXPECT_GT(waits.pairs_per_s, 0.95 * rate * (1 - gap_s / 0.2)) << rate << " pairs/s, gaps of " << gap_s;
    }
  }
}

TEST(StagingPace, GroupsOfManyWritersWaitNoLonger) {
  for (const std::size_t group : {4U, 16U, 64U}) {
    const Waits waits = write({.pairs_per_s = 5000, .gap_s = 0.06, .period_s = 0.3}, 1e-4, group);
    EXPECT_LE(waits.longest_s, kPauseS + 1e-3) << group;
  }
}

TEST(StagingPace, AWriterWhoIsHardlyFasterThanTheDriveSeldomPauses) {
  const Waits waits = write({.pairs_per_s = 7000, .gap_s = 0.02, .period_s = 0.2}, 1.6e-4);
  EXPECT_LE(waits.count * 64, 20 * 7000);
  const Waits slower = write({.pairs_per_s = 7000}, 2e-4);
  EXPECT_EQ(slower.count, 0);
}

TEST(StagingPace, SmallStagingIsUsedWhole) {
  EXPECT_FALSE(staging_pause(1, 4, 4, 0));
  EXPECT_FALSE(staging_pause(1, 1, 4, 0));
  const auto full = staging_pause(1, 0, 4, 3);
  ASSERT_TRUE(full);
  EXPECT_TRUE(full->has_to);
  EXPECT_EQ(full->free, 1U);
  EXPECT_EQ(staging_pause(3, 2, 4, 0)->free, 3U);
}

}  // namespace
}  // namespace spillway::spill
