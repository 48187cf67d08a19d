// Writers that would fill the store are slowed to what comes back, and do not meet a full one.
#include <gtest/gtest.h>
#include <rocksdb/listener.h>
#include <rocksdb/write_batch.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "spillway/db.h"
#include "temporary_directory.h"

namespace spillway::clients {
namespace {

using rocksdb::Status;

constexpr std::uint64_t kCapacity = 32 << 20;

class SpillPacing : public ::testing::Test {
 protected:
  SpillPacing() = default;
  explicit SpillPacing(const std::string& parent) : directory_(parent) {}
  void open(RollbackPolicy rollback) {
    options_.create_if_missing = true;
    options_.compression = rocksdb::kNoCompression;
    options_.level0_slowdown_writes_trigger = 1000;
    options_.level0_stop_writes_trigger = 1000;
    spill_.capacity_bytes = kCapacity;
    spill_.generation_bytes = 1 << 20;
    spill_.rollback = rollback;
    spill_.put_back_bytes = 0;
    DB* db = nullptr;
    const Status status = DB::Open(options_, spill_, directory_.path("db"), &db);
    ASSERT_TRUE(status.ok()) << status.ToString();
    db_.reset(db);
    db_->SetDiversion(Diversion::always);
  }
  // Threads put keys of their own, in all so many bytes of values.
  void put(std::uint64_t bytes, int threads) {
    constexpr std::size_t kValue = 4096;
    std::vector<std::thread> writers;
    for (int t = 0; t < threads; ++t) {
      writers.emplace_back([&, t] {
        const std::string value(kValue, static_cast<char>('a' + t));
        for (std::uint64_t i = 0; i < bytes / kValue / static_cast<std::uint64_t>(threads); ++i) {
          const Status status = db_->Put({}, std::to_string(t) + "key" + std::to_string(i), value);
          ASSERT_TRUE(status.ok()) << status.ToString();
        }
      });
    }
    for (std::thread& writer : writers) writer.join();
  }

  const TemporaryDirectory directory_;
  rocksdb::Options options_;
  SpillOptions spill_;
  std::unique_ptr<DB> db_;
};

// A drive that is never blocked: what writers meet is the pacing's.
class SpillPacingInMemory : public SpillPacing {
 protected:
  SpillPacingInMemory() : SpillPacing(memory_path()) {}
};

// Each is one more file in L0.
struct Ingestions : rocksdb::EventListener {
  void OnExternalFileIngested(rocksdb::DB*, const rocksdb::ExternalFileIngestionInfo&) override { ++files; }
  std::atomic<std::uint64_t> files{0};
};

TEST_F(SpillPacing, RunsOfABurstThatGoesOnAreFewFiles) {
  const auto ingestions = std::make_shared<Ingestions>();
  options_.listeners = {ingestions};
  open(RollbackPolicy::adaptive);
  put(4 * kCapacity, 1);
  EXPECT_GT(db_->GetSpillStatistics().waits_pacing, 0U);
  const std::uint64_t generations = db_->GetSpillStatistics().rolled_back_bytes / spill_.generation_bytes;
  EXPECT_GT(generations, 3 * kCapacity / spill_.generation_bytes / 2);
  EXPECT_LT(ingestions->files, generations / 3);
}

TEST_F(SpillPacing, ASustainedLoadDoesNotMeetAFullStore) {
  open(RollbackPolicy::adaptive);
  for (const int threads : {1, 4}) put(3 * kCapacity, threads);
  const SpillStatistics seen = db_->GetSpillStatistics();
  EXPECT_GT(seen.waits_pacing, 0U);
  EXPECT_GE(seen.wait_pacing_us, 2000 * seen.waits_pacing / 4) << "a pause is worth a sleep; four may share one";
  // Four writers with the longest pauses fill what is free in a second and a half. If the machine's disk is
  // blocked for longer, a few may meet a full store.
  EXPECT_LT(seen.waits_rollback, seen.waits_pacing / 20) << "writers met a full store";
  EXPECT_EQ(seen.waits_rocksdb, 0U);
  EXPECT_EQ(seen.main_writes, 0U) << "all were to be diverted";
  EXPECT_LT(seen.store_used_bytes, kCapacity);
  std::string value;
  ASSERT_TRUE(db_->Get({}, "0key0", &value).ok());
  EXPECT_EQ(value, std::string(4096, 'a'));
}

// With small values, the index is full before the store is.
TEST_F(SpillPacing, AnIndexThatFillsFirstIsNotMetFullEither) {
  spill_.index_bytes = 8 << 20;  // some 80,000 keys
  open(RollbackPolicy::adaptive);
  for (int i = 0; i < 400'000; ++i) {
    const Status status = db_->Put({}, "key" + std::to_string(i), "value");
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  const SpillStatistics seen = db_->GetSpillStatistics();
  EXPECT_GT(seen.waits_pacing, 0U);
  EXPECT_LT(seen.waits_rollback, seen.waits_pacing / 20) << "writers met a full index";
  EXPECT_EQ(seen.main_writes, 0U);
  EXPECT_LT(seen.index_bytes, spill_.index_bytes);
}

// Each batch alone takes more of the index than there is. None waits for ever, and none is lost.
TEST_F(SpillPacing, BatchesLargerThanTheIndexAreTaken) {
  spill_.index_bytes = 1 << 20;
  open(RollbackPolicy::adaptive);
  for (int i = 0; i < 8; ++i) {
    rocksdb::WriteBatch batch;
    for (int k = 0; k < 30'000; ++k) ASSERT_TRUE(batch.Put(std::to_string(k), std::to_string(i)).ok());
    const Status status = db_->Write({}, &batch);
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  ASSERT_TRUE(db_->Rollback().ok());
  std::string value;
  for (int k = 0; k < 30'000; k += 997) {
    ASSERT_TRUE(db_->Get({}, std::to_string(k), &value).ok());
    EXPECT_EQ(value, "7");
  }
}

// Each batch is a quarter of a generation.
TEST_F(SpillPacingInMemory, LargeBatchesAreSlowedToWhatComesBack) {
  open(RollbackPolicy::adaptive);
  const std::string value(4096, 'v');
  for (int i = 0; i < 512; ++i) {
    rocksdb::WriteBatch batch;
    for (int k = 0; k < 64; ++k) ASSERT_TRUE(batch.Put(std::to_string(i * 64 + k), value).ok());
    const Status status = db_->Write({}, &batch);
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  const SpillStatistics seen = db_->GetSpillStatistics();
  EXPECT_GT(seen.waits_pacing, 0U);
  EXPECT_LT(seen.waits_rollback, 8U) << "writers met a full store";
  EXPECT_LT(seen.main_writes, 8U)
      << "of 512: as a burst is first slowed nothing has left, and one may find the store full";
}

// Then the store fills, and writes go to RocksDB.
TEST_F(SpillPacing, NothingIsSlowedWhereNothingComesBack) {
  open(RollbackPolicy::off);
  put(2 * kCapacity, 1);
  EXPECT_EQ(db_->GetSpillStatistics().waits_pacing, 0U);
  EXPECT_GT(db_->GetSpillStatistics().main_writes, 0U);
}

TEST_F(SpillPacing, NothingIsSlowedWhileTheUserHasPausedRollbacks) {
  open(RollbackPolicy::eager);
  ASSERT_TRUE(db_->PauseBackgroundWork().ok());
  put(kCapacity / 10 * 9, 1);
  EXPECT_EQ(db_->GetSpillStatistics().waits_pacing, 0U);
  ASSERT_TRUE(db_->ContinueBackgroundWork().ok());
}

}  // namespace
}  // namespace spillway::clients
