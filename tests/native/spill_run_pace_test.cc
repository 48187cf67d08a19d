// How fast runs come back into a simulated L0 that RocksDB compacts.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "spill/rollback/run_pace.h"

namespace spillway::spill {
namespace {

using Seconds = RunPace::Seconds;
constexpr int kTrigger = 4;

RunPace::Time at(double seconds) {
  return RunPace::Time(std::chrono::duration_cast<RunPace::Time::duration>(Seconds(1000 + seconds)));
}

// One compaction at a time takes all files that are there, and a time for what lies below and for each of them.
struct SimulatedL0 {
  double below_s;
  double file_s;
  double grows = 0;  // seconds in which a compaction comes to cost twice as much; 0: never

  int files = 0;
  int being_compacted = 0;
  double ends = 0;

  void step(double now) {
    if (being_compacted > 0 && now >= ends) {
      files -= being_compacted;
      being_compacted = 0;
    }
    if (being_compacted == 0 && files >= kTrigger) {
      being_compacted = files;
      ends = now + (below_s + file_s * files) * (grows > 0 ? 1 + now / grows : 1);
    }
  }
};

struct Seen {
  int most_files = 0;       // from the end of the first half on
  double least_second = 0;  // of what came back in each second of the second half, over the median one
};

// Runs that come as fast as the pace allows, `least_s` at least, and none into a crowded L0, as in RollbackThread.
Seen simulate(SimulatedL0 l0, double least_s, double seconds) {
  constexpr double kStep = 0.02;
  RunPace pace;
  Seen seen;
  double done = 0;  // of the run
  double came = 0;  // runs in this second
  std::vector<double> each_second;
  for (int step = 0; step * kStep < seconds; ++step) {
    const double now = step * kStep;
    const bool is_late = now > seconds / 2;
    l0.step(now);
    pace.observe(l0.files, kTrigger, at(now));
    const auto takes = pace.seconds_of_run(kTrigger);
    const double share = l0.files < 3 * kTrigger ? kStep / std::max(least_s, takes ? takes->count() : 0) : 0;
    done += share;
    came += share;
    if (done >= 1) {
      done -= 1;
      ++l0.files;
    }
    if (is_late) seen.most_files = std::max(seen.most_files, l0.files);
    if (step % 50 == 49) {
      if (is_late) each_second.push_back(came);
      came = 0;
    }
  }
  std::ranges::sort(each_second);
  seen.least_second = each_second.front() / each_second[each_second.size() / 2];
  return seen;
}

TEST(RunPace, NothingIsSlowedUntilSomethingHasLeft) {
  RunPace pace;
  EXPECT_FALSE(pace.seconds_of_run(kTrigger));
  for (int i = 0; i < 100; ++i) pace.observe(i, kTrigger, at(0.1 * i));
  EXPECT_FALSE(pace.seconds_of_run(kTrigger));
}

TEST(RunPace, TakesAsLongAsAFileNeedsToLeave) {
  RunPace pace;
  double now = 0;
  for (int i = 0; i < 20; ++i) {  // six files on the mean, three leave in six seconds
    for (int files : {8, 7, 6, 6, 5, 5}) pace.observe(files, kTrigger, at(now += 1));
  }
  ASSERT_TRUE(pace.seconds_of_run(kTrigger));
  EXPECT_NEAR(pace.seconds_of_run(kTrigger)->count(), 2, 0.5);
}

// What is compacted in three seconds takes no minute because nothing was there to be compacted before.
TEST(RunPace, TimeWithNothingToCompactDoesNotCount) {
  RunPace pace;
  for (int i = 0; i < 500; ++i) pace.observe(3, kTrigger, at(0.1 * i));
  for (int i = 0; i < 30; ++i) pace.observe(4, kTrigger, at(50 + 0.1 * i));
  pace.observe(1, kTrigger, at(53));
  ASSERT_TRUE(pace.seconds_of_run(kTrigger));
  EXPECT_LE(pace.seconds_of_run(kTrigger)->count(), 1.0);
}

// Whatever compactions cost, L0 is not crowded once the pace is known, and what comes back comes evenly.
TEST(RunPace, SettlesAtWhatIsCompacted) {
  for (const double below : {1.0, 3.0, 6.0, 9.0, 12.0}) {
    for (const double file : {0.1, 0.3, 0.6, 1.0, 1.5}) {
      const Seen seen = simulate({.below_s = below, .file_s = file}, 1.3, 600);
      EXPECT_LE(seen.most_files, 2 * kTrigger) << below << " " << file;
      EXPECT_GE(seen.least_second, 0.6) << below << " " << file;
    }
  }
}

// As behind an empty database, whose first compactions have little to merge with.
TEST(RunPace, FollowsCompactionsThatBecomeSlower) {
  for (const double below : {1.0, 2.0, 3.0}) {
    for (const double grows : {10.0, 20.0, 40.0, 80.0}) {
      const Seen seen = simulate({.below_s = below, .file_s = 0.6, .grows = grows}, 1.3, 80);
      EXPECT_GE(seen.least_second, 0.5) << below << " " << grows;
    }
  }
}

TEST(RunPace, ForgetsWhatWasLongAgo) {
  RunPace pace;
  pace.observe(8, kTrigger, at(0));
  pace.observe(4, kTrigger, at(1));
  EXPECT_TRUE(pace.seconds_of_run(kTrigger));
  pace.observe(4, kTrigger, at(1000));
  EXPECT_FALSE(pace.seconds_of_run(kTrigger));
}

}  // namespace
}  // namespace spillway::spill
