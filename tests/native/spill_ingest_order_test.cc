// Files that come back while RocksDB flushes a memtable whose keys lie elsewhere. RocksDB before 7.10 loses the order
// of the two if a compaction reads the file before the flush has ended (native/spill/compat/file_ingestion.h).
#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <rocksdb/listener.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <tuple>

#include "spillway/db.h"
#include "temporary_directory.h"

namespace spillway::clients {
namespace {

// Holds the third flush back until a compaction has ended, or for a second.
class SlowFlush final : public rocksdb::EventListener {
 public:
  void OnFlushBegin(rocksdb::DB*, const rocksdb::FlushJobInfo&) override {
    if (++flushes_ != 3) return;
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    const int before = compactions_;
    while (compactions_ == before && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  }
  void OnCompactionCompleted(rocksdb::DB*, const rocksdb::CompactionJobInfo&) override { ++compactions_; }
  int flushes() const { return flushes_; }

 private:
  std::atomic<int> flushes_{0};
  std::atomic<int> compactions_{0};
};

// Parameters: how RocksDB compacts, and atomic_flush.
class SpillIngestOrder : public ::testing::TestWithParam<std::tuple<rocksdb::CompactionStyle, bool>> {
 protected:
  SpillIngestOrder() {
    options_.create_if_missing = true;
    std::tie(options_.compaction_style, options_.atomic_flush) = GetParam();
    options_.compression = rocksdb::kNoCompression;
    options_.write_buffer_size = 256 << 10;
    options_.level0_file_num_compaction_trigger = 3;
    options_.listeners = {flush_};
    spill_.capacity_bytes = 8 << 20;
    spill_.generation_bytes = 1 << 20;
    spill_.put_back_bytes = 0;
    spill_.rollback = RollbackPolicy::off;
  }
  void write(Diversion diversion, const std::string& prefix, const std::string& value, int count, int first = 0) {
    db_->SetDiversion(diversion);
    for (int i = first; i < first + count; ++i) {
      const std::string key = prefix + std::to_string(1000 + i);
      const rocksdb::Status status = db_->Put({}, key, value);
      ASSERT_TRUE(status.ok()) << key << ": " << status.ToString();
      model_[key] = value;
    }
  }

  const TemporaryDirectory directory_;
  const std::shared_ptr<SlowFlush> flush_ = std::make_shared<SlowFlush>();
  rocksdb::Options options_;
  SpillOptions spill_;
  std::unique_ptr<DB> db_;
  std::map<std::string, std::string> model_;
};

TEST_P(SpillIngestOrder, AFlushOfOtherKeysComesFirst) {
  DB* db = nullptr;
  ASSERT_TRUE(DB::Open(options_, spill_, directory_.path("db"), &db).ok());
  db_.reset(db);
  write(Diversion::never, "a", std::string(1000, '0'), 200);  // large: what is compacted above it stays in L0
  ASSERT_TRUE(db_->Flush({}).ok());
  write(Diversion::never, "a", std::string(500, '1'), 100);
  ASSERT_TRUE(db_->Flush({}).ok());
  write(Diversion::never, "m", std::string(2000, '2'), 150);  // more than a memtable: its flush begins
  while (flush_->flushes() < 3) std::this_thread::yield();
  write(Diversion::always, "a", std::string(600, '3'), 100, /*first=*/50);
  const rocksdb::Status status = db_->Rollback();
  EXPECT_TRUE(status.ok()) << status.ToString();
  write(Diversion::never, "m", std::string(2000, '4'), 300);
  EXPECT_TRUE(db_->CompactRange({}, nullptr, nullptr).ok());
  std::map<std::string, std::string> found;
  const std::unique_ptr<rocksdb::Iterator> pairs(db_->NewIterator({}));
  for (pairs->SeekToFirst(); pairs->Valid(); pairs->Next()) found[pairs->key().ToString()] = pairs->value().ToString();
  EXPECT_TRUE(pairs->status().ok());
  EXPECT_EQ(found, model_);
}

INSTANTIATE_TEST_SUITE_P(Styles, SpillIngestOrder,
                         ::testing::Combine(::testing::Values(rocksdb::kCompactionStyleLevel,
                                                              rocksdb::kCompactionStyleUniversal),
                                            ::testing::Bool()));

}  // namespace
}  // namespace spillway::clients
