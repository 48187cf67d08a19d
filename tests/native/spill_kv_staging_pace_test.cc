// How long writes wait for room in a simulated staging, whose drive stores nothing at times.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "spill/store/kv/kv_append_window.h"
#include "spill/store/kv/kv_staging_pace.h"

namespace spillway::spill {
namespace {

constexpr std::size_t kStagingSlots = kStagedPairs;
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
  for (const double rate : {4000.0, 8000.0, 14000.0}) {  // of pairs of 8.5 KiB: 35 to 120 MB/s
    for (const double gap_s : {0.02, 0.06, 0.08}) {
      const Waits waits = write({.pairs_per_s = rate, .gap_s = gap_s, .period_s = 0.2}, 5e-5);
      EXPECT_LE(waits.longest_s, kPauseS + 1e-3) << rate << " pairs/s, gaps of " << gap_s;
      EXPECT_GT(waits.pairs_per_s, 0.95 * rate * (1 - gap_s / 0.2)) << rate << " pairs/s, gaps of " << gap_s;
    }
  }
}

TEST(StagingPace, GroupsOfManyWritersWaitNoLonger) {
  for (const std::size_t group : {8U, 32U, 128U}) {
    const Waits waits = write({.pairs_per_s = 10'000, .gap_s = 0.06, .period_s = 0.3}, 5e-5, group);
    EXPECT_LE(waits.longest_s, kPauseS + 1e-3) << group;
  }
}

// So many writers, each of whom writes half a pair again and again; who waits goes into the next group.
// Returns the longest time that one waited.
double longest_write_s(const SimulatedDrive& drive, std::size_t writers) {
  constexpr double kEnd = 5;
  constexpr double kStep = 20e-6;
  constexpr double kPairS = 5e-5;
  std::vector<double> since(writers, 0.0);
  double now = 0;
  double sent = 0;
  double stored = 0;
  double filled = 0;
  double longest = 0;
  const auto pass = [&] {
    stored = std::min(stored + drive.stored_by(now + kStep) - drive.stored_by(now), sent);
    now += kStep;
  };
  const auto free = [&] { return kStagingSlots - static_cast<std::size_t>(std::ceil(sent - stored)); };
  std::size_t next = 0;
  while (now < kEnd) {
    const std::size_t records = std::min(writers, 2 * staging_step(kStagingSlots - free(), kStagingSlots));
    const auto pairs = std::max<std::size_t>(1, (records + 1) / 2);
    if (const auto pause = staging_pause(pairs, free(), kStagingSlots, static_cast<std::size_t>(filled))) {
      const double begun = now;
      filled = 0;
      while (free() < pause->free && (pause->has_to || now - begun < kPauseS)) pass();
    }
    sent += static_cast<double>(records) / 2;
    filled += static_cast<double>(records) / 2;
    const double until = now + kPairS * static_cast<double>(records) / 2;
    while (now < until) pass();
    for (std::size_t i = 0; i < records; ++i, next = (next + 1) % writers) {
      longest = std::max(longest, now - since[next]);
      since[next] = now;
    }
  }
  return longest;
}

TEST(StagingPace, ManyWritersMeetFewPausesOfEachOther) {
  for (const double rate : {8000.0, 14000.0}) {  // 70 and 120 MB/s
    for (const double gap_s : {0.02, 0.06, 0.08}) {
      for (const std::size_t writers : {8U, 32U}) {
        EXPECT_LE(longest_write_s({.pairs_per_s = rate, .gap_s = gap_s, .period_s = 0.2}, writers), 5e-3)
            << writers << " writers, " << rate << " pairs/s, gaps of " << gap_s;
      }
    }
  }
}

TEST(StagingPace, AWriterWhoIsHardlyFasterThanTheDriveSeldomPauses) {
  const Waits waits = write({.pairs_per_s = 14'000, .gap_s = 0.02, .period_s = 0.2}, 8e-5);
  EXPECT_LE(waits.count * 128, 20 * 14'000);
  const Waits slower = write({.pairs_per_s = 14'000}, 1e-4);
  EXPECT_EQ(slower.count, 0);
}

// A thread that hands pairs over when it gets its turn, `turn_s` after the drive had something done, to a drive that
// stores one each `pair_s`. `produced_s`: a new pair each; 0: there is always one more.
struct HandedOver {
  double drive_busy = 0;  // share of the time
  std::size_t most = 0;   // at the end
};

HandedOver hand_over(double turn_s, double pair_s, double produced_s = 0) {
  constexpr double kEnd = 2;
  std::size_t most = kPairsInFlight;
  double now = 0;
  double free_at = 0;  // the drive, of all that it has
  double busy_s = 0;
  double handed_over = 0;
  bool left_over = false;
  while (now < kEnd) {
    const auto in_flight = static_cast<std::size_t>(std::max(0.0, std::ceil((free_at - now) / pair_s - 1e-6)));
    const double there = produced_s > 0 ? std::floor(now / produced_s) - handed_over : 1e9;
    most = most_in_flight(most, left_over, in_flight);
    const auto more = static_cast<double>(most - std::min(most, in_flight));
    const double now_s = std::min(more, there) * pair_s;
    handed_over += std::min(more, there);
    left_over = there > more;
    free_at = std::max(free_at, now) + now_s;
    busy_s += now_s;
    // Woken when a command is done, or one more pair is there.
    now = std::min(free_at > now ? now + kPairsACommand * pair_s : now + produced_s, std::max(free_at, now + 1e-6));
    now += turn_s;
  }
  return {busy_s / kEnd, most};
}

TEST(PairsInFlight, AThreadThatGetsItsTurnLateKeepsTheDriveBusy) {
  for (const double turn_s : {0.0, 2e-5, 1e-3}) {
    const HandedOver one = hand_over(turn_s, 30e-6);
    EXPECT_GT(one.drive_busy, 0.9) << "turns " << turn_s << " s late";
  }
  EXPECT_GT(hand_over(3e-3, 30e-6).drive_busy, 0.55);  // 64 pairs take the drive 1.9 ms
}

TEST(PairsInFlight, AThreadThatIsOnTimeLetsReadsOvertake) {
  EXPECT_LE(hand_over(1e-5, 30e-6).most, kPairsInFlight + kPairsACommand);
  EXPECT_EQ(hand_over(3e-3, 30e-6, 1e-3).most, kPairsInFlight);  // late, but there is little to hand over
}

TEST(PairsInFlight, AreFewAgainBehindTheOtherWork) {
  std::size_t most = kPairsInFlight;
  for (int i = 0; i < 10; ++i) most = most_in_flight(most, true, 0);
  EXPECT_EQ(most, kMostInFlight);
  int turns = 0;
  while (most > kPairsInFlight && turns < 100) {
    most = most_in_flight(most, true, most - kPairsACommand);
    ++turns;
  }
  EXPECT_LE(turns, static_cast<int>(kMostInFlight / kPairsACommand));
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
