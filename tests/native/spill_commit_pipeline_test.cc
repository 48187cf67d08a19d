// The commit pipeline over an environment that records its calls: groups, order, and mutual exclusion.
#include "spill_commit_pipeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace spillway::spill {
namespace {

using rocksdb::Status;
using rocksdb::WriteBatch;

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

}  // namespace
}  // namespace spillway::spill
