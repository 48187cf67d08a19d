// Keys that are overwritten in the spill store: an older version takes no memory where no snapshot and no iterator can
// see it, and is there where one can.
#include <gtest/gtest.h>
#include <rocksdb/write_batch.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "spillway/db.h"
#include "temporary_directory.h"

namespace spillway::clients {
namespace {

using rocksdb::Status;

// The parameter: SpillOptions::put_back_bytes, so that what is there comes back through RocksDB's log or as files.
class SpillOverwritten : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  using Model = std::map<std::string, std::string>;
  struct Seen {
    const rocksdb::Snapshot* snapshot = nullptr;
    std::unique_ptr<rocksdb::Iterator> pairs;
    Model model;
  };

  SpillOverwritten() {
    options_.create_if_missing = true;
    spill_.rollback = RollbackPolicy::off;
    spill_.put_back_bytes = GetParam();
  }
  ~SpillOverwritten() override {
    while (!seen_.empty()) release();
  }
  void open() {
    db_.reset();
    DB* db = nullptr;
    const Status status = DB::Open(options_, spill_, directory_.path("db"), &db);
    ASSERT_TRUE(status.ok()) << status.ToString();
    db_.reset(db);
    db_->SetDiversion(Diversion::always);
  }
  static std::string key_of(std::uint64_t number) {
    const std::string digits = std::to_string(number);
    return std::string(16 - digits.size(), 'k') + digits;
  }
  std::uint64_t index_bytes() { return db_->GetSpillStatistics().index_bytes; }

  static Model all(rocksdb::Iterator& pairs) {
    Model found;
    for (pairs.SeekToFirst(); pairs.Valid(); pairs.Next()) found[pairs.key().ToString()] = pairs.value().ToString();
    EXPECT_TRUE(pairs.status().ok()) << pairs.status().ToString();
    Model backwards;
    for (pairs.SeekToLast(); pairs.Valid(); pairs.Prev()) backwards[pairs.key().ToString()] = pairs.value().ToString();
    EXPECT_EQ(backwards, found);
    return found;
  }
  void expect(const Model& model, const rocksdb::Snapshot* snapshot) {
    rocksdb::ReadOptions options;
    options.snapshot = snapshot;
    const std::unique_ptr<rocksdb::Iterator> pairs(db_->NewIterator(options));
    EXPECT_EQ(all(*pairs), model);
    for (std::uint64_t key = 0; key < kKeys; ++key) {
      std::string value;
      const Status status = db_->Get(options, key_of(key), &value);
      const auto known = model.find(key_of(key));
      EXPECT_EQ(status.ok() ? value : status.ToString(),
                known == model.end() ? Status::NotFound().ToString() : known->second);
    }
  }
  void look() {
    Seen& one = seen_.emplace_back();
    if (random_() % 2 == 0) {
      one.snapshot = db_->GetSnapshot();
    } else {
      one.pairs.reset(db_->NewIterator({}));
    }
    one.model = model_;
  }
  void expect_seen() {
    for (Seen& one : seen_) {
      if (one.snapshot != nullptr) {
        expect(one.model, one.snapshot);
      } else {
        EXPECT_EQ(all(*one.pairs), one.model);
      }
    }
    expect(model_, nullptr);
  }
  void release() {
    if (seen_.front().snapshot != nullptr) db_->ReleaseSnapshot(seen_.front().snapshot);
    seen_.pop_front();
  }
  void write_some() {
    rocksdb::WriteBatch batch;
    for (std::uint64_t i = 0, count = 1 + random_() % 6; i < count; ++i) {  // of one key several times as well
      const std::uint64_t number = random_() % kKeys;
      const std::string key = key_of(number);
      switch (random_() % 12) {
        case 0:
        case 1:
          ASSERT_TRUE(batch.Delete(key).ok());
          model_.erase(key);
          break;
        case 2: {
          const std::string end = key_of(number + random_() % 4);
          if (end < key) break;
          ASSERT_TRUE(batch.DeleteRange(db_->DefaultColumnFamily(), key, end).ok());
          model_.erase(model_.lower_bound(key), model_.lower_bound(end));
          break;
        }
        default:
          model_[key] = std::to_string(++written_) + std::string(random_() % 40, 'v');
          ASSERT_TRUE(batch.Put(key, model_[key]).ok());
      }
    }
    ASSERT_TRUE(db_->Write({}, &batch).ok());
  }

  static constexpr std::uint64_t kKeys = 40;
  const TemporaryDirectory directory_;
  rocksdb::Options options_;
  SpillOptions spill_;
  std::unique_ptr<DB> db_;
  std::mt19937_64 random_{1};
  Model model_;
  std::deque<Seen> seen_;
  int written_ = 0;
};

TEST_P(SpillOverwritten, AnOlderVersionTakesNoMemory) {
  constexpr std::uint64_t kMany = 20'000;
  open();
  const std::uint64_t empty = index_bytes();
  for (std::uint64_t i = 0; i < 4 * kMany; ++i) {
    const std::uint64_t number = i < kMany ? i : random_() % kMany;
    ASSERT_TRUE(db_->Put({}, key_of(number), std::to_string(i)).ok());
  }
  EXPECT_EQ(db_->GetSpillStatistics().live_entries, 4 * kMany);
  EXPECT_LE(index_bytes() - empty, 100 * kMany);
  open();
  EXPECT_LE(index_bytes() - empty, 100 * kMany) << "nor does it after a recovery";
  const rocksdb::Snapshot* const snapshot = db_->GetSnapshot();
  for (std::uint64_t number = 0; number < kMany; ++number) ASSERT_TRUE(db_->Put({}, key_of(number), "1").ok());
  const std::uint64_t with_both = index_bytes() - empty;
  EXPECT_GE(with_both, 120 * kMany) << "the snapshot sees them";
  db_->ReleaseSnapshot(snapshot);
  for (std::uint64_t number = 0; number < kMany; ++number) ASSERT_TRUE(db_->Put({}, key_of(number), "2").ok());
  EXPECT_LE(index_bytes() - empty, with_both + kMany);
}

TEST_P(SpillOverwritten, EverySnapshotAndIteratorSeesWhatItSaw) {
  spill_.generation_bytes = 4 << 10;
  for (int round = 0; round < 4; ++round) {
    open();
    expect(model_, nullptr);
    for (int step = 0; step < 250; ++step) {
      write_some();
      const auto choice = random_() % 40;
      if (choice < 3) look();
      if (choice > 35 && !seen_.empty()) release();
      if (choice == 3 && round % 2 == 1) {
        ASSERT_TRUE(db_->Rollback().ok());
      }
      if (step % 25 == 0) expect_seen();
    }
    expect_seen();
    ASSERT_TRUE(round % 2 == 0 || db_->Rollback().ok());
    expect_seen();
    while (!seen_.empty()) release();
  }
  open();
  expect(model_, nullptr);
  ASSERT_TRUE(db_->Rollback().ok());
  expect(model_, nullptr);
  ASSERT_TRUE(db_->CompactRange({}, nullptr, nullptr).ok());
  expect(model_, nullptr);
}

INSTANTIATE_TEST_SUITE_P(Ways, SpillOverwritten, ::testing::Values(0, std::uint64_t{64} << 20));

}  // namespace
}  // namespace spillway::clients
