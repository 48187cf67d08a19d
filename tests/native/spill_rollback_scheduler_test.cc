// When the next rollback begins: without a thread, and with artificial times.
#include <gtest/gtest.h>

#include <chrono>

#include "spill/rollback/rollback_scheduler.h"

namespace spillway::spill {
namespace {

using namespace std::chrono_literals;
using rocksdb::Status;
using Outcome = RollbackScheduler::Outcome;

constexpr std::chrono::milliseconds kPoll = 100ms;
constexpr GenerationId kNobodyWants = 1000;

class RollbackSchedulerTest : public testing::Test {
 protected:
  // An attempt that begins now, and its result after `took`.
  bool attempt(std::uint64_t generations, const Status& status, std::chrono::milliseconds took = 0ms,
               bool is_stopping = false) {
    scheduler_.begin();
    Outcome outcome;
    outcome.began = now_;
    outcome.generations = generations;
    outcome.status = status;
    now_ += took;
    return scheduler_.end(outcome, now_, is_stopping);
  }
  RollbackState observe(const RollbackScheduler::Activity& activity, GenerationId oldest = kNobodyWants) {
    RollbackState state;
    scheduler_.observe(activity, oldest, now_, &state);
    return state;
  }

  RollbackScheduler::Time now_{1h};
  RollbackScheduler scheduler_{kPoll, now_};
};

TEST_F(RollbackSchedulerTest, LooksAgainAfterThePollInterval) {
  EXPECT_FALSE(scheduler_.is_due());
  EXPECT_EQ(scheduler_.pause(), kPoll);
  EXPECT_FALSE(attempt(0, Status::OK()));  // there was nothing to bring back
  EXPECT_EQ(scheduler_.pause(), kPoll);
  EXPECT_FALSE(scheduler_.retries_by_itself());
}

TEST_F(RollbackSchedulerTest, ComesBackSoonAfterAPartOrATooEarlyTry) {
  EXPECT_FALSE(attempt(1, Status::OK()));
  const auto soon = scheduler_.pause();
  EXPECT_LT(soon, kPoll);
  EXPECT_FALSE(scheduler_.retries_by_itself());  // there may be nothing left
  EXPECT_FALSE(attempt(1, Status::TryAgain()));
  EXPECT_EQ(scheduler_.pause(), soon);
  EXPECT_TRUE(scheduler_.retries_by_itself());
  EXPECT_EQ(scheduler_.failures(), 0U);
}

TEST_F(RollbackSchedulerTest, AWakeUpIsKeptUntilTheNextAttemptBegins) {
  scheduler_.wake(/*insists=*/false);
  EXPECT_TRUE(scheduler_.is_due());
  scheduler_.wake(/*insists=*/false);
  EXPECT_TRUE(scheduler_.is_due());
  scheduler_.begin();
  EXPECT_FALSE(scheduler_.is_due());
}

TEST_F(RollbackSchedulerTest, ThePauseDoublesWithEachFailureUpToALimit) {
  auto before = 0ms;
  for (int failures = 1; failures <= 20; ++failures) {
    EXPECT_TRUE(attempt(1, Status::IOError("the drive is gone")));
    EXPECT_EQ(scheduler_.failures(), static_cast<std::uint64_t>(failures));
    EXPECT_TRUE(scheduler_.last_failure().IsIOError());
    const auto pause = scheduler_.pause();
    EXPECT_TRUE(pause == 2 * before || failures == 1 || pause == 10s) << pause.count();
    EXPECT_GE(pause, before);
    before = pause;
  }
  EXPECT_EQ(before, 10s);
  attempt(1, Status::OK());
  EXPECT_LT(scheduler_.pause(), kPoll);
  attempt(0, Status::OK());
  EXPECT_EQ(scheduler_.pause(), kPoll);
  EXPECT_EQ(scheduler_.failures(), 20U);  // failures stay counted
}

TEST_F(RollbackSchedulerTest, AnAttemptThatBringsNothingBackDoesNotEndThePauseAfterAFailure) {
  attempt(1, Status::IOError());
  const auto pause = scheduler_.pause();
  attempt(0, Status::OK());
  EXPECT_EQ(scheduler_.pause(), pause);
}

TEST_F(RollbackSchedulerTest, OnlyAnInsistingCallShortensThePauseAfterAFailure) {
  attempt(1, Status::IOError());
  scheduler_.wake(/*insists=*/false);
  EXPECT_FALSE(scheduler_.is_due());
  scheduler_.wake(/*insists=*/true);
  EXPECT_TRUE(scheduler_.is_due());
}

TEST_F(RollbackSchedulerTest, AFailureWhileTheDatabaseClosesIsNone) {
  EXPECT_FALSE(attempt(1, Status::Aborted(), 0ms, /*is_stopping=*/true));
  EXPECT_EQ(scheduler_.failures(), 0U);
}

TEST_F(RollbackSchedulerTest, APausedAttemptIsRetriedWithoutAWakeUp) {
  scheduler_.begin();
  Outcome outcome;
  outcome.is_paused = true;
  EXPECT_FALSE(scheduler_.end(outcome, now_, false));
  EXPECT_TRUE(scheduler_.retries_by_itself());
  EXPECT_EQ(scheduler_.pause(), kPoll);
}

TEST_F(RollbackSchedulerTest, WhatIsAwaitedIsAskedForAndEndsWithItsGeneration) {
  EXPECT_FALSE(observe({}, 5).call_waits);
  EXPECT_FALSE(observe({}, 5).rollback_requested);
  scheduler_.ask_for(5);
  EXPECT_TRUE(observe({}, 5).rollback_requested);
  EXPECT_FALSE(observe({}, 5).call_waits);
  scheduler_.await(7);
  scheduler_.await(3);  // another caller, which needs less
  for (const GenerationId oldest : {3, 5, 7}) {
    EXPECT_TRUE(observe({}, oldest).call_waits) << oldest;
    EXPECT_TRUE(observe({}, oldest).rollback_requested) << oldest;
  }
  EXPECT_FALSE(observe({}, 8).call_waits);
  EXPECT_FALSE(observe({}, 8).rollback_requested);
}

TEST_F(RollbackSchedulerTest, RatesAreOfTheTimeSinceTheLastLook) {
  now_ += 1s;
  observe({.reads = 10, .writes = 100, .diverted = 40});
  now_ += 500ms;
  const RollbackState state = observe({.reads = 60, .writes = 300, .diverted = 40});
  EXPECT_DOUBLE_EQ(state.reads_per_s, 100);
  EXPECT_DOUBLE_EQ(state.writes_per_s, 400);
}

// A look at the moment of another one would take a burst for no write at all, and bring all of it back.
TEST_F(RollbackSchedulerTest, AMomentSaysNothingOfRates) {
  now_ += 1s;
  observe({.reads = 10, .writes = 10000, .diverted = 40});
  for (const auto moment : {0us, 1us, 10'000us, 30'000us}) {
    now_ += moment;
    const RollbackState state = observe({.reads = 10, .writes = 10000, .diverted = 40});
    EXPECT_DOUBLE_EQ(state.reads_per_s, 10);
    EXPECT_DOUBLE_EQ(state.writes_per_s, 10000);
  }
  now_ += 60ms;
  const RollbackState state = observe({.reads = 20, .writes = 10000, .diverted = 40});
  EXPECT_NEAR(state.reads_per_s, 100, 1);
  EXPECT_DOUBLE_EQ(state.writes_per_s, 0);
}

TEST_F(RollbackSchedulerTest, IdleIsTheTimeSinceTheLastDivertedWrite) {
  now_ += 2s;
  EXPECT_DOUBLE_EQ(observe({}).idle_s, 2);  // since the database was opened
  now_ += 1s;
  EXPECT_DOUBLE_EQ(observe({.writes = 9, .diverted = 0}).idle_s, 3);  // a write to RocksDB does not count
  EXPECT_DOUBLE_EQ(observe({.writes = 10, .diverted = 1}).idle_s, 0);
  now_ += 250ms;
  EXPECT_DOUBLE_EQ(observe({.writes = 10, .diverted = 1}).idle_s, 0.25);
}

TEST_F(RollbackSchedulerTest, RestCountsFromTheEndOfTheLastRollbackThatBroughtSomethingBack) {
  attempt(1, Status::OK(), 200ms);
  now_ += 300ms;
  RollbackState state = observe({});
  EXPECT_DOUBLE_EQ(state.last_took_s, 0.2);
  EXPECT_DOUBLE_EQ(state.since_last_rollback_s, 0.3);
  attempt(1, Status::TryAgain(), 50ms);
  attempt(1, Status::IOError(), 50ms);
  attempt(0, Status::OK(), 50ms);
  state = observe({});
  EXPECT_DOUBLE_EQ(state.last_took_s, 0.2);
  EXPECT_DOUBLE_EQ(state.since_last_rollback_s, 0.45);
}

}  // namespace
}  // namespace spillway::spill
