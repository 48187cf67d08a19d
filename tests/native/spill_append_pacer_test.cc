// Backpressure of the software region, with an artificial clock.
#include <gtest/gtest.h>

#include <chrono>

#include "spill/store/region/append_pacer.h"

namespace spillway::spill {
namespace {

using namespace std::chrono_literals;
using Clock = AppendPacer::Clock;

constexpr std::uint64_t kFull = 1000;

Clock::time_point at(Clock::duration since_start) { return Clock::time_point(1h) + since_start; }

TEST(AppendPacer, NoPauseBeforeTheFirstSync) {
  AppendPacer pacer;
  for (std::uint64_t end = 100; end < kFull; end += 100) EXPECT_EQ(pacer.pause_after(100, end, kFull, at(0s)), 0s);
}

// A sync of 100 ms that has just begun, spread over the 1000 bytes of the current log: 10 bytes correspond to 1 ms.
TEST(AppendPacer, SpreadsWhatIsLeftOfASyncOverWhatIsLeftOfTheLog) {
  AppendPacer pacer;
  pacer.sync_begins(at(0s));
  pacer.sync_ends(at(0s), at(100ms));
  pacer.sync_begins(at(200ms));
  EXPECT_EQ(pacer.pause_after(10, 0, kFull, at(200ms)), 0s);  // 1 ms: less than the shortest pause
  const auto pause = pacer.pause_after(10, 0, kFull, at(200ms));
  EXPECT_NEAR(std::chrono::duration<double>(pause).count(), 2e-3, 1e-6);
  EXPECT_EQ(pacer.pause_after(10, 0, kFull, at(200ms)), 0s);  // the pause before has paid
  pacer.forgive();
  EXPECT_EQ(pacer.pause_after(10, 0, kFull, at(200ms)), 0s);  // and its last ms is forgiven
  // With 50 ms of the sync and half of the log left, as before.
  EXPECT_NEAR(std::chrono::duration<double>(pacer.pause_after(15, 500, kFull, at(250ms))).count(), 2.5e-3, 1e-6);
}

TEST(AppendPacer, APauseIsLimitedAndTheRestIsPaidLater) {
  AppendPacer pacer;
  pacer.sync_ends(at(0s), at(100ms));
  pacer.sync_begins(at(200ms));
  EXPECT_EQ(pacer.pause_after(500, 0, kFull, at(200ms)), AppendPacer::kLongestPause);  // owes 50 ms
  EXPECT_EQ(pacer.pause_after(0, 0, kFull, at(200ms)), AppendPacer::kLongestPause);    // of which one pause stays owed
  EXPECT_EQ(pacer.pause_after(0, 0, kFull, at(200ms)), 0s);
}

TEST(AppendPacer, ALogAsLongAsTheLastPaysTheRestOfTheSync) {
  AppendPacer pacer;
  pacer.sync_ends(at(0s), at(4ms));
  pacer.sync_begins(at(10ms));
  EXPECT_NEAR(std::chrono::duration<double>(pacer.pause_after(1, kFull, kFull, at(10ms))).count(), 4e-3, 1e-6);
}

// It is expected to take a quarter longer than it has taken so far.
TEST(AppendPacer, ASyncThatTakesLongerThanTheLastCausesMorePauses) {
  AppendPacer pacer;
  pacer.sync_ends(at(0s), at(1ms));
  pacer.sync_begins(at(10ms));
  EXPECT_NEAR(std::chrono::duration<double>(pacer.pause_after(1, kFull, kFull, at(22ms))).count(), 3e-3, 1e-6);
  pacer.sync_failed();  // no sync is in progress: the last one's time counts, of which nothing has passed
  EXPECT_EQ(pacer.pause_after(1, kFull, kFull, at(40ms)), 0s);
  EXPECT_EQ(pacer.pause_after(1, kFull, kFull, at(40ms)), AppendPacer::kShortestPause);
}

}  // namespace
}  // namespace spillway::spill
