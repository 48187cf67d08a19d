// What may happen between two parts of a run that comes back: every key must read as it was last written.
#include <gtest/gtest.h>
#include <rocksdb/db.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "at_each_step.h"
#include "spillway/db.h"
#include "temporary_directory.h"

namespace spillway::clients {
namespace {

using rocksdb::Status;

using Model = std::map<std::string, std::string>;

class SpillParts : public ::testing::TestWithParam<rocksdb::CompactionStyle> {
 protected:
  void SetUp() override {
    options_.create_if_missing = true;
    options_.compaction_style = GetParam();
    options_.write_buffer_size = 256 << 10;
    options_.target_file_size_base = 256 << 10;
    options_.max_bytes_for_level_base = 512 << 10;
    spill_.generation_bytes = 128 << 10;
    spill_.capacity_bytes = 2900 << 10;  // there is no room for more than a part of what comes back
    spill_.put_back_bytes = 0;
    spill_.rollback = RollbackPolicy::off;
    open();
    rocksdb_writes(4000);
    diverted_writes(6000);
  }
  void open() {
    DB* db = nullptr;
    const Status status = DB::Open(options_, spill_, directory_.path("db"), &db);
    ASSERT_TRUE(status.ok()) << status.ToString();
    db_.reset(db);
  }
  void write(int count) {
    for (int i = 0; i < count; ++i) {
      const std::string key = "key" + std::to_string(1000 + random_() % 16000);
      if (random_() % 8 == 0) {
        ASSERT_TRUE(db_->Delete({}, key).ok());
        model_.erase(key);
      } else {
        const std::string value = std::to_string(++written_) + std::string(random_() % 900, 'v');
        ASSERT_TRUE(db_->Put({}, key, value).ok());
        model_[key] = value;
      }
    }
  }
  void rocksdb_writes(int count) {
    db_->SetDiversion(Diversion::never);
    write(count);
  }
  void diverted_writes(int count) {
    db_->SetDiversion(Diversion::always);
    write(count);
  }
  Model all(const rocksdb::ReadOptions& options = {}) {
    Model found;
    const std::unique_ptr<rocksdb::Iterator> pairs(db_->NewIterator(options));
    for (pairs->SeekToFirst(); pairs->Valid(); pairs->Next())
      found[pairs->key().ToString()] = pairs->value().ToString();
    EXPECT_TRUE(pairs->status().ok());
    return found;
  }
  // Brings everything back, and calls `each` after each part, in the thread of the rollback.
  int roll_back(const std::function<void(int)>& each) {
    std::atomic<int> parts{0};
    const AtEach then("spill.rollback.ingested", [&] { each(++parts); });
    EXPECT_TRUE(db_->Rollback().ok());
    return parts;
  }

  const TemporaryDirectory directory_;
  rocksdb::Options options_;
  SpillOptions spill_;
  std::unique_ptr<DB> db_;
  std::mt19937_64 random_{1};
  int written_ = 0;
  Model model_;
};

TEST_P(SpillParts, ASnapshotAfterEachSeesWhatItSawThen) {
  std::vector<const rocksdb::Snapshot*> snapshots;
  const Model before = model_;
  const int parts = roll_back([&](int) { snapshots.push_back(db_->GetSnapshot()); });
  EXPECT_GE(parts, 5);
  diverted_writes(500);
  ASSERT_TRUE(db_->Rollback().ok());
  for (const auto* snapshot : snapshots) {
    rocksdb::ReadOptions options;
    options.snapshot = snapshot;
    EXPECT_EQ(all(options), before);
    db_->ReleaseSnapshot(snapshot);
  }
  EXPECT_EQ(all(), model_);
}

TEST_P(SpillParts, WritesBetweenThemAreNewer) {
  std::future<void> writer;
  roll_back([&](int part) {
    if (part == 2) writer = std::async(std::launch::async, [&] { write(2000); });
  });
  if (writer.valid()) writer.get();
  EXPECT_EQ(all(), model_);
  ASSERT_TRUE(db_->Rollback().ok());
  EXPECT_EQ(all(), model_);
  EXPECT_TRUE(db_->CompactRange({}, nullptr, nullptr).ok());
  EXPECT_EQ(all(), model_);
  db_.reset();
  open();
  EXPECT_EQ(all(), model_);
}

TEST_P(SpillParts, AManualCompactionBesideThem) {
  std::vector<std::future<Status>> compactions;
  roll_back([&](int) {
    compactions.push_back(std::async(std::launch::async, [&] {
      rocksdb::CompactRangeOptions how;
      how.exclusive_manual_compaction = false;
      return db_->StackableDB::CompactRange(how, db_->DefaultColumnFamily(), nullptr, nullptr);
    }));
  });
  for (auto& one : compactions) (void)one.get();
  EXPECT_EQ(all(), model_);
}

TEST_P(SpillParts, APauseOfBackgroundWorkBetweenThem) {
  std::future<Status> pause;
  std::future<Status> rolled_back;
  {
    std::atomic<int> parts{0};
    std::atomic<bool> is_pausing{false};
    const AtEach then("spill.rollback.ingested", [&] {
      if (++parts != 1) return;
      pause = std::async(std::launch::async, [&] { return db_->PauseBackgroundWork(); });
      is_pausing = true;
    });
    rolled_back = std::async(std::launch::async, [&] { return db_->Rollback(); });
    while (!is_pausing) std::this_thread::yield();
    EXPECT_EQ(pause.wait_for(std::chrono::seconds(30)), std::future_status::ready);
    EXPECT_TRUE(pause.get().ok());
    EXPECT_EQ(all(), model_);
    write(200);
    EXPECT_TRUE(db_->ContinueBackgroundWork().ok());
    EXPECT_EQ(rolled_back.wait_for(std::chrono::seconds(60)), std::future_status::ready);
  }
  EXPECT_TRUE(rolled_back.get().ok());
  EXPECT_EQ(all(), model_);
}

// The store is full and makes room, and RocksDB has room in its memtables: a paused rollback is nothing to wait for.
TEST_P(SpillParts, AWriteDuringAPauseGoesToRocksdb) {
  const auto write_others = [&](int first, int count, bool may_wait) {
    rocksdb::WriteOptions options;
    options.no_slowdown = !may_wait;
    for (int i = first; i < first + count; ++i) {
      const std::string key = "other" + std::to_string(i);
      const Status status = db_->Put(options, key, std::string(1000, 'o'));
      if (!may_wait && status.IsIncomplete()) return;
      ASSERT_TRUE(status.ok()) << key << ": " << status.ToString();
      model_[key] = std::string(1000, 'o');
    }
  };
  std::future<Status> pause;
  std::future<Status> rolled_back;
  {
    std::promise<void> begun;
    const AtEach then("spill.rollback.ingested", [&, parts = 0]() mutable {
      if (++parts == 1) write_others(0, 400, /*may_wait=*/false);  // the store is full when the next part begins
      if (parts != 2) return;
      pause = std::async(std::launch::async, [&] { return db_->PauseBackgroundWork(); });
      begun.set_value();
    });
    rolled_back = std::async(std::launch::async, [&] { return db_->Rollback(); });
    begun.get_future().wait();
    ASSERT_TRUE(pause.get().ok());
    auto written = std::async(std::launch::async, [&] { write_others(1000, 100, /*may_wait=*/true); });
    EXPECT_EQ(written.wait_for(std::chrono::seconds(30)), std::future_status::ready);
    EXPECT_TRUE(db_->ContinueBackgroundWork().ok());
    written.get();
    EXPECT_TRUE(rolled_back.get().ok());
  }
  EXPECT_EQ(all(), model_);
}

// The write's key lies in the full store, so RocksDB cannot take it, and nothing comes back.
TEST_P(SpillParts, AWaitInAPauseEndsWithItOrWithAClose) {
  rocksdb::WriteOptions at_once;
  at_once.no_slowdown = true;
  ASSERT_TRUE(db_->PauseBackgroundWork().ok());
  const std::string key = model_.begin()->first;
  Status status;
  int written = 0;
  for (; written < 2000 && status.ok(); ++written) status = db_->Put(at_once, key, std::string(10'000, 'w'));
  ASSERT_TRUE(status.IsIncomplete()) << status.ToString();
  model_[key] = std::string(10'000, 'w');
  auto waits = std::async(std::launch::async, [&] { return db_->Put({}, key, std::string(10'000, 'n')); });
  EXPECT_EQ(waits.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout);
  EXPECT_TRUE(db_->ContinueBackgroundWork().ok());
  EXPECT_TRUE(waits.get().ok());
  model_[key] = std::string(10'000, 'n');
  ASSERT_TRUE(db_->PauseBackgroundWork().ok());
  for (status = {}; status.ok();) status = db_->Put(at_once, key, std::string(10'000, 'n'));
  waits = std::async(std::launch::async, [&] { return db_->Put({}, key, std::string(10'000, 'm')); });
  EXPECT_EQ(waits.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout);
  (void)db_->Close();
  EXPECT_TRUE(waits.get().IsShutdownInProgress());
  db_.reset();
  open();
  EXPECT_EQ(all(), model_);
}

TEST_P(SpillParts, AClosedDatabaseHasThemAllAgain) {
  std::future<Status> rolled_back;
  std::atomic<int> parts{0};
  {
    const AtEach then("spill.rollback.ingested", [&] { ++parts; });
    rolled_back = std::async(std::launch::async, [&] { return db_->Rollback(); });
    while (parts < 2 && rolled_back.wait_for(std::chrono::milliseconds(1)) == std::future_status::timeout) {
    }
    EXPECT_GE(parts, 2);
    (void)db_->Close();
    (void)rolled_back.get();
  }
  db_.reset();
  open();
  EXPECT_EQ(all(), model_);
  ASSERT_TRUE(db_->Rollback().ok());
  EXPECT_EQ(all(), model_);
}

INSTANTIATE_TEST_SUITE_P(Styles, SpillParts,
                         ::testing::Values(rocksdb::kCompactionStyleLevel, rocksdb::kCompactionStyleUniversal));

}  // namespace
}  // namespace spillway::clients
