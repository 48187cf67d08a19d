// Space that the software region takes on its file system while it is full, comes back, and is held by a snapshot.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <thread>

#include "base/steps.h"
#include "needs.h"
#include "spillway/db.h"
#include "temporary_directory.h"

namespace spillway::clients {
namespace {

using rocksdb::Status;

// The logs and sorted files of a directory, measured at every step of diversion and rollback.
class Meter final : public steps::Watcher {
 public:
  explicit Meter(std::string directory) : directory_(std::move(directory)) { steps::watch(this); }
  ~Meter() override { steps::watch(nullptr); }
  void reached(std::string_view step) override {
    // Measures at only a few of many writes.
    const bool is_write = step.starts_with("spill.commit.") || step == "spill.region.append.written";
    if (!step.starts_with("spill.") || (is_write && writes_++ % 256 != 0)) return;
    std::uint64_t bytes = 0;
    std::uint64_t allocated = 0;
    std::set<ino_t> seen;  // a file that is renamed meanwhile counts once
    std::error_code error;
    for (std::filesystem::directory_iterator at(directory_, error), end; !error && at != end; at.increment(error)) {
      const std::string name = at->path().filename();
      if (!name.ends_with(".spill") && !name.ends_with(".dropped") && !name.ends_with(".sst")) continue;
      struct stat found {};
      if (stat(at->path().c_str(), &found) != 0 || !seen.insert(found.st_ino).second) continue;
      bytes += static_cast<std::uint64_t>(found.st_size);
      const std::uint64_t rounded = found.st_blksize;
      const std::uint64_t blocks = static_cast<std::uint64_t>(found.st_blocks) * 512;
      allocated += blocks - std::min(blocks, rounded);  // the last block is rarely full
    }
    raise(most_bytes, bytes);
    raise(most_allocated, allocated);
  }

  std::atomic<std::uint64_t> most_bytes = 0;
  std::atomic<std::uint64_t> most_allocated = 0;

 private:
  static void raise(std::atomic<std::uint64_t>& to, std::uint64_t value) {
    std::uint64_t before = to;
    while (before < value && !to.compare_exchange_weak(before, value)) {
    }
  }
  const std::string directory_;
  std::atomic<std::uint64_t> writes_ = 0;
};

class SpillCapacity : public ::testing::Test {
 protected:
  void open(std::uint64_t generation_bytes) {
    options_.create_if_missing = true;
    options_.compression = rocksdb::kNoCompression;
    spill_.capacity_bytes = kCapacity;
    spill_.generation_bytes = generation_bytes;
    spill_.rollback = RollbackPolicy::off;
    spill_.put_back_bytes = 0;
    DB* db = nullptr;
    const Status status = DB::Open(options_, spill_, directory_.path("db"), &db);
    ASSERT_TRUE(status.ok()) << status.ToString();
    db_.reset(db);
    db_->SetDiversion(Diversion::always);
  }
  // Puts new keys until one goes to RocksDB because the store is full.
  void fill(std::size_t value_bytes) {
    const std::uint64_t before = db_->GetSpillStatistics().main_writes;
    while (db_->GetSpillStatistics().main_writes == before) {
      std::string value(value_bytes, '\0');
      for (char& one : value) one = static_cast<char>(random_());
      const Status status = db_->Put({}, "key" + std::to_string(keys_++), value);
      ASSERT_TRUE(status.ok()) << status.ToString();
    }
  }

  static constexpr std::uint64_t kCapacity = 4 << 20;
  TemporaryDirectory directory_;
  rocksdb::Options options_;
  SpillOptions spill_;
  std::unique_ptr<DB> db_;
  std::mt19937_64 random_{1};
  std::uint64_t keys_ = 0;
};

// Also if one generation may be as large as the store.
TEST_F(SpillCapacity, BoundsLogsAndSortedFilesTogether) {
  SPILLWAY_LONG_TEST();
  for (const std::uint64_t generation_bytes : {kCapacity / 16, kCapacity}) {
    for (const std::size_t value_bytes : {10, 2000, 50'000}) {
      for (const bool holds : {false, true}) {
        SCOPED_TRACE(testing::Message() << generation_bytes << ", " << value_bytes << ", " << holds);
        db_.reset();
        std::filesystem::remove_all(directory_.path("db"));
        open(generation_bytes);
        const Meter meter(directory_.path("db") + "/spill");
        const rocksdb::Snapshot* held = nullptr;
        for (int round = 0; round < 2; ++round) {
          fill(value_bytes);
          if (HasFatalFailure()) return;
          if (holds && held == nullptr) held = db_->GetSnapshot();
          const Status status = db_->Rollback();
          ASSERT_TRUE(status.ok()) << status.ToString();
        }
        if (held != nullptr) {
          EXPECT_GT(db_->GetSpillStatistics().held_bytes, 0U);
          db_->ReleaseSnapshot(held);
        }
        db_.reset();
        EXPECT_LE(meter.most_bytes, kCapacity);
        EXPECT_LE(meter.most_allocated, kCapacity);
        EXPECT_GT(meter.most_bytes, kCapacity / 2) << "and most of it is used";
      }
    }
  }
}

TEST_F(SpillCapacity, GenerationsThatASnapshotHoldsAreReportedAndCount) {
  open(kCapacity / 16);
  fill(2000);
  EXPECT_EQ(db_->GetSpillStatistics().held_bytes, 0U);
  const rocksdb::Snapshot* const snapshot = db_->GetSnapshot();
  ASSERT_TRUE(db_->Rollback().ok());
  const SpillStatistics full = db_->GetSpillStatistics();
  EXPECT_EQ(full.live_entries, 0U);
  EXPECT_GT(full.held_bytes, kCapacity / 2);
  EXPECT_LT(full.store_used_bytes - full.held_bytes, 1000U);  // only a note
  std::uint64_t told = 0;
  EXPECT_TRUE(db_->GetIntProperty("spillway.held-bytes", &told));
  EXPECT_EQ(told, full.held_bytes);
  // It is as full as before, so hardly anything more is diverted.
  const std::uint64_t diverted = db_->GetSpillStatistics().diverted_bytes;
  fill(2000);
  EXPECT_LT(db_->GetSpillStatistics().diverted_bytes - diverted, kCapacity / 4);
  ASSERT_TRUE(db_->Rollback().ok());
  db_->ReleaseSnapshot(snapshot);
  // The rollback's thread releases the last generation shortly after Rollback() has returned.
  for (int i = 0; i < 10'000 && db_->GetSpillStatistics().held_bytes > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(db_->GetSpillStatistics().held_bytes, 0U);
  EXPECT_LT(db_->GetSpillStatistics().store_used_bytes, 1000U);  // only a note
}

TEST_F(SpillCapacity, TheMemoryThatASnapshotHoldsIsReportedAndCounts) {
  open(kCapacity / 16);
  const std::uint64_t empty = db_->GetSpillStatistics().index_bytes;
  fill(1000);
  const std::uint64_t memory = db_->GetSpillStatistics().index_bytes - empty;
  const rocksdb::Snapshot* const snapshot = db_->GetSnapshot();
  ASSERT_TRUE(db_->Rollback().ok());
  EXPECT_GT(db_->GetSpillStatistics().index_bytes - empty, memory / 2);
  db_->ReleaseSnapshot(snapshot);
  for (int i = 0; i < 10'000 && db_->GetSpillStatistics().held_bytes > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_LT(db_->GetSpillStatistics().index_bytes - empty, memory / 2) << "slots of the index may stay";
}

// Generations that a snapshot keeps count towards the bound of the memory.
TEST_F(SpillCapacity, GenerationsThatSnapshotsHoldDoNotOutgrowTheIndex) {
  SPILLWAY_LONG_TEST();
  spill_.index_bytes = 1 << 20;
  open(kCapacity / 16);
  const rocksdb::Snapshot* const snapshot = db_->GetSnapshot();
  std::uint64_t most = 0;
  for (int i = 0; i < 20; ++i) {
    fill(1000);
    most = std::max(most, db_->GetSpillStatistics().index_bytes);
    ASSERT_TRUE(db_->Rollback().ok());
    most = std::max(most, db_->GetSpillStatistics().index_bytes);
  }
  EXPECT_LT(most, (1 << 20) * 5 / 4);
  db_->ReleaseSnapshot(snapshot);
}

}  // namespace
}  // namespace spillway::clients
