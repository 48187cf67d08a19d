// Runs that are large beside what RocksDB has: they come back below L0, and every key reads as it was last written.
#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/listener.h>
#include <rocksdb/statistics.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "at_each_step.h"
#include "faults/file_system.h"
#include "spill/compat/db_out.h"
#include "spill/rollback/compaction_thread.h"
#include "spill_rocksdb_of.h"
#include "spillway/db.h"
#include "temporary_directory.h"

namespace spillway::clients {
namespace {

using rocksdb::Status;

using Model = std::map<std::string, std::string>;

class Ingested final : public rocksdb::EventListener {
 public:
  void OnExternalFileIngested(rocksdb::DB*, const rocksdb::ExternalFileIngestionInfo& info) override {
    entries += info.table_properties.num_entries;
  }
  std::atomic<std::uint64_t> entries{0};
};

class SpillPlaced : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.create_if_missing = true;
    options_.level_compaction_dynamic_level_bytes = false;
    options_.compression = rocksdb::kNoCompression;
    options_.write_buffer_size = 1 << 20;
    options_.target_file_size_base = 1 << 20;
    options_.max_bytes_for_level_base = 4 << 20;
    options_.statistics = rocksdb::CreateDBStatistics();
    spill_.generation_bytes = 24 << 20;
    spill_.capacity_bytes = 256 << 20;
    spill_.put_back_bytes = 0;
    spill_.rollback = RollbackPolicy::off;
    open();
  }
  void open() {
    DB* db = nullptr;
    const Status status = DB::Open(options_, spill_, directory_.path("db"), &db);
    ASSERT_TRUE(status.ok()) << status.ToString();
    db_.reset(db);
  }
  // Whose writes cannot be diverted.
  rocksdb::ColumnFamilyHandle* add_fifo_family() {
    rocksdb::Options fifo = options_;
    fifo.compaction_style = rocksdb::kCompactionStyleFIFO;
    fifo.max_open_files = -1;
    rocksdb::ColumnFamilyHandle* family = nullptr;
    EXPECT_TRUE(db_->CreateColumnFamily(fifo, "fifo", &family).ok());
    return family;
  }
  void open_on_faults() {
    db_.reset();
    auto system = faults::FaultyFileSystem::open(directory_.path("faulty"));
    ASSERT_TRUE(system);
    system_ = *system;
    env_ = rocksdb::NewCompositeEnv(system_);
    options_.env = env_.get();
    DB* db = nullptr;
    ASSERT_TRUE(DB::Open(options_, spill_, directory_.path("faulty") + "/db", &db).ok());
    db_.reset(db);
  }
  // There is no space for these of the sorted files that are made from now on, counted from 1.
  void refuse_sorted_files(int first, int last) {
    created_ = 0;
    system_->set_fault_rule([this, first, last](const faults::FileOperation& operation) {
      const bool is_sorted = operation.name.find("/spill/") != std::string::npos && operation.name.ends_with(".sst");
      if (!is_sorted || operation.action != faults::Action::create) return faults::FileFault();
      const int number = ++created_;
      return number >= first && number <= last
                 ? faults::FileFault{.status = rocksdb::IOStatus::NoSpace("no (injected)")}
                 : faults::FileFault();
    });
  }
  static std::string key_of(std::uint64_t number) { return "key" + std::to_string(100'000 + number); }
  // Of keys in random order, one of 16 of them deletions.
  void write(Diversion where, int count) {
    db_->SetDiversion(where);
    for (int i = 0; i < count; ++i) {
      const std::string key = key_of(random_() % 20'000);
      if (where == Diversion::always) diverted_.insert(key);
      if (random_() % 16 == 0) {
        ASSERT_TRUE(db_->Delete({}, key).ok());
        model_.erase(key);
      } else {
        const std::string value = std::to_string(++written_) + std::string(10'000, 'v');
        ASSERT_TRUE(db_->Put({}, key, value).ok());
        model_[key] = value;
      }
    }
  }
  // 10 MB that RocksDB has compacted, then 110 MB in the store, or fewer.
  void write_a_burst(int writes = 12'000) {
    write(Diversion::never, 1000);
    ASSERT_TRUE(db_->Flush({}).ok());
    wait_for_compactions();
    write(Diversion::always, writes);
    ASSERT_TRUE(options_.statistics->Reset().ok());
  }
  void wait_for_compactions() {
    std::uint64_t pending = 1;
    std::uint64_t running = 1;
    for (int i = 0; i < 5000 && pending + running > 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      rocksdb_of(*db_).GetIntProperty(rocksdb::DB::Properties::kCompactionPending, &pending);
      rocksdb_of(*db_).GetIntProperty(rocksdb::DB::Properties::kNumRunningCompactions, &running);
    }
  }
  rocksdb::ColumnFamilyMetaData tree() {
    rocksdb::ColumnFamilyMetaData now;
    rocksdb_of(*db_).GetColumnFamilyMetaData(&now);
    return now;
  }
  bool is_in_rocksdb(const std::string& key) {
    std::string value;
    return rocksdb_of(*db_).Get({}, key, &value).ok();
  }
  std::size_t files_in_l0() { return tree().levels.front().files.size(); }
  double compacted_mib() const {
    return static_cast<double>(options_.statistics->getTickerCount(rocksdb::COMPACT_WRITE_BYTES)) / (1 << 20);
  }
  void expect_all() {
    Model found;
    const std::unique_ptr<rocksdb::Iterator> pairs(db_->NewIterator({}));
    for (pairs->SeekToFirst(); pairs->Valid(); pairs->Next())
      found[pairs->key().ToString()] = pairs->value().ToString();
    EXPECT_TRUE(pairs->status().ok());
    EXPECT_TRUE(found == model_) << found.size() << " keys instead of " << model_.size();
  }
  void expect_at(const rocksdb::Snapshot* snapshot, const Model& then) {
    rocksdb::ReadOptions options;
    options.snapshot = snapshot;
    for (const auto& [key, value] : then) {
      std::string found;
      ASSERT_TRUE(db_->Get(options, key, &found).ok()) << key;
      ASSERT_EQ(found, value);
    }
  }
  void expect_all_and_again() {
    expect_all();
    EXPECT_TRUE(db_->CompactRange({}, nullptr, nullptr).ok());
    expect_all();
    db_.reset();
    open();
    expect_all();
  }

  const TemporaryDirectory directory_;
  rocksdb::Options options_;
  SpillOptions spill_;
  std::shared_ptr<faults::FaultyFileSystem> system_;
  std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<DB> db_;
  std::atomic<int> created_{0};  // sorted files
  std::set<std::string> diverted_;
  std::mt19937_64 random_{1};
  int written_ = 0;
  Model model_;
};

TEST_F(SpillPlaced, ARunOnASmallTreeIsNotRewritten) {
  write_a_burst();
  std::atomic<int> parts{0};
  {
    const AtEach then("spill.rollback.ingested", [&] { ++parts; });
    ASSERT_TRUE(db_->Rollback().ok());
  }
  wait_for_compactions();
  EXPECT_GE(parts, 2);
  EXPECT_EQ(files_in_l0(), 0U);
  EXPECT_LT(compacted_mib(), 24) << "what lay in its way, and nothing of the 85 MB that came back";
  expect_all_and_again();
}

// RocksDB compacts what lies in the way while the first part is sorted, not after it.
TEST_F(SpillPlaced, RoomIsMadeWhileTheFirstPartIsSorted) {
  write_a_burst(4000);
  std::promise<void> emptied;
  auto is_emptied = emptied.get_future();
  std::atomic<int> compactions{0};
  std::atomic<int> sorted{0};
  {
    const AtSteps then([&](std::string_view step) {
      if (step == "spill.rollback.emptied" && ++compactions == 1) emptied.set_value();
      if (step != "spill.rollback.sorted" || ++sorted > 1) return;
      EXPECT_EQ(is_emptied.wait_for(std::chrono::seconds(30)), std::future_status::ready);
    });
    ASSERT_TRUE(db_->Rollback().ok());
  }
  EXPECT_GE(sorted, 1);
  EXPECT_EQ(files_in_l0(), 0U);
  expect_all_and_again();
}

TEST_F(SpillPlaced, UnderAnyOrderAndKindOfLevels) {
  for (const bool is_dynamic : {false, true}) {
    options_.level_compaction_dynamic_level_bytes = is_dynamic;
    options_.comparator = is_dynamic ? rocksdb::BytewiseComparator() : rocksdb::ReverseBytewiseComparator();
    db_.reset();
    ASSERT_TRUE(rocksdb::DestroyDB(directory_.path("db"), options_).ok());
    model_.clear();
    open();
    for (int run = 0; run < 2; ++run) {
      write(Diversion::never, 1000);
      write(Diversion::always, 3000);
      ASSERT_TRUE(db_->Rollback().ok());
    }
    expect_all_and_again();
  }
}

// CompactFiles is refused then, and what lies in the way stays there.
TEST_F(SpillPlaced, WhileManualCompactionsAreDisabledARunGoesIntoL0) {
  write_a_burst(4000);
  db_->DisableManualCompaction();
  ASSERT_TRUE(db_->Rollback().ok());
  expect_all();
  db_->EnableManualCompaction();
  expect_all_and_again();
}

TEST_F(SpillPlaced, ASnapshotOfBeforeSeesWhatItSaw) {
  write_a_burst(4000);
  const Model before = model_;
  const auto* snapshot = db_->GetSnapshot();
  write(Diversion::always, 500);
  ASSERT_TRUE(db_->Rollback().ok());
  expect_at(snapshot, before);
  db_->ReleaseSnapshot(snapshot);
  expect_all_and_again();
}

// Each run lies above what it overlaps, so later ones have less room, and the last are L0 files again.
TEST_F(SpillPlaced, RunAfterRun) {
  for (int run = 0; run < 4; ++run) {
    write(Diversion::never, 300);
    write(Diversion::always, 3000);
    ASSERT_TRUE(db_->Rollback().ok());
    expect_all();
  }
  expect_all_and_again();
}

// What gets into RocksDB meanwhile would have the rest of the run put above it, as many files of L0.
TEST_F(SpillPlaced, AWriteBetweenPartsCostsTheRestItsPlace) {
  spill_.capacity_bytes = 512 << 20;  // room for all of the rest, whether or not the burst is seen to be over
  db_.reset();
  open();
  write_a_burst();
  std::atomic<int> parts{0};
  {
    const AtEach then("spill.rollback.ingested", [&] {
      if (++parts != 1) return;
      ASSERT_TRUE(rocksdb_of(*db_).Put({}, "key0", "beside").ok());
      ASSERT_TRUE(rocksdb_of(*db_).Put({}, "key9", "beside").ok());
    });
    ASSERT_TRUE(db_->Rollback().ok());
  }
  model_["key0"] = model_["key9"] = "beside";
  EXPECT_GE(parts, 2);
  EXPECT_LE(files_in_l0(), 2U) << "the memtable and the rest";
  expect_all_and_again();
}

// RocksDB finds no key of the first part above the last level, puts it there, and the range of a file of L0 says that
// it may be below older versions: what is refused so comes back again, and none of it is passed over.
TEST_F(SpillPlaced, APartThatIsMisplacedComesBackAgain) {
  for (const int misplaced : {1, 2}) {
    SCOPED_TRACE(misplaced);
    db_.reset();
    ASSERT_TRUE(rocksdb::DestroyDB(directory_.path("db"), options_).ok());
    model_.clear();
    open();
    write_a_burst();
    std::vector<std::string> diverted;  // of the part that is misplaced, or of later ones
    for (int number = misplaced == 1 ? 0 : 16'000; number < 20'000; ++number) {
      const std::string key = key_of(static_cast<std::uint64_t>(number));
      if (number % 50 == 0 && model_.contains(key) && !is_in_rocksdb(key)) diverted.push_back(key);
    }
    ASSERT_GT(diverted.size(), 20U);
    std::atomic<int> prepared{0};
    std::atomic<int> found{0};
    {
      const AtSteps then([&](std::string_view step) {
        if (step == "spill.rollback.prepared" && ++prepared == misplaced) {
          ASSERT_TRUE(rocksdb_of(*db_).Put({}, "key0", "beside").ok());
          ASSERT_TRUE(rocksdb_of(*db_).Put({}, "key9", "beside").ok());
          ASSERT_TRUE(rocksdb_of(*db_).Flush({}).ok());
        }
        if (step != "spill.rollback.misplaced" || ++found > 1) return;
        // Stand for the older versions.
        for (const std::string& key : diverted) ASSERT_TRUE(rocksdb_of(*db_).Put({}, key, "older").ok());
      });
      ASSERT_TRUE(db_->Rollback().ok());
    }
    model_["key0"] = model_["key9"] = "beside";
    EXPECT_GE(found, 1) << prepared;
    expect_all_and_again();
  }
}

// Flushes for each look would fill L0.
TEST_F(SpillPlaced, WritesToRocksdbWhileRoomIsMadeDoNotFillL0) {
  write_a_burst(4000);
  std::atomic<bool> ends{false};
  std::future<int> writer;
  {
    const AtEach then("spill.rollback.sorted", [&] {
      if (writer.valid()) return;
      writer = std::async(std::launch::async, [&] {
        int count = 0;
        for (; !ends && count < 20'000; ++count) {
          EXPECT_TRUE(rocksdb_of(*db_).Put({}, "key0" + std::to_string(count % 10), "beside").ok());
          EXPECT_TRUE(rocksdb_of(*db_).Put({}, "key9" + std::to_string(count % 10), "beside").ok());
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return count;
      });
    });
    ASSERT_TRUE(db_->Rollback().ok());
  }
  ends = true;
  const int count = writer.get();
  EXPECT_GT(count, 0);
  for (int i = 0; i < std::min(count, 10); ++i) {
    model_["key0" + std::to_string(i)] = model_["key9" + std::to_string(i)] = "beside";
  }
  EXPECT_LE(files_in_l0(), 8U);
  expect_all_and_again();
}

// The batch's first key lies in the store, and its second one cannot be diverted: it waits until all is back.
TEST_F(SpillPlaced, AWriterThatWaitsWaitsForNoPlace) {
  rocksdb::ColumnFamilyHandle* const other = add_fifo_family();
  ASSERT_NE(other, nullptr);
  write_a_burst(4000);
  const std::string key = model_.begin()->first;
  std::atomic<int> emptied{0};
  {
    const AtEach then("spill.rollback.emptied", [&] { ++emptied; });
    rocksdb::WriteBatch batch;
    ASSERT_TRUE(batch.Put(key, "newer").ok());
    ASSERT_TRUE(batch.Put(other, "key", "value").ok());
    ASSERT_TRUE(db_->Write({}, &batch).ok());
  }
  model_[key] = "newer";
  EXPECT_EQ(emptied, 0);
  ASSERT_TRUE(db_->DropColumnFamily(other).ok());
  ASSERT_TRUE(db_->DestroyColumnFamilyHandle(other).ok());
  expect_all_and_again();
}

// As above, but the writer comes when room is being made already: the run loses its place, and none of it is lost.
TEST_F(SpillPlaced, AWriterThatComesWhileRoomIsMade) {
  rocksdb::ColumnFamilyHandle* const other = add_fifo_family();
  ASSERT_NE(other, nullptr);
  write_a_burst(4000);
  const std::string key = model_.begin()->first;
  std::future<Status> written;
  {
    const AtEach then("spill.rollback.emptied", [&] {
      if (written.valid()) return;
      written = std::async(std::launch::async, [&] {
        rocksdb::WriteBatch batch;
        EXPECT_TRUE(batch.Put(key, "newer").ok());
        EXPECT_TRUE(batch.Put(other, "key", "value").ok());
        return db_->Write({}, &batch);
      });
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    });
    ASSERT_TRUE(db_->Rollback().ok());
  }
  ASSERT_TRUE(written.valid());
  EXPECT_TRUE(written.get().ok());
  model_[key] = "newer";
  ASSERT_TRUE(db_->DropColumnFamily(other).ok());
  ASSERT_TRUE(db_->DestroyColumnFamilyHandle(other).ok());
  expect_all_and_again();
}

TEST_F(SpillPlaced, ACloseWhileRoomIsMade) {
  write_a_burst(4000);
  std::future<Status> closed;
  {
    const AtEach then("spill.rollback.emptied", [&] {
      if (!closed.valid()) closed = std::async(std::launch::async, [&] { return db_->Close(); });
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    });
    (void)db_->Rollback();
  }
  ASSERT_TRUE(closed.valid());
  (void)closed.get();
  db_.reset();
  open();
  expect_all_and_again();
}

TEST_F(SpillPlaced, APauseWhileRoomIsMade) {
  write_a_burst(4000);
  std::future<Status> paused;
  std::atomic<bool> is_pausing{false};
  const AtEach then("spill.rollback.emptied", [&] {
    if (paused.valid()) return;
    paused = std::async(std::launch::async, [&] { return db_->PauseBackgroundWork(); });
    is_pausing = true;
  });
  auto rolled_back = std::async(std::launch::async, [&] { return db_->Rollback(); });
  while (!is_pausing) std::this_thread::yield();
  EXPECT_EQ(paused.wait_for(std::chrono::seconds(30)), std::future_status::ready);
  expect_all();
  EXPECT_TRUE(db_->ContinueBackgroundWork().ok());
  EXPECT_TRUE(rolled_back.get().ok());
  expect_all_and_again();
}

TEST_F(SpillPlaced, OfAFamilyThatIsDroppedMeanwhileNothingComesBack) {
  rocksdb::ColumnFamilyHandle* other = nullptr;
  ASSERT_TRUE(db_->CreateColumnFamily(options_, "other", &other).ok());
  db_->SetDiversion(Diversion::never);
  const std::string value(10'000, 'v');
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(db_->Put({}, other, key_of(random_() % 20'000), value).ok());
  db_->SetDiversion(Diversion::always);
  for (int i = 0; i < 4000; ++i) ASSERT_TRUE(db_->Put({}, other, key_of(random_() % 20'000), value).ok());
  std::future<Status> dropped;
  {
    const AtEach then("spill.rollback.emptied", [&] {
      if (!dropped.valid()) dropped = std::async(std::launch::async, [&] { return db_->DropColumnFamily(other); });
    });
    ASSERT_TRUE(db_->Rollback().ok());
  }
  ASSERT_TRUE(dropped.valid());
  EXPECT_TRUE(dropped.get().ok());
  ASSERT_TRUE(db_->DestroyColumnFamilyHandle(other).ok());
  expect_all_and_again();
}

// What was brought back before comes back once more behind a close, and no version of a key is lost.
TEST_F(SpillPlaced, ACloseBetweenPartsForWhichThereIsNoSpace) {
  for (const bool overwrites : {false, true}) {
    SCOPED_TRACE(overwrites);
    open_on_faults();
    write_a_burst();
    refuse_sorted_files(5, 1000);
    EXPECT_TRUE(db_->Rollback().IsNoSpace());
    expect_all();
    if (overwrites) {
      write(Diversion::always, 500);
      write(Diversion::never, 500);
      ASSERT_TRUE(db_->DeleteRange({}, db_->DefaultColumnFamily(), key_of(3000), key_of(3500)).ok());
      model_.erase(model_.lower_bound(key_of(3000)), model_.lower_bound(key_of(3500)));
      expect_all();
    }
    system_->set_fault_rule({});
    ASSERT_TRUE(db_->Close().ok());
    open_on_faults();
    expect_all();
    ASSERT_TRUE(db_->Rollback().ok());
    ASSERT_TRUE(db_->CompactRange({}, nullptr, nullptr).ok());
    expect_all();
  }
}

// The run of before the refusal goes on, and what was written since lies above it.
TEST_F(SpillPlaced, OverwritesBetweenPartsForWhichThereIsNoSpace) {
  open_on_faults();
  write_a_burst();
  refuse_sorted_files(5, 5);
  EXPECT_TRUE(db_->Rollback().IsNoSpace());
  const Model before = model_;
  const rocksdb::Snapshot* const snapshot = db_->GetSnapshot();
  write(Diversion::always, 500);
  ASSERT_TRUE(db_->DeleteRange({}, db_->DefaultColumnFamily(), key_of(3000), key_of(3500)).ok());
  model_.erase(model_.lower_bound(key_of(3000)), model_.lower_bound(key_of(3500)));
  ASSERT_TRUE(db_->Rollback().ok());
  expect_all();
  expect_at(snapshot, before);
  db_->ReleaseSnapshot(snapshot);
  ASSERT_TRUE(db_->CompactRange({}, nullptr, nullptr).ok());
  expect_all();
}

// Some parts are in RocksDB then, and all generations are still in the store.
TEST_F(SpillPlaced, ACheckpointBetweenPartsForWhichThereIsNoSpace) {
  open_on_faults();
  write_a_burst();
  refuse_sorted_files(5, 1000);
  EXPECT_TRUE(db_->Rollback().IsNoSpace());
  system_->set_fault_rule({});
  ASSERT_TRUE(db_->CreateCheckpoint(directory_.path("copy")).ok());
  const Model then = model_;
  write(Diversion::always, 500);
  expect_all();
  rocksdb::DB* opened = nullptr;
  ASSERT_TRUE(rocksdb::DB::Open({}, directory_.path("copy"), spill::DbOut(&opened)).ok());
  const std::unique_ptr<rocksdb::DB> copy(opened);
  Model copied;
  const std::unique_ptr<rocksdb::Iterator> pairs(copy->NewIterator({}));
  for (pairs->SeekToFirst(); pairs->Valid(); pairs->Next()) copied[pairs->key().ToString()] = pairs->value().ToString();
  EXPECT_TRUE(copied == then) << copied.size() << " keys instead of " << then.size();
  ASSERT_TRUE(db_->Rollback().ok());
  expect_all();
  ASSERT_TRUE(db_->Close().ok());
  open_on_faults();
  expect_all();
}

// Room is made by a flush, whose note the failed store does not take. Compactions are held from then on until all is
// back, that which makes room among them.
TEST_F(SpillPlaced, ARunDoesNotWaitForRoomThatIsMadeOnlyBehindIt) {
  open_on_faults();
  write_a_burst(4000);
  db_->SetDiversion(Diversion::never);
  ASSERT_TRUE(db_->Put({}, "key0", "main").ok());  // for the flush
  ASSERT_TRUE(db_->Put({}, "key9", "main").ok());
  model_["key0"] = model_["key9"] = "main";
  system_->set_fault_rule([](const faults::FileOperation& operation) {
    const bool is_log = operation.name.ends_with(".spill");
    return operation.action == faults::Action::write && is_log
               ? faults::FileFault{.status = rocksdb::IOStatus::IOError("no (injected)")}
               : faults::FileFault();
  });
  const auto began = std::chrono::steady_clock::now();
  ASSERT_TRUE(db_->Rollback().ok());
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(30)) << "a compaction is held for a minute";
  EXPECT_EQ(db_->GetSpillStatistics().live_entries, 0U);
  expect_all();
  system_->set_fault_rule({});
}

// RocksDB would compact all of the tree with one small file that spans it, and a close waits for it.
TEST_F(SpillPlaced, ASmallFileThatSpansAllIsNoReasonToCompactAll) {
  write(Diversion::never, 6000);
  ASSERT_TRUE(db_->CompactRange({}, nullptr, nullptr).ok());
  ASSERT_TRUE(rocksdb_of(*db_).Put({}, "key0", "beside").ok());
  ASSERT_TRUE(rocksdb_of(*db_).Put({}, "key9", "beside").ok());
  ASSERT_TRUE(rocksdb_of(*db_).Flush({}).ok());
  model_["key0"] = model_["key9"] = "beside";
  db_->SetDiversion(Diversion::always);
  for (int i = 0; i < 2500; ++i) {
    const std::string key = key_of(8'000 + random_() % 3000);
    ASSERT_TRUE(db_->Put({}, key, model_[key] = std::to_string(i) + std::string(10'000, 'n')).ok());
  }
  std::atomic<int> emptied{0};
  {
    const AtEach then("spill.rollback.emptied", [&] { ++emptied; });
    ASSERT_TRUE(db_->Rollback().ok());
  }
  EXPECT_EQ(emptied, 0);
  expect_all_and_again();
}

// On a full drive each part that came back twice would fill it further.
TEST_F(SpillPlaced, WhatIsInDoesNotComeBackAgainWhereTheNextPartFindsNoSpace) {
  const auto ingested = std::make_shared<Ingested>();
  options_.listeners.push_back(ingested);
  open_on_faults();
  write_a_burst();
  refuse_sorted_files(5, 6);
  Status status;
  for (int i = 0; i < 3; ++i) status = db_->Rollback();
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_GE(created_, 7) << "two were refused";
  EXPECT_EQ(ingested->entries, diverted_.size()) << "each key once";
  system_->set_fault_rule({});
  expect_all();
}

TEST(CompactionThread, RunsWhatIsNotCancelledAndWaitsForWhatRuns) {
  rocksdb::Env& env = *rocksdb::Env::Default();
  env.IncBackgroundThreadsIfNeeded(1, rocksdb::Env::LOW);
  std::atomic<bool> has_run{false};
  spill::CompactionThread thread;
  thread.cancel();
  thread.finish();
  std::promise<void> begun;
  std::promise<void> released;
  thread.start(env, [&] {
    begun.set_value();
    released.get_future().wait();
    has_run = true;
  });
  begun.get_future().wait();
  EXPECT_TRUE(thread.is_busy());
  EXPECT_TRUE(thread.is_running());
  thread.cancel();  // too late
  EXPECT_TRUE(thread.is_busy());
  released.set_value();
  thread.finish();
  EXPECT_TRUE(has_run);
  EXPECT_FALSE(thread.is_busy());
}

TEST(CompactionThread, WhatWaitsForAThreadCanBeCancelled) {
  rocksdb::Env& env = *rocksdb::Env::Default();
  env.SetBackgroundThreads(1, rocksdb::Env::LOW);
  std::promise<void> released;
  spill::CompactionThread first;
  first.start(env, [&] { released.get_future().wait(); });
  while (!first.is_running()) std::this_thread::yield();
  std::atomic<bool> has_run{false};
  {
    spill::CompactionThread second;
    second.start(env, [&] { has_run = true; });
    EXPECT_TRUE(second.is_busy());
    EXPECT_FALSE(second.is_running());
    second.cancel();
    EXPECT_FALSE(second.is_busy());
    second.start(env, [&] { has_run = true; });
  }  // as its end does
  released.set_value();
  first.finish();
  EXPECT_FALSE(has_run);
}

}  // namespace
}  // namespace spillway::clients
