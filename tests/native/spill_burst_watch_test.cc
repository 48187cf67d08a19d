// Whether a burst lasts, from counts of operations.
#include <gtest/gtest.h>

#include <chrono>

#include "spill/stall/burst_watch.h"

namespace spillway::spill {
namespace {

using std::chrono::milliseconds;

class BurstWatchTest : public ::testing::Test {
 protected:
  // A tenth of a second at these rates.
  bool step(Route route, double writes_per_s, double reads_per_s = 0) {
    at_.writes += static_cast<std::uint64_t>(writes_per_s / 10);
    at_.reads += static_cast<std::uint64_t>(reads_per_s / 10);
    return watch_.lasts(at_, route, now_ += milliseconds(100));
  }
  bool steps(int count, Route route, double writes_per_s, double reads_per_s = 0) {
    bool last = false;
    for (int i = 0; i < count; ++i) last = step(route, writes_per_s, reads_per_s);
    return last;
  }

  BurstWatch watch_;
  BurstWatch::Activity at_;
  BurstWatch::Time now_{std::chrono::hours(1)};
};

TEST_F(BurstWatchTest, LastsWhileWritesComeAsFast) {
  EXPECT_FALSE(steps(10, Route::main, 40000));
  EXPECT_TRUE(steps(10, Route::spill, 90000)) << "the spill store is faster";
  EXPECT_TRUE(steps(10, Route::spill, 46000));
  EXPECT_FALSE(watch_.is_over());
  EXPECT_FALSE(steps(5, Route::spill, 44000)) << "less than half";
  EXPECT_TRUE(watch_.is_over());
  EXPECT_TRUE(steps(5, Route::spill, 50000)) << "and again";
  EXPECT_FALSE(watch_.is_over());
}

// As when a burst meets an L0 that is nearly full.
TEST_F(BurstWatchTest, ADiversionMayBeginWithTheBurst) {
  steps(10, Route::main, 0);
  EXPECT_FALSE(step(Route::spill, 1000));
  EXPECT_TRUE(steps(10, Route::spill, 90000));
  EXPECT_FALSE(steps(5, Route::spill, 1000));
  EXPECT_TRUE(watch_.is_over());
}

// A rate that falls because writers are slowed is no end of the burst.
TEST_F(BurstWatchTest, WhatIsPacedTellsNothing) {
  steps(10, Route::main, 40000);
  steps(10, Route::spill, 90000);
  for (int i = 0; i < 10; ++i) {
    ++at_.pauses;
    step(Route::spill, 5000);
  }
  EXPECT_FALSE(watch_.is_over());
  steps(5, Route::spill, 5000);
  EXPECT_TRUE(watch_.is_over());
}

// Nor is one that falls because writers wait for a rollback of a full store, for longer than a window.
TEST_F(BurstWatchTest, WhileWritersWaitForARollbackNothingIsOver) {
  steps(10, Route::main, 40000);
  steps(10, Route::spill, 90000);
  at_.waits_for_rollback = true;
  steps(20, Route::spill, 0);
  EXPECT_FALSE(watch_.is_over());
  at_.waits_for_rollback = false;
  steps(5, Route::spill, 0);
  EXPECT_TRUE(watch_.is_over());
}

// Nor is one that falls because writers wait for the drive; and what is over is not on again because few writes wait.
TEST_F(BurstWatchTest, WhatTheDriveLimitsTellsNothing) {
  steps(10, Route::main, 40000);
  steps(10, Route::spill, 90000);
  for (int i = 0; i < 10; ++i) {
    at_.waited += milliseconds(60);
    EXPECT_TRUE(step(Route::spill, 5000));
  }
  EXPECT_FALSE(watch_.is_over());
  for (int i = 0; i < 10; ++i) {
    at_.waited += milliseconds(40);
    step(Route::spill, 5000);
  }
  EXPECT_TRUE(watch_.is_over()) << "as few in the time in which they did not wait";
  for (int i = 0; i < 10; ++i) {
    at_.waited += milliseconds(60);
    EXPECT_FALSE(step(Route::spill, 5000));
  }
  EXPECT_TRUE(watch_.is_over());
  EXPECT_TRUE(steps(5, Route::spill, 90000));
  EXPECT_FALSE(watch_.is_over());
}

// Writers that wait for less than half of the time: what counts is how fast they come in the rest.
TEST_F(BurstWatchTest, TheRateIsThatOfTheTimeWithoutWaits) {
  steps(10, Route::main, 40000);
  steps(10, Route::spill, 90000);
  for (int i = 0; i < 10; ++i) {
    at_.waited += milliseconds(20);
    EXPECT_TRUE(step(Route::spill, 37000)) << "46,000 a second in the rest";
  }
  EXPECT_FALSE(watch_.is_over());
  for (int i = 0; i < 10; ++i) {
    at_.waited += milliseconds(20);
    step(Route::spill, 35000);
  }
  EXPECT_TRUE(watch_.is_over());
}

TEST_F(BurstWatchTest, EndsWithAStoreMostlyFullOrWithReaders) {
  steps(10, Route::main, 40000);
  EXPECT_TRUE(steps(10, Route::spill, 40000));
  at_.share_used = 0.7;
  EXPECT_FALSE(step(Route::spill, 40000));
  at_.share_used = 0.69;
  EXPECT_TRUE(step(Route::spill, 40000));
  EXPECT_FALSE(steps(5, Route::spill, 36000, 4000));
  EXPECT_FALSE(watch_.is_over()) << "the writes have not become fewer";
}

TEST_F(BurstWatchTest, EachDiversionBeginsABurst) {
  steps(10, Route::main, 40000);
  steps(10, Route::spill, 40000);
  steps(10, Route::main, 2000);
  EXPECT_TRUE(watch_.is_over());
  step(Route::spill, 2000);
  EXPECT_FALSE(watch_.is_over()) << "from its first moment on";
  EXPECT_TRUE(steps(5, Route::spill, 2000)) << "RocksDB has not kept up with that either";
  EXPECT_FALSE(watch_.is_over());
}

// Polls come together when flushes and compactions end.
TEST_F(BurstWatchTest, ManyPollsInAMomentSayNothingNew) {
  steps(10, Route::main, 40000);
  EXPECT_TRUE(steps(10, Route::spill, 40000));
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(watch_.lasts(at_, Route::spill, now_ += std::chrono::microseconds(10)));
}

TEST_F(BurstWatchTest, NothingIsKnownAtFirst) {
  EXPECT_FALSE(step(Route::spill, 40000)) << "a database that was opened in a stall";
  EXPECT_FALSE(watch_.is_over());
  EXPECT_TRUE(steps(3, Route::spill, 40000));
}

}  // namespace
}  // namespace spillway::spill
