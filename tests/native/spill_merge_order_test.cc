// Diverted merges, concurrent with writes of the same key that are not diverted: none of them is lost.
//
// A merge of a key in RocksDB is evaluated when it is diverted: its base is read from RocksDB, and the result is the
// newest version from then on. A write of the key that reached RocksDB in between would be hidden for ever.
#include <gtest/gtest.h>
#include <rocksdb/merge_operator.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "at_each_step.h"
#include "base/steps.h"
#include "spillway/db.h"
#include "temporary_directory.h"

namespace spillway::clients {
namespace {

// A decimal number to which operands are added.
class Sum final : public rocksdb::AssociativeMergeOperator {
 public:
  bool Merge(const rocksdb::Slice& /*key*/, const rocksdb::Slice* existing, const rocksdb::Slice& value,
             std::string* result, rocksdb::Logger* /*logger*/) const override {
    const long before = existing == nullptr ? 0 : std::stol(existing->ToString());
    *result = std::to_string(before + std::stol(value.ToString()));
    return true;
  }
  const char* Name() const override { return "Sum"; }
};

class SpillMergeOrder : public ::testing::Test {
 protected:
  void SetUp() override {
    rocksdb::Options options;
    options.create_if_missing = true;
    options.merge_operator = std::make_shared<Sum>();
    SpillOptions spill;
    spill.rollback = RollbackPolicy::off;
    DB* db = nullptr;
    const rocksdb::Status status = DB::Open(options, spill, directory_.path("db"), &db);
    ASSERT_TRUE(status.ok()) << status.ToString();
    db_.reset(db);
    // One key is in the spill store from now on. A write with it is diverted, all others are not.
    db_->SetDiversion(Diversion::always);
    ASSERT_TRUE(db_->Put({}, "live", "0").ok());
    db_->SetDiversion(Diversion::never);
  }

  // Diverted, because it has the live key.
  rocksdb::Status merge_with_live(const std::string& key, const std::string& operand) {
    rocksdb::WriteBatch batch;
    EXPECT_TRUE(batch.Put("live", "1").ok());
    EXPECT_TRUE(batch.Merge(key, operand).ok());
    return db_->Write({}, &batch);
  }

  std::string get(const std::string& key) {
    std::string value;
    const rocksdb::Status status = db_->Get({}, key, &value);
    return status.ok() ? value : status.ToString();
  }

  TemporaryDirectory directory_{memory_path()};
  std::unique_ptr<DB> db_;
};

// Another thread's action after the base of a merge was read. It is given time to end, and may be unable to.
class WhenBaseWasRead final : public steps::Watcher {
 public:
  explicit WhenBaseWasRead(std::function<void()> does) : does_(std::move(does)) { steps::watch(this); }
  ~WhenBaseWasRead() override {
    steps::watch(nullptr);
    if (thread_.joinable()) thread_.join();
  }
  void reached(std::string_view step) override {
    if (step != "spill.commit.base_read" || was_there_.exchange(true)) return;
    thread_ = std::thread([this] {
      does_();
      const std::lock_guard lock(mutex_);
      is_done_ = true;
      done_.notify_one();
    });
    std::unique_lock lock(mutex_);
    done_.wait_for(lock, std::chrono::milliseconds(200), [this] { return is_done_; });
  }
  bool was_there() const { return was_there_; }

 private:
  const std::function<void()> does_;
  std::atomic<bool> was_there_{false};
  std::mutex mutex_;
  std::condition_variable done_;
  bool is_done_ = false;
  std::thread thread_;
};

TEST_F(SpillMergeOrder, AWriteThatComesAfterTheBaseWasReadIsNotHidden) {
  using Write = std::function<rocksdb::Status()>;
  const std::vector<std::pair<Write, std::vector<std::string>>> cases{
      {[&] { return db_->Put({}, "k0", "100"); }, {"100", "101"}},
      {[&] { return db_->Merge({}, "k1", "100"); }, {"101"}},
      {[&] { return db_->Delete({}, "k2"); }, {"NotFound: ", "1"}},
      {[&] { return db_->DeleteRange({}, db_->DefaultColumnFamily(), "k3", "k4"); }, {"NotFound: ", "1"}}};
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::string key = "k" + std::to_string(i);
    if (i >= 2) {
      ASSERT_TRUE(db_->Put({}, key, "50").ok());
    }
    {
      const WhenBaseWasRead other([&] { EXPECT_TRUE(cases[i].first().ok()); });
      ASSERT_TRUE(merge_with_live(key, "1").ok());
      EXPECT_TRUE(other.was_there());
    }
    const std::string found = get(key);
    EXPECT_TRUE(std::find(cases[i].second.begin(), cases[i].second.end(), found) != cases[i].second.end())
        << key << " is " << found;
    ASSERT_TRUE(db_->Rollback().ok());
    EXPECT_EQ(get(key), found);
    db_->SetDiversion(Diversion::always);
    ASSERT_TRUE(db_->Put({}, "live", "0").ok());
    db_->SetDiversion(Diversion::never);
  }
}

// Merges that arrive while another is written form one group, in which each has the one before it as its base.
TEST_F(SpillMergeOrder, MergesOfOneGroupAreAllThere) {
  constexpr int kThreads = 6;
  std::vector<std::thread> threads;
  {
    const AtStep slow("spill.commit.before_append", [&] {
      for (int i = 0; i < kThreads; ++i) {
        threads.emplace_back([&] { EXPECT_TRUE(merge_with_live("sum", "1").ok()); });
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(200));  // they queue
    });
    ASSERT_TRUE(db_->Put({}, "live", "0").ok());
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(get("sum"), std::to_string(kThreads));
}

// Holds a diverted write that has announced its keys until a write to RocksDB has reached a step, and holds that one
// until the diverted write is over.
class InBetween final : public steps::Watcher {
 public:
  explicit InBetween(std::string_view step) : step_(step) { steps::watch(this); }
  ~InBetween() override { steps::watch(nullptr); }
  void reached(std::string_view step) override {
    if (step == "spill.commit.announced" && !is_announced_.exchange(true)) {
      is_announced_.notify_all();
      is_about_to_.wait(false);
    } else if (step == step_ && !is_about_to_.exchange(true)) {
      is_about_to_.notify_all();
      is_over_.wait(false);
    }
  }
  void wait_for_diverted() const { is_announced_.wait(false); }
  void diverted_is_over() {
    is_over_ = true;
    is_over_.notify_all();
  }

 private:
  const std::string_view step_;
  std::atomic<bool> is_announced_{false};
  std::atomic<bool> is_about_to_{false};
  std::atomic<bool> is_over_{false};
};

TEST_F(SpillMergeOrder, AWriteThatMeetsTheFirstDivertedOneIsNotHidden) {
  using Write = std::function<rocksdb::Status()>;
  const std::vector<std::pair<Write, std::string>> cases{
      {[&] { return db_->Put({}, "k0", "7"); }, "7"},
      {[&] { return db_->Merge({}, "k1", "7"); }, "107"},
      {[&] { return db_->Delete({}, "k2"); }, "NotFound: "},
      {[&] { return db_->DeleteRange({}, db_->DefaultColumnFamily(), "k3", "k4"); }, "NotFound: "}};
  for (const char* step : {"spill.write.looked_for_groups", "spill.write.announces"}) {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const std::string key = "k" + std::to_string(i);
      ASSERT_TRUE(db_->Rollback().ok());  // afterwards nothing is live
      db_->SetDiversion(Diversion::always);
      InBetween in_between(step);
      std::thread diverted([&] { EXPECT_TRUE(db_->Put({}, key, "100").ok()); });
      in_between.wait_for_diverted();
      db_->SetDiversion(Diversion::never);
      std::thread other([&] { EXPECT_TRUE(cases[i].first().ok()); });
      diverted.join();
      in_between.diverted_is_over();
      other.join();
      EXPECT_EQ(get(key), cases[i].second) << key << " at " << step;
      ASSERT_TRUE(db_->Rollback().ok());
      EXPECT_EQ(get(key), cases[i].second) << key << " at " << step;
    }
  }
}

// Starts another thread's write to RocksDB as soon as a diverted one has announced its keys. If that write gets so far,
// it is held before RocksDB has it.
class WriteMeetsDiverted final : public steps::Watcher {
 public:
  explicit WriteMeetsDiverted(std::function<void()> write) : write_(std::move(write)) { steps::watch(this); }
  ~WriteMeetsDiverted() override { steps::watch(nullptr); }
  void reached(std::string_view step) override {
    if (step == "spill.commit.announced" && !thread_.joinable()) {
      thread_ = std::thread([this] {
        is_this_thread_ = true;
        write_();
      });
      wait_for(is_held_, 200);
    }
    if (step == "spill.write.announced" && is_this_thread_) {
      is_held_ = true;
      wait_for(may_go_on_, 5'000);
    }
  }
  void go_on() {
    may_go_on_ = true;
    thread_.join();
  }

 private:
  static void wait_for(const std::atomic<bool>& what, int most_ms) {
    for (int i = 0; i < most_ms && !what; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  static thread_local bool is_this_thread_;
  const std::function<void()> write_;
  std::thread thread_;
  std::atomic<bool> is_held_{false};
  std::atomic<bool> may_go_on_{false};
};
thread_local bool WriteMeetsDiverted::is_this_thread_ = false;

// A batch with a key that is hidden by a concurrent range deletion must follow it with all of its keys. (A low-priority
// write waits for RocksDB, even while others are diverted because RocksDB may not be written to.)
TEST_F(SpillMergeOrder, ABatchThatMeetsARangeDeletionIsNotHiddenInPart) {
  for (const bool low_pri : {false, true}) {
    for (const bool something_is_live : {true, false}) {
      if (!something_is_live) {
        ASSERT_TRUE(db_->Rollback().ok());
      }
      const std::string outside = std::string(low_pri ? "low" : "high") + (something_is_live ? " live" : "");
      WriteMeetsDiverted meeting([&] {
        db_->SetDiversion(Diversion::never);
        rocksdb::WriteBatch batch;
        EXPECT_TRUE(batch.Put("a", outside).ok());
        EXPECT_TRUE(batch.Put(outside, "1").ok());
        rocksdb::WriteOptions options;
        options.low_pri = low_pri;
        EXPECT_TRUE(db_->Write(options, &batch).ok());
      });
      db_->SetDiversion(Diversion::always);
      EXPECT_TRUE(db_->DeleteRange({}, db_->DefaultColumnFamily(), "a", "b").ok());
      const bool was_there = get(outside) == "1";
      meeting.go_on();
      EXPECT_EQ(get(outside), "1");
      EXPECT_TRUE(was_there || get("a") == outside) << get("a");
    }
  }
}

// While nothing is live, a write to RocksDB announces no keys. The first diverted write waits for it.
TEST_F(SpillMergeOrder, ABatchThatHasAnnouncedNothingIsNotHiddenInPart) {
  ASSERT_TRUE(db_->Rollback().ok());
  std::thread diverted;
  std::atomic<bool> is_over{false};
  bool was_over = false;
  bool was_there = false;
  const AtStep held("spill.write.announced", [&] {
    db_->SetDiversion(Diversion::always);
    diverted = std::thread([&] {
      EXPECT_TRUE(db_->Put({}, "a", "diverted").ok());
      is_over = true;
    });
    for (int i = 0; i < 200 && !is_over; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    was_over = is_over;
    was_there = get("z") == "1";
  });
  rocksdb::WriteBatch batch;
  ASSERT_TRUE(batch.Put("a", "1").ok());
  ASSERT_TRUE(batch.Put("z", "1").ok());
  EXPECT_TRUE(db_->Write({}, &batch).ok());
  ASSERT_TRUE(held.was_reached());
  diverted.join();
  EXPECT_FALSE(was_there);
  EXPECT_EQ(get("a"), was_over ? "1" : "diverted");
}

TEST_F(SpillMergeOrder, NoIncrementOfManyThreadsIsLost) {
  constexpr int kRounds = 1500;
  std::barrier<> together(3);
  std::vector<std::thread> threads;
  std::atomic<bool> failed{false};
  const auto check = [&](const rocksdb::Status& status) {
    if (!status.ok()) failed = true;
  };
  threads.emplace_back([&] {
    for (int i = 0; i < kRounds; ++i) {
      together.arrive_and_wait();
      check(merge_with_live("n" + std::to_string(i), "1"));
    }
  });
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kRounds; ++i) {
        together.arrive_and_wait();
        check(db_->Merge({}, "n" + std::to_string(i), "1"));
      }
    });
  }
  for (std::thread& one : threads) one.join();
  EXPECT_FALSE(failed);
  int lost = 0;
  for (int i = 0; i < kRounds; ++i) lost += get("n" + std::to_string(i)) == "3" ? 0 : 1;
  EXPECT_EQ(lost, 0) << "of " << kRounds;
}

TEST_F(SpillMergeOrder, APutThatIsOverDoesNotVanish) {
  constexpr int kRounds = 1500;
  std::barrier<> together(2);
  std::thread merging([&] {
    for (int i = 0; i < kRounds; ++i) {
      together.arrive_and_wait();
      EXPECT_TRUE(merge_with_live("p" + std::to_string(i), "1").ok());
    }
  });
  for (int i = 0; i < kRounds; ++i) {
    together.arrive_and_wait();
    EXPECT_TRUE(db_->Put({}, "p" + std::to_string(i), "100").ok());
  }
  merging.join();
  int vanished = 0;
  for (int i = 0; i < kRounds; ++i) {
    const std::string value = get("p" + std::to_string(i));
    vanished += value == "100" || value == "101" ? 0 : 1;
  }
  EXPECT_EQ(vanished, 0) << "of " << kRounds;
}

// Not only for merges: a snapshot must not see a diverted write without one that went to RocksDB before it.
TEST_F(SpillMergeOrder, BatchesOfCommonKeysHaveOneOrder) {
  constexpr int kRounds = 3000;
  std::atomic<int> anomalies{0};
  std::barrier<> together(3);
  std::vector<std::string> first(kRounds);
  std::thread to_rocksdb([&] {
    for (int i = 0; i < kRounds; ++i) {
      together.arrive_and_wait();
      rocksdb::WriteBatch batch;
      EXPECT_TRUE(batch.Put("a" + std::to_string(i), "rocksdb").ok());
      EXPECT_TRUE(batch.Put("b" + std::to_string(i), "rocksdb").ok());
      EXPECT_TRUE(db_->Write({}, &batch).ok());
    }
  });
  std::thread diverted([&] {
    for (int i = 0; i < kRounds; ++i) {
      together.arrive_and_wait();
      rocksdb::WriteBatch batch;
      EXPECT_TRUE(batch.Put("live", "1").ok());
      EXPECT_TRUE(batch.Put("a" + std::to_string(i), "diverted").ok());
      EXPECT_TRUE(db_->Write({}, &batch).ok());
    }
  });
  for (int i = 0; i < kRounds; ++i) {
    together.arrive_and_wait();
    const std::string a = "a" + std::to_string(i);
    const std::string b = "b" + std::to_string(i);
    rocksdb::ReadOptions now;
    bool saw_diverted_alone = false;
    for (int tries = 0; tries < 20; ++tries) {
      now.snapshot = db_->GetSnapshot();
      std::string of_a;
      std::string of_b;
      const bool has_a = db_->Get(now, a, &of_a).ok();
      const bool has_b = db_->Get(now, b, &of_b).ok();
      if (has_a && of_a == "diverted" && !has_b) saw_diverted_alone = true;
      db_->ReleaseSnapshot(now.snapshot);
    }
    first[static_cast<std::size_t>(i)] = saw_diverted_alone ? "diverted" : "";
  }
  to_rocksdb.join();
  diverted.join();
  // A reader that saw the diverted write without the other has seen that it came first; so the other has overwritten
  // it.
  for (int i = 0; i < kRounds; ++i) {
    if (first[static_cast<std::size_t>(i)] == "diverted" && get("a" + std::to_string(i)) != "rocksdb") ++anomalies;
  }
  EXPECT_EQ(anomalies.load(), 0) << "of " << kRounds;
}

}  // namespace
}  // namespace spillway::clients
