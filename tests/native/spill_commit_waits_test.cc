// How long commits wait in the commit pipeline, and for what.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "spill_commit_pipeline.h"

namespace spillway::spill {
namespace {

using rocksdb::Status;
using rocksdb::WriteBatch;

TEST_F(CommitPipelineTest, BackpressureEndsWithItsRequest) {
  const auto time_of_commit = [&] {
    const auto began = std::chrono::steady_clock::now();
    EXPECT_TRUE(commit(put("a")).ok());
    return std::chrono::steady_clock::now() - began;
  };
  {
    CommitPipeline::Backpressure backpressure(pipeline_);
    for (int i = 0; i < 8; ++i) backpressure.increase();
    EXPECT_GE(time_of_commit(),
              std::chrono::microseconds(50 << 7));  // 50 us, doubled seven times: a sleep is not shorter
  }
  std::chrono::steady_clock::duration least = std::chrono::hours(1);
  for (int i = 0; i < 100; ++i) least = std::min(least, time_of_commit());
  EXPECT_LT(least, std::chrono::microseconds(50 << 7));
}

// Calls that do not get on ask for more and more, and others beside them.
TEST_F(CommitPipelineTest, BackpressureOfManyCallsIsOneShortPause) {
  std::vector<std::unique_ptr<CommitPipeline::Backpressure>> calls;
  for (int call = 0; call < 4; ++call) {
    calls.push_back(std::make_unique<CommitPipeline::Backpressure>(pipeline_));
    for (int i = 0; i < 14; ++i) calls.back()->increase();  // 410 ms each
  }
  env_.paces_for = std::chrono::milliseconds(8);
  std::chrono::steady_clock::duration least = std::chrono::hours(1);
  for (int i = 0; i < 20; ++i) {
    const auto began = std::chrono::steady_clock::now();
    EXPECT_TRUE(commit(put("a")).ok());
    least = std::min(least, std::chrono::steady_clock::now() - began);
  }
  EXPECT_GE(least, env_.paces_for);
  EXPECT_LT(least, 2 * env_.paces_for) << "the pauses are added";
}

TEST_F(CommitPipelineTest, ACommitWithoutADelayHasNotWaited) { expect_that_a_commit_does_not_wait(); }

TEST_F(CommitPipelineTest, BackpressureIsWaitedForByEveryCommitOfTheGroup) {
  CommitPipeline::Backpressure backpressure(pipeline_);
  backpressure.increase();
  WriteBatch batch = put("a");
  Commit one;
  one.batch = &batch;
  pipeline_.commit(one);
  EXPECT_GE(one.waited, std::chrono::microseconds(50));
  EXPECT_EQ(one.paced.count(), 0);
}

TEST_F(CommitPipelineTest, AGroupIsPacedOnceAndThatIsNotCountedAsBackpressure) {
  env_.paces_for = std::chrono::milliseconds(5);
  WriteBatch batch = put("a");
  Commit one;
  one.batch = &batch;
  const auto began = std::chrono::steady_clock::now();
  pipeline_.commit(one);
  EXPECT_GE(std::chrono::steady_clock::now() - began, env_.paces_for);
  EXPECT_GE(one.paced, env_.paces_for);
  EXPECT_LE(one.paced, std::chrono::steady_clock::now() - began);
  EXPECT_EQ(one.waited.count(), 0);
  EXPECT_EQ(env_.paced_groups, std::vector<std::size_t>{1});
}

// A commit that came before the queue was held has waited for the whole time, a later one since it came.
TEST_F(CommitPipelineTest, ACallThatHoldsTheQueueIsWaitedFor) {
  constexpr std::chrono::milliseconds kHeld{60};
  WriteBatch batches[] = {put("a"), put("b")};
  Commit early;
  Commit late;
  early.batch = &batches[0];
  late.batch = &batches[1];
  std::vector<std::thread> threads;
  pipeline_.queue().run_held(
      [&] {
        threads.emplace_back([&] { pipeline_.commit(early); });
        std::this_thread::sleep_for(kHeld);  // the queue is not held yet
      },
      [&] {
        std::this_thread::sleep_for(kHeld);
        threads.emplace_back([&] { pipeline_.commit(late); });
        std::this_thread::sleep_for(kHeld);
      });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(early.status.ok() && late.status.ok());
  EXPECT_GE(early.waited, 2 * kHeld);
  EXPECT_GT(late.waited.count(), 0);
  EXPECT_LT(late.waited, early.waited);
}

// A commit whose append waits for the drive, and what is queued behind it meanwhile.
class WaitBehindAppend : public CommitPipelineTest {
 protected:
  static constexpr std::chrono::milliseconds kWait{1000};
  static constexpr std::chrono::milliseconds kLater{100};

  // Starts the append of a first commit, and `behind` kLater after it began. Returns the first commit's wait when both
  // have ended.
  std::chrono::nanoseconds run_behind(const std::function<void()>& behind) {
    WriteBatch batch = put("first");
    Commit first;
    first.batch = &batch;
    std::atomic<bool> appends{false};
    env_.on_append = [&] { appends = true; };
    env_.next_append_waits = kWait;
    std::thread leader([&] { pipeline_.commit(first); });
    while (!appends) std::this_thread::yield();
    std::this_thread::sleep_for(kLater);
    behind();
    leader.join();
    env_.on_append = nullptr;
    return first.waited;
  }
};

TEST_F(WaitBehindAppend, ACommitBehindItWaitsFromItsArrivalOn) {
  WriteBatch batch = put("second");
  Commit second;
  second.batch = &batch;
  const auto began = std::chrono::steady_clock::now();
  const auto first = run_behind([&] { pipeline_.commit(second); });
  const auto both = std::chrono::steady_clock::now() - began;
  EXPECT_EQ(first, kWait);
  EXPECT_GT(second.waited, (kWait - kLater) / 2);  // half: the machine may start it late
  EXPECT_LE(second.waited, both - kLater);
  EXPECT_LT(second.waited, kWait);
}

TEST_F(WaitBehindAppend, WhatRunsAloneWaitsAsWell) {
  std::chrono::nanoseconds waited{0};
  run_behind([&] { waited = pipeline_.queue().run_alone([] {}); });
  EXPECT_GT(waited, (kWait - kLater) / 2);
  EXPECT_LT(waited, kWait);
}

TEST_F(WaitBehindAppend, ACommitThatComesAfterwardsHasNotWaited) {
  run_behind([] {});
  expect_that_a_commit_does_not_wait();
}

// A group with a merge is appended one by one: each has waited for those before it, and for its own append.
TEST_F(CommitPipelineTest, CommitsOfAGroupWithAMergeWaitForEachOther) {
  constexpr std::chrono::milliseconds kWait{200};
  WriteBatch batches[] = {put("a"), put("b")};
  ASSERT_TRUE(batches[1].Merge("b", "m").ok());
  Commit commits[2];
  env_.on_append = [&] { env_.next_append_waits = kWait; };
  commit_as_one_group(batches, commits);
  ASSERT_EQ(env_.groups.size(), 2U);
  EXPECT_GE(commits[0].waited, 2 * kWait);  // the leader returns when its followers are done
  EXPECT_GE(commits[1].waited, 2 * kWait);
}

// The store takes nothing of a commit that it refuses, but the commit was in the group that waited.
TEST_F(CommitPipelineTest, ARefusedCommitHasWaitedWithItsGroup) {
  constexpr std::chrono::milliseconds kWait{200};
  WriteBatch batches[] = {put("a"), put("b", 1000)};
  Commit commits[2];
  env_.capacity = 500;
  env_.next_append_waits = kWait;
  commit_as_one_group(batches, commits);
  EXPECT_TRUE(commits[1].status.IsBusy());
  EXPECT_GE(commits[0].waited, kWait);
  EXPECT_GE(commits[1].waited, kWait);
}

// A first commit, of which something takes long, and one that comes behind it meanwhile.
class WaitBehindStep : public CommitPipelineTest {
 protected:
  static constexpr std::chrono::milliseconds kLong{200};
  struct Waits {
    std::chrono::nanoseconds first{0};
    std::chrono::nanoseconds behind{0};
  };
  // `takes_long` is called in the step.
  Waits run(std::function<void()>* takes_long, bool first_syncs, bool behind_syncs) {
    WriteBatch batches[] = {put("first"), put("behind")};
    Commit commits[2];
    for (std::size_t i = 0; i < 2; ++i) commits[i].batch = &batches[i];
    commits[0].sync = first_syncs;
    commits[1].sync = behind_syncs;
    std::thread behind;
    *takes_long = [&] {
      if (behind.joinable()) return;
      behind = std::thread([&] { pipeline_.commit(commits[1]); });
      std::this_thread::sleep_for(kLong);
    };
    pipeline_.commit(commits[0]);
    behind.join();
    *takes_long = nullptr;
    return {commits[0].waited, commits[1].waited};
  }
};

TEST_F(WaitBehindStep, AnAppendIsWaitedForByItsWriterAndByThoseBehindIt) {
  const Waits waits = run(&env_.on_append, false, false);
  EXPECT_GE(waits.first, kLong);
  EXPECT_GT(waits.behind, kLong / 4);
}

TEST_F(WaitBehindStep, AWriterThatSyncsHasNotWaitedForItsOwnSyncAndThoseBehindItHave) {
  const Waits waits = run(&env_.on_append, true, false);
  EXPECT_EQ(waits.first.count(), 0);
  EXPECT_GT(waits.behind, kLong / 4);
  EXPECT_EQ(run(&env_.on_append, true, true).behind.count(), 0) << "it would have waited for its own";
}

TEST_F(WaitBehindStep, WhatMakesEntriesVisibleIsWaitedForByThoseBehindIt) {
  EXPECT_GT(run(&env_.on_apply, false, false).behind, kLong / 4);
}

TEST_F(WaitBehindStep, WhatRunsAloneIsWaitedFor) {
  WriteBatch batch = put("behind");
  Commit behind;
  behind.batch = &batch;
  std::thread commits;
  pipeline_.queue().run_alone([&] {
    commits = std::thread([&] { pipeline_.commit(behind); });
    std::this_thread::sleep_for(kLong);
  });
  commits.join();
  EXPECT_GT(behind.waited, kLong / 4);
}

// Before the first commit of all, and before a range deletion, every writer leaves RocksDB.
TEST_F(WaitBehindStep, WritersInsideRocksdbAreWaitedFor) {
  env_.has_live_ = false;
  auto pass = std::make_unique<Gate::Pass>(pipeline_.gate());
  ASSERT_TRUE(*pass);
  WriteBatch batch = put("a");
  Commit one;
  one.batch = &batch;
  std::thread other([&] { pipeline_.commit(one); });
  std::this_thread::sleep_for(kLong);
  pass.reset();
  other.join();
  EXPECT_GT(one.waited, kLong / 4);
}

TEST_F(WaitBehindStep, APauseIsCountedAsOneByThoseBehindIt) {
  env_.paces_for = kLong;
  WriteBatch batches[] = {put("a"), put("b")};
  Commit commits[2];
  for (std::size_t i = 0; i < 2; ++i) commits[i].batch = &batches[i];
  std::thread first([&] { pipeline_.commit(commits[0]); });
  std::this_thread::sleep_for(kLong / 4);
  pipeline_.commit(commits[1]);
  first.join();
  EXPECT_GT(commits[1].paced, kLong) << "that of its own group, and the rest of the one before";
  EXPECT_EQ(commits[1].waited.count(), 0);
}

}  // namespace
}  // namespace spillway::spill
