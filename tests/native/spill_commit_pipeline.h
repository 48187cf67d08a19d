// A commit pipeline over an environment that records its calls.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "spill/commit/commit_pipeline.h"

namespace spillway::spill {

// Keeps records in memory. Each answer can be set.
class FakeEnv final : public CommitEnv {
 public:
  using Status = rocksdb::Status;

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
  using Status = rocksdb::Status;
  using WriteBatch = rocksdb::WriteBatch;

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
  // Holds the queue until all of them wait in it, in this order.
  void commit_as_one_group(std::span<WriteBatch> batches, std::span<Commit> commits) {
    std::vector<std::thread> threads;
    pipeline_.queue().run_alone([&] {
      for (std::size_t i = 0; i < commits.size(); ++i) {
        commits[i].batch = &batches[i];
        threads.emplace_back([&, i] { pipeline_.commit(commits[i]); });
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
      }
    });
    for (std::thread& thread : threads) thread.join();
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

}  // namespace spillway::spill
