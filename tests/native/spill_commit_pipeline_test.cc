// The commit pipeline over an environment that records its calls: groups, order, and mutual exclusion.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "spill/commit/commit_pipeline.h"
#include "spill/store/batch_visitor.h"

namespace spillway::spill {
namespace {

using rocksdb::Slice;
using rocksdb::Status;
using rocksdb::WriteBatch;

// Keeps records in memory. Each answer can be set.
class FakeEnv final : public CommitEnv {
 public:
  bool has_live() const override { return has_live_; }

  std::chrono::nanoseconds pace(std::span<Commit* const> group) override {
    paced_groups.push_back(group.size());
    return paces_for;
  }

  Status admit(const Commit& commit, std::uint64_t group_bytes) override {
    EXPECT_FALSE(is_inside_.exchange(true)) << "two groups at once";
    is_inside_ = false;
    admitted_bytes.push_back(group_bytes);
    return group_bytes <= capacity || commit.must_divert ? Status() : Status::Busy("full");
  }

  Status prepare(Commit& commit, PreparedCommit* prepared) override {
    if (!prepare_result.ok()) return prepare_result;
    prepared->commit = &commit;
    prepared->batch = commit.batch;
    prepared->first_sequence = next_sequence_;
    next_sequence_ += commit.batch->Count();
    prepared->record.assign(kRecordHeaderBytes + commit.batch->GetDataSize() + grows_by, 'r');
    return {};
  }

  Status append(std::span<PreparedCommit> group, bool sync) override {
    if (on_append) on_append();
    const auto waits = std::exchange(next_append_waits, std::chrono::nanoseconds{0});
    if (waits.count() > 0) std::this_thread::sleep_for(waits);
    for (const PreparedCommit& one : group) one.commit->waited += waits;
    if (!append_result.ok()) return append_result;
    groups.emplace_back();
    for (PreparedCommit& one : group) {
      one.offset = next_offset_++;
      groups.back().push_back(one.first_sequence);
    }
    synced.push_back(sync);
    return {};
  }

  void apply(std::span<const PreparedCommit> group) override {
    if (on_apply) on_apply();
    for (const PreparedCommit& one : group) applied.push_back(one.offset);
  }

  std::uint64_t capacity = ~std::uint64_t{0};
  std::uint64_t grows_by = 0;
  Status prepare_result;
  Status append_result;
  std::function<void()> on_append;
  std::function<void()> on_apply;
  std::chrono::nanoseconds next_append_waits{0};  // for the drive; counted as Store::append_wait is
  std::chrono::nanoseconds paces_for{0};
  std::vector<std::size_t> paced_groups;
  std::atomic<bool> has_live_{true};

  std::vector<std::uint64_t> admitted_bytes;
  std::vector<std::vector<Sequence>> groups;
  std::vector<bool> synced;
  std::vector<std::uint64_t> applied;

 private:
  Sequence next_sequence_ = 1;
  std::uint64_t next_offset_ = 0;
  std::atomic<bool> is_inside_{false};
};

class CommitPipelineTest : public testing::Test {
 protected:
  static WriteBatch put(const std::string& key, std::size_t value_bytes = 10) {
    WriteBatch batch;
    EXPECT_TRUE(batch.Put(key, std::string(value_bytes, 'v')).ok());
    return batch;
  }
  Status commit(WriteBatch batch, bool sync = false, bool must_divert = false) {
    Commit one;
    one.batch = &batch;
    one.sync = sync;
    one.must_divert = must_divert;
    pipeline_.commit(one);
    return one.status;
  }
  // Holds the queue until `waiting` commits wait in it, so that they form one group. Returns their statuses.
  std::vector<Status> commit_together(std::vector<WriteBatch> batches, bool sync_last = false) {
    std::vector<Status> statuses(batches.size());
    std::vector<std::thread> threads;
    pipeline_.queue().run_alone([&] {
      for (std::size_t i = 0; i < batches.size(); ++i) {
        threads.emplace_back([&, i] { statuses[i] = commit(batches[i], sync_last && i + 1 == batches.size()); });
        std::this_thread::sleep_for(std::chrono::milliseconds(30));  // so that they queue in this order
      }
    });
    for (std::thread& thread : threads) thread.join();
    return statuses;
  }
  void expect_that_a_commit_does_not_wait() {
    WriteBatch batch = put("key");
    Commit one;
    one.batch = &batch;
    pipeline_.commit(one);
    EXPECT_EQ(one.waited.count(), 0);
  }
  static KeyFence::Stripe stripe(const std::string& key) { return KeyFence::stripe_of(0, key); }

  FakeEnv env_;
  CommitPipeline pipeline_{env_};
};

TEST_F(CommitPipelineTest, ACommitIsAppendedThenApplied) {
  bool was_applied_before = true;
  env_.on_append = [&] { was_applied_before = !env_.applied.empty(); };
  EXPECT_TRUE(commit(put("a")).ok());
  EXPECT_FALSE(was_applied_before);
  EXPECT_EQ(env_.groups, (std::vector<std::vector<Sequence>>{{1}}));
  EXPECT_EQ(env_.applied, std::vector<std::uint64_t>{0});
}

TEST_F(CommitPipelineTest, CommitsThatWaitTogetherAreAppendedTogetherInOrder) {
  const auto statuses = commit_together({put("a"), put("b"), put("c")});
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(env_.groups, (std::vector<std::vector<Sequence>>{{1, 2, 3}}));
  EXPECT_EQ(env_.applied, (std::vector<std::uint64_t>{0, 1, 2}));
}

TEST_F(CommitPipelineTest, OneSyncMakesTheGroupASyncOne) {
  commit_together({put("a"), put("b")}, /*sync_last=*/true);
  EXPECT_EQ(env_.synced, std::vector<bool>{true});
  commit_together({put("a"), put("b")});
  EXPECT_EQ(env_.synced, (std::vector<bool>{true, false}));
}

TEST_F(CommitPipelineTest, ARefusedSyncCommitSyncsNoOther) {
  env_.capacity = 2 * (kRecordHeaderBytes + put("a").GetDataSize());
  const auto statuses = commit_together({put("a"), put("b"), put("c")}, /*sync_last=*/true);
  EXPECT_TRUE(statuses[0].ok() && statuses[1].ok());
  EXPECT_TRUE(statuses[2].IsBusy());
  EXPECT_EQ(env_.synced, std::vector<bool>{false});
}

TEST_F(CommitPipelineTest, RoomIsRequestedWithTheBytesOfTheGroupBefore) {
  const std::uint64_t one = kRecordHeaderBytes + put("a").GetDataSize();
  commit_together({put("a"), put("b"), put("c")});
  EXPECT_EQ(env_.admitted_bytes, (std::vector<std::uint64_t>{one, 2 * one, 3 * one}));
}

TEST_F(CommitPipelineTest, ARefusedCommitTakesNoRoomFromLaterOnes) {
  const std::uint64_t small = kRecordHeaderBytes + put("a").GetDataSize();
  env_.capacity = 2 * small;
  const auto statuses = commit_together({put("a"), put("b", 1000), put("c")});
  EXPECT_TRUE(statuses[0].ok());
  EXPECT_TRUE(statuses[1].IsBusy());
  EXPECT_TRUE(statuses[2].ok());
  EXPECT_EQ(env_.groups.size(), 1U);
  EXPECT_EQ(env_.groups.front().size(), 2U);
}

TEST_F(CommitPipelineTest, RoomIsRequestedAgainForARecordThatBecameLonger) {
  env_.grows_by = 100;
  const std::uint64_t before = kRecordHeaderBytes + put("a").GetDataSize();
  env_.capacity = before + 99;
  EXPECT_TRUE(commit(put("a")).IsBusy());
  EXPECT_TRUE(env_.groups.empty());
  env_.capacity = before + 100;
  EXPECT_TRUE(commit(put("a")).ok());
}

TEST_F(CommitPipelineTest, NothingIsAppendedWhenAllAreRefused) {
  env_.prepare_result = Status::InvalidArgument("no such family");
  for (const Status& status : commit_together({put("a"), put("b")})) EXPECT_TRUE(status.IsInvalidArgument());
  EXPECT_TRUE(env_.groups.empty());
  EXPECT_TRUE(env_.applied.empty());
}

TEST_F(CommitPipelineTest, AFailedAppendFailsTheGroupAndNothingIsApplied) {
  env_.append_result = Status::TryAgain("in doubt");
  for (const Status& status : commit_together({put("a"), put("b")})) EXPECT_TRUE(status.IsTryAgain());
  EXPECT_TRUE(env_.applied.empty());
  env_.append_result = Status::OK();
  EXPECT_TRUE(commit(put("c")).ok()) << "the queue goes on";
}

TEST_F(CommitPipelineTest, CommitsWithAMergeAreCommittedOneByOne) {
  WriteBatch merge;
  ASSERT_TRUE(merge.Merge("a", "operand").ok());
  for (const Status& status : commit_together({put("a"), merge, put("b")})) EXPECT_TRUE(status.ok());
  EXPECT_EQ(env_.groups, (std::vector<std::vector<Sequence>>{{1}, {2}, {3}}));
}

TEST_F(CommitPipelineTest, KeysAreAnnouncedFromBeforeTheAppendUntilTheyCanBeRead) {
  const auto is_announced = [&] {
    KeyFence::MainKeys keys(pipeline_.fence());
    return !keys.announce(stripe("a")) && pipeline_.fence().has_groups();
  };
  bool in_append = false;
  bool in_apply = false;
  env_.on_append = [&] { in_append = is_announced(); };
  env_.on_apply = [&] { in_apply = is_announced(); };
  EXPECT_FALSE(is_announced());
  EXPECT_TRUE(commit(put("a")).ok());
  EXPECT_TRUE(in_append);
  EXPECT_TRUE(in_apply);
  EXPECT_FALSE(is_announced());
}

TEST_F(CommitPipelineTest, EveryKindOfOperationWithAKeyIsAnnounced) {
  WriteBatch batch;
  ASSERT_TRUE(batch.Put("put", "v").ok());
  ASSERT_TRUE(batch.Delete("delete").ok());
  ASSERT_TRUE(batch.SingleDelete("single").ok());
  ASSERT_TRUE(batch.Merge("merge", "o").ok());
  std::map<std::string, bool> is_free;
  env_.on_append = [&] {
    for (const char* key : {"put", "delete", "single", "merge", "another"}) {
      KeyFence::MainKeys keys(pipeline_.fence());
      is_free[key] = keys.announce(stripe(key));
    }
  };
  EXPECT_TRUE(commit(batch).ok());
  EXPECT_EQ(is_free, (std::map<std::string, bool>{
                         {"put", false}, {"delete", false}, {"single", false}, {"merge", false}, {"another", true}}));
}

TEST_F(CommitPipelineTest, AGroupWaitsForAWriteToRocksdbWithOneOfItsKeys) {
  auto keys = std::make_unique<KeyFence::MainKeys>(pipeline_.fence());
  ASSERT_TRUE(keys->announce(stripe("a")));
  std::atomic<bool> was_appended{false};
  env_.on_append = [&] { was_appended = true; };
  std::thread other([&] { EXPECT_TRUE(commit(put("a")).ok()); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(was_appended) << "it went past a write of its key";
  keys.reset();
  other.join();
  EXPECT_TRUE(was_appended);
}

TEST_F(CommitPipelineTest, AGroupDoesNotWaitForAWriteOfOtherKeys) {
  KeyFence::MainKeys keys(pipeline_.fence());
  ASSERT_NE(stripe("a"), stripe("b"));
  ASSERT_TRUE(keys.announce(stripe("b")));
  EXPECT_TRUE(commit(put("a")).ok());  // otherwise this test does not end
}

// A writer that passed the gate before the group was visible has announced nothing, so the group waits until it has
// left.
TEST_F(CommitPipelineTest, TheFirstGroupWaitsForAllWritersInsideRocksdb) {
  env_.has_live_ = false;
  auto pass = std::make_unique<Gate::Pass>(pipeline_.gate());
  ASSERT_TRUE(*pass);
  std::atomic<bool> was_appended{false};
  env_.on_append = [&] { was_appended = true; };
  std::thread other([&] { EXPECT_TRUE(commit(put("a")).ok()); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(was_appended);
  pass.reset();
  other.join();
  EXPECT_FALSE(pipeline_.gate().is_closed());
}

TEST_F(CommitPipelineTest, LaterGroupsDoNotWaitForThoseInsideRocksdb) {
  const Gate::Pass pass(pipeline_.gate());
  ASSERT_TRUE(pass);
  EXPECT_TRUE(commit(put("a")).ok());  // otherwise this test does not end
}

// The keys of a range cannot be announced, so no writer is inside RocksDB while it is committed.
TEST_F(CommitPipelineTest, TheGateIsClosedWhileARangeDeletionIsCommitted) {
  WriteBatch range;
  ASSERT_TRUE(range.DeleteRange("a", "z").ok());
  bool in_append = false;
  bool in_apply = false;
  env_.on_append = [&] { in_append = pipeline_.gate().is_closed(); };
  env_.on_apply = [&] { in_apply = pipeline_.gate().is_closed(); };
  EXPECT_TRUE(commit(range).ok());
  EXPECT_TRUE(in_append);
  EXPECT_TRUE(in_apply);
  EXPECT_FALSE(pipeline_.gate().is_closed());
  env_.append_result = Status::Busy();
  EXPECT_TRUE(commit(range).IsBusy());
  EXPECT_FALSE(pipeline_.gate().is_closed()) << "a failure leaves it closed";
}

TEST_F(CommitPipelineTest, WhatRunsAloneMeetsNoGroup) {
  std::atomic<bool> is_alone{false};
  std::atomic<bool> has_met{false};
  env_.on_append = [&] { has_met = has_met || is_alone; };
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 4; ++writer) {
    writers.emplace_back([&, writer] {
      for (int i = 0; i < 200; ++i) EXPECT_TRUE(commit(put("key" + std::to_string(writer * 1000 + i))).ok());
    });
  }
  for (int i = 0; i < 100; ++i) {
    pipeline_.queue().run_alone([&] {
      is_alone = true;
      std::this_thread::yield();
      is_alone = false;
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_FALSE(has_met);
  EXPECT_EQ(env_.applied.size(), 800U);
  EXPECT_TRUE(std::is_sorted(env_.applied.begin(), env_.applied.end())) << "they can be read in another order";
}

TEST_F(CommitPipelineTest, BackpressureEndsWithItsRequest) {
  const auto time_of_commit = [&] {
    const auto began = std::chrono::steady_clock::now();
    EXPECT_TRUE(commit(put("a")).ok());
    return std::chrono::steady_clock::now() - began;
  };
  {
    CommitPipeline::Backpressure backpressure(pipeline_);
    for (int i = 0; i < 10; ++i) backpressure.increase();
    EXPECT_GE(time_of_commit(),
              std::chrono::microseconds(50 << 9));  // 50 us, doubled nine times: a sleep is not shorter
  }
  std::chrono::steady_clock::duration least = std::chrono::hours(1);
  for (int i = 0; i < 100; ++i) least = std::min(least, time_of_commit());
  EXPECT_LT(least, std::chrono::microseconds(50 << 9));
}

TEST_F(CommitPipelineTest, ACommitWithoutADelayHasNotWaited) { expect_that_a_commit_does_not_wait(); }

TEST_F(CommitPipelineTest, BackpressureIsWaitedForByEveryCommitOfTheGroup) {
  CommitPipeline::Backpressure backpressure(pipeline_);
  backpressure.increase();
  WriteBatch batch = put("a");
  Commit one;
  one.batch = &batch;
  pipeline_.commit(one);
  EXPECT_EQ(one.waited, std::chrono::microseconds(50));
}

TEST_F(CommitPipelineTest, AGroupIsPacedOnceAndThatIsNotCountedAsBackpressure) {
  env_.paces_for = std::chrono::milliseconds(5);
  WriteBatch batch = put("a");
  Commit one;
  one.batch = &batch;
  const auto began = std::chrono::steady_clock::now();
  pipeline_.commit(one);
  EXPECT_GE(std::chrono::steady_clock::now() - began, env_.paces_for);
  EXPECT_EQ(one.paced, env_.paces_for);
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
  constexpr std::chrono::milliseconds kWait{50};
  WriteBatch batches[] = {put("a"), put("b")};
  ASSERT_TRUE(batches[1].Merge("b", "m").ok());
  Commit commits[2];
  std::vector<std::thread> threads;
  env_.on_append = [&] { env_.next_append_waits = kWait; };
  pipeline_.queue().run_alone([&] {
    for (std::size_t i = 0; i < 2; ++i) {
      commits[i].batch = &batches[i];
      threads.emplace_back([&, i] { pipeline_.commit(commits[i]); });
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
    }
  });
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(env_.groups.size(), 2U);
  EXPECT_EQ(commits[0].waited, 2 * kWait);  // the leader returns when its followers are done
  EXPECT_EQ(commits[1].waited, 2 * kWait);
}

// The store takes nothing of a commit that it refuses, but the commit was in the group that waited.
TEST_F(CommitPipelineTest, ARefusedCommitHasWaitedWithItsGroup) {
  constexpr std::chrono::milliseconds kWait{50};
  WriteBatch batches[] = {put("a"), put("b", 1000)};
  Commit commits[2];
  env_.capacity = 500;
  env_.next_append_waits = kWait;
  std::vector<std::thread> threads;
  pipeline_.queue().run_alone([&] {
    for (std::size_t i = 0; i < 2; ++i) {
      commits[i].batch = &batches[i];
      threads.emplace_back([&, i] { pipeline_.commit(commits[i]); });
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
    }
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(commits[1].status.IsBusy());
  EXPECT_EQ(commits[0].waited, kWait);
  EXPECT_EQ(commits[1].waited, kWait);
}

}  // namespace
}  // namespace spillway::spill
