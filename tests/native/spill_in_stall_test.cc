// Rollbacks that a call waits for while RocksDB has stopped writes, and stays stopped.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <future>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "spill_main_only.h"
#include "spill_rocksdb_of.h"
#include "spillway/db.h"

namespace spillway::clients {
namespace {

using rocksdb::Status;

// Keeps every compaction thread of RocksDB busy.
class NoCompactions {
 public:
  NoCompactions() {
    const int threads = std::max(1, env_->GetBackgroundThreads(rocksdb::Env::LOW));
    const auto wait = [](void* one) { static_cast<NoCompactions*>(one)->wait(); };
    for (waiting_ = threads; begun_ < threads; ++begun_) env_->Schedule(wait, this, rocksdb::Env::LOW);
  }
  ~NoCompactions() {
    std::unique_lock lock(mutex_);
    is_over_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return waiting_ == 0; });
  }

 private:
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_over_; });
    --waiting_;
    changed_.notify_all();
  }
  rocksdb::Env* const env_ = rocksdb::Env::Default();
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  int begun_ = 0;
  int waiting_ = 0;
};

class SpillInStall : public MainOnly {
 protected:
  void SetUp() override {
    open();
    const Status status = db_->SetOptions({{"level0_file_num_compaction_trigger", "2"},
                                           {"level0_slowdown_writes_trigger", "4"},
                                           {"level0_stop_writes_trigger", "4"}});
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  bool has_stopped() {
    std::uint64_t is_stopped = 0;
    return rocksdb_of(*db_).GetIntProperty("rocksdb.is-write-stopped", &is_stopped) && is_stopped == 1;
  }
  // REQUIRES: no compaction is running
  void stop() {
    rocksdb::FlushOptions at_once;
    at_once.allow_write_stall = true;
    for (int i = 0; i < 20 && !has_stopped(); ++i) {
      for (const char* key : {"a", "z"}) ASSERT_TRUE(rocksdb_of(*db_).Put({}, key, std::to_string(i)).ok());
      ASSERT_TRUE(rocksdb_of(*db_).Flush(at_once).ok());
    }
    ASSERT_TRUE(has_stopped());
  }
};

TEST_F(SpillInStall, NoCopyAndNoIngestionWaitsForItsEnd) {
  rocksdb::ColumnFamilyHandle* family = nullptr;
  ASSERT_TRUE(db_->CreateColumnFamily({}, "family", &family).ok());
  const std::string file = sorted_file("one.sst", "ingested", "1");
  using Call = std::pair<std::string, std::function<Status()>>;
  const std::vector<Call> calls{
      {"Rollback", [&] { return db_->Rollback(); }},
      {"GetLiveFiles",
       [&] {
         std::vector<std::string> files;
         std::uint64_t bytes = 0;
         return db_->GetLiveFiles(files, &bytes, /*flush_memtable=*/false);
       }},
      {"GetSortedWalFiles",
       [&] {
         rocksdb::VectorLogPtr files;
         return db_->GetSortedWalFiles(files);
       }},
      {"IngestExternalFile", [&] { return db_->IngestExternalFile({file}, {}); }},
      {"our checkpoint", [&] { return checkpoint_by_us(*db_, directory_.path("ours")); }},
      {"RocksDB's checkpoint", [&] { return checkpoint_by_rocksdb(*db_, directory_.path("RocksDB's")); }},
      {"backup", [&] { return backup(*db_, directory_.path("backup")); }},
      {"DropColumnFamily", [&] { return db_->DropColumnFamily(family); }}};
  std::future<Status> called;  // waited for when the stall is over
  {
    const NoCompactions meanwhile;
    stop();
    for (const auto& [name, call] : calls) {
      SCOPED_TRACE(name);
      for (const std::size_t bytes : {10, 100'000}) {  // one would be put back, one is ingested
        ASSERT_TRUE(put(name + std::to_string(bytes), std::string(bytes, 'v')).ok());
      }
      if (name == "DropColumnFamily") {
        ASSERT_TRUE(db_->Put({}, family, "k", "v").ok());
      }
      called = std::async(std::launch::async, call);
      const bool is_answered = called.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
      EXPECT_TRUE(is_answered) << "it waits for the end of the stall";
      if (!is_answered) break;
      const Status status = called.get();
      EXPECT_TRUE(status.ok()) << status.ToString();
      EXPECT_TRUE(has_stopped());
    }
  }
  for (const auto& [name, call] : calls) EXPECT_EQ(get(*db_, name + "10"), std::string(10, 'v')) << name;
  EXPECT_EQ(get(*db_, "ingested"), "1");
  EXPECT_TRUE(db_->DestroyColumnFamilyHandle(family).ok());
}

// A killed process leaves what it has written to its files.
TEST_F(SpillInStall, WhatCameBackAndWhatWasDivertedSinceOutliveAKill) {
  const std::string large(100'000, 'v');
  std::vector<std::string> killed;
  {
    const NoCompactions meanwhile;
    stop();
    for (int round = 0; round < 3; ++round) {
      const std::string number = std::to_string(round);
      ASSERT_TRUE(put("in each", "older " + number).ok());
      ASSERT_TRUE(put("of " + number, large).ok());
      ASSERT_TRUE(db_->Rollback().ok());
      ASSERT_TRUE(put("in each", "newer " + number).ok());
      EXPECT_TRUE(has_stopped());
      killed.push_back(directory_.path("killed-" + number));
      std::filesystem::copy(directory_.path("db"), killed.back(), std::filesystem::copy_options::recursive);
    }
  }
  for (std::size_t round = 0; round < killed.size(); ++round) {
    SCOPED_TRACE(round);
    DB* opened = nullptr;
    const Status status = DB::Open({}, SpillOptions(), killed[round], &opened);
    ASSERT_TRUE(status.ok()) << status.ToString();
    const std::unique_ptr<DB> again(opened);
    EXPECT_EQ(get(*again, "in each"), "newer " + std::to_string(round));
    for (std::size_t of = 0; of < killed.size(); ++of) {
      EXPECT_EQ(get(*again, "of " + std::to_string(of)), of <= round ? large : "-");
    }
    EXPECT_TRUE(again->Rollback().ok());
    EXPECT_EQ(get(*again, "in each"), "newer " + std::to_string(round));
  }
}

// Several calls wait, while other threads write the keys that come back.
TEST_F(SpillInStall, SeveralCallsMayWaitDuringWrites) {
  {
    const NoCompactions meanwhile;
    stop();
    ASSERT_TRUE(put("k", "first").ok());
    std::vector<std::future<Status>> waiting;
    for (int i = 0; i < 3; ++i) {
      waiting.push_back(std::async(std::launch::async, [&] { return db_->Rollback(); }));
    }
    for (int i = 0; i < 200; ++i) ASSERT_TRUE(put("k", std::to_string(i)).ok());
    for (auto& one : waiting) {
      ASSERT_EQ(one.wait_for(std::chrono::seconds(20)), std::future_status::ready);
      EXPECT_TRUE(one.get().ok());
    }
    EXPECT_EQ(get(*db_, "k"), "199");
    EXPECT_TRUE(has_stopped());
  }
  EXPECT_TRUE(db_->Rollback().ok());
  EXPECT_EQ(get(*db_, "k"), "199");
}

}  // namespace
}  // namespace spillway::clients
