// Dropped column families and deleted handles, compared with plain RocksDB.
#include <gtest/gtest.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/write_batch.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <future>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "at_each_step.h"
#include "base/steps.h"
#include "spill/compat/db_out.h"
#include "spill/compat/rocksdb_version.h"
#include "spill_side_by_side.h"

namespace spillway::clients {
namespace {

using rocksdb::ColumnFamilyHandle;
using rocksdb::ReadOptions;
using rocksdb::WriteOptions;

// Handles: 0 is the default family's, 1 of a family that was opened, 2 of one that was created at run time.
constexpr std::size_t kOpened = 1;
constexpr std::size_t kMade = 2;

// Refuses to create sorted files on request.
class NoSortedFiles final : public rocksdb::FileSystemWrapper {
 public:
  NoSortedFiles() : FileSystemWrapper(FileSystem::Default()) {}
  const char* Name() const override { return "NoSortedFiles"; }
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* context) override {
    if (refuses && path.find("/spill/spill/") != std::string::npos && path.ends_with(".sst")) {
      return rocksdb::IOStatus::IOError("refused");
    }
    return target()->NewWritableFile(path, options, file, context);
  }
  std::atomic<bool> refuses{false};
};

class SpillFamilies : public SideBySide {
 protected:
  SpillFamilies() { families_.emplace_back("opened", rocksdb::ColumnFamilyOptions()); }

  // Opens two new databases.
  void open_all() {
    close();
    families_.resize(kMade);
    for (const Side& side : sides()) std::filesystem::remove_all(path(side));
    open();
    for (Side& side : sides()) {
      ColumnFamilyHandle* handle = nullptr;
      ASSERT_TRUE(side.db->CreateColumnFamily({}, "made", &handle).ok());
      side.handles.push_back(handle);
    }
    families_.emplace_back("made", rocksdb::ColumnFamilyOptions());
  }
  void put(std::size_t family, const std::string& key, const std::string& value) {
    same([&](Side& side) { return side.db->Put(WriteOptions(), side.handles[family], key, value); });
  }
  // Puts keys into both stores, twice as many into the spill store.
  void fill(std::size_t family) {
    put(family, "a", "main");
    put(family, "b", "main");
    spill_db().SetDiversion(Diversion::always);
    put(family, "b", "spilled");
    put(family, "c", "spilled");
    same([&](Side& side) { return side.db->Delete(WriteOptions(), side.handles[family], "a"); });
    spill_db().SetDiversion(Diversion::automatic);
  }
  static std::string all(Side& side, std::size_t family) {
    const std::unique_ptr<rocksdb::Iterator> iterator(side.db->NewIterator(ReadOptions(), side.handles[family]));
    std::string text;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
      std::string value;
      const rocksdb::Status status = side.db->Get(ReadOptions(), side.handles[family], iterator->key(), &value);
      EXPECT_EQ(value, iterator->value().ToString()) << status.ToString();
      text += iterator->key().ToString() + "=" + iterator->value().ToString() + " ";
    }
    return text + (iterator->status().ok() ? "" : iterator->status().ToString());
  }
  void expect_same_contents() {
    for (std::size_t i = 0; i < plain().handles.size(); ++i) {
      if (plain().handles[i] != nullptr) same([&](Side& side) { return all(side, i); });
    }
  }
  // Deletes both sides' handles by `delete`.
  void delete_handles(std::size_t family) {
    for (Side& side : sides()) {
      delete side.handles[family];  // NOLINT: RocksDB allows it
      side.handles[family] = nullptr;
    }
  }
  static std::size_t sorted_files(const std::string& directory) {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      count += entry.path().extension() == ".sst" ? 1 : 0;
    }
    return count;
  }
};

TEST_F(SpillFamilies, ADroppedOneIsReadThroughItsHandle) {
  for (const std::uint64_t put_back_bytes : {std::uint64_t{0}, std::uint64_t{1} << 20}) {
    SCOPED_TRACE(put_back_bytes);
    spill_options_.put_back_bytes = put_back_bytes;
    open_all();
    fill(0);
    for (const std::size_t family : {kOpened, kMade}) {
      fill(family);
      same([&](Side& side) { return side.db->DropColumnFamily(side.handles[family]); });
      expect_same_contents();
      ASSERT_TRUE(spill_db().Rollback().ok());
      expect_same_contents();
      fill(0);
    }
    same([](Side& side) { return side.db->DropColumnFamily(side.handles[kMade]); });
    same([](Side& side) { return side.db->DropColumnFamilies({side.handles[kOpened]}); });
    same([](Side& side) { return side.db->DropColumnFamily(side.db->DefaultColumnFamily()); });
    expect_same_contents();
    close();
    const auto dropped = std::vector(families_.begin() + 1, families_.end());
    families_.resize(1);
    open();
    expect_same_contents();
    families_.insert(families_.end(), dropped.begin(), dropped.end());
  }
}

TEST_F(SpillFamilies, APrefixEndsTheIterationOfADroppedOne) {
  open_all();
  for (const char* key : {"p1", "p2", "q1"}) put(kMade, key, "main");
  spill_db().SetDiversion(Diversion::always);
  put(0, "a", "spilled");
  spill_db().SetDiversion(Diversion::automatic);
  same([](Side& side) { return side.db->SetOptions(side.handles[kMade], {{"prefix_extractor", "fixed:1"}}); });
  same([](Side& side) { return side.db->DropColumnFamily(side.handles[kMade]); });
  same([](Side& side) {
    ReadOptions options;
    options.prefix_same_as_start = true;
    const std::unique_ptr<rocksdb::Iterator> iterator(side.db->NewIterator(options, side.handles[kMade]));
    std::string text;
    for (iterator->Seek("p"); iterator->Valid(); iterator->Next()) text += iterator->key().ToString() + " ";
    return text;
  });
}

// An iterator stays valid without the handle with which it was created. (RocksDB's own Refresh for a dropped family
// reads freed memory, so only spillway::DB is tested then.) From RocksDB 9.1 to 11.7 iterators read their handle.
#if !SPILLWAY_ROCKSDB_AT_LEAST(9, 1) || SPILLWAY_ROCKSDB_AT_LEAST(11, 8)
TEST_F(SpillFamilies, IteratorsAreRefreshedWithoutTheirHandle) {
  for (const bool spills : {false, true}) {
    for (const std::size_t family : {kOpened, kMade}) {
      for (const bool drops : {false, true}) {
        SCOPED_TRACE(std::to_string(family) + (spills ? ", spilled" : "") + (drops ? ", dropped" : ""));
        open_all();
        put(family, "a", "main");
        if (spills) spill_db().SetDiversion(Diversion::always);
        put(family, "b", "1");
        ReadOptions options;
        options.prefix_same_as_start = true;
        std::vector<std::unique_ptr<rocksdb::Iterator>> iterators;
        for (Side& side : sides()) iterators.emplace_back(side.db->NewIterator(options, side.handles[family]));
        put(family, "c", "2");
        if (drops) same([&](Side& side) { return side.db->DropColumnFamily(side.handles[family]); });
        for (Side& side : sides()) {
          ASSERT_TRUE(side.db->DestroyColumnFamilyHandle(side.handles[family]).ok());
          side.handles[family] = nullptr;
        }
        for (std::size_t i = drops ? 1 : 0; i < iterators.size(); ++i) {
          const rocksdb::Status status = iterators[i]->Refresh();
          EXPECT_TRUE(drops ? status.IsNotSupported() : status.ok()) << status.ToString();
          std::string text;
          for (iterators[i]->SeekToFirst(); iterators[i]->Valid(); iterators[i]->Next()) {
            text += iterators[i]->key().ToString();
          }
          EXPECT_EQ(text, drops ? "ab" : "abc");
        }
      }
    }
  }
}
#endif

// The captured state is consistent, even if families are dropped afterwards.
TEST_F(SpillFamilies, ACheckpointHasAFamilyThatIsDroppedMeanwhile) {
  open_all();
  fill(kMade);
  const std::string before = all(spill(), kMade);
  const std::string copy = path(spill()) + "-copy";
  {
    const AtStep drop("spill.checkpoint.captured",
                      [&] { ASSERT_TRUE(spill_db().DropColumnFamily(spill().handles[kMade]).ok()); });
    const rocksdb::Status status = spill_db().CreateCheckpoint(copy);
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_TRUE(drop.was_reached());
  }
  std::vector<ColumnFamilyHandle*> handles;
  rocksdb::DB* opened = nullptr;
  const rocksdb::Status status =
      rocksdb::DB::Open({}, copy, {{"default", {}}, {"opened", {}}, {"made", {}}}, &handles, spill::DbOut(&opened));
  ASSERT_TRUE(status.ok()) << status.ToString();
  Side plain_copy;
  plain_copy.db.reset(opened);
  plain_copy.handles = handles;
  EXPECT_EQ(all(plain_copy, kMade), before);
  close(plain_copy);
}

TEST_F(SpillFamilies, ACheckpointKnowsTheOptionsOfAFamilyWithoutAHandle) {
  open_all();
  rocksdb::ColumnFamilyOptions reverse;
  reverse.comparator = rocksdb::ReverseBytewiseComparator();
  ColumnFamilyHandle* handle = nullptr;
  ASSERT_TRUE(spill_db().CreateColumnFamily(reverse, "reverse", &handle).ok());
  ASSERT_TRUE(spill_db().Put(WriteOptions(), handle, "a", "1").ok());
  spill_db().SetDiversion(Diversion::always);
  ASSERT_TRUE(spill_db().Put(WriteOptions(), handle, "b", "2").ok());
  delete handle;  // NOLINT: RocksDB allows it
  const rocksdb::Status status = spill_db().CreateCheckpoint(path(spill()) + "-copy");
  EXPECT_TRUE(status.ok()) << status.ToString();
}

TEST_F(SpillFamilies, WritesToADroppedOneAnswerAsRocksdb) {
  for (const Diversion diversion : {Diversion::never, Diversion::always}) {
    open_all();
    for (const std::size_t family : {kOpened, kMade}) {
      same([&](Side& side) { return side.db->DropColumnFamily(side.handles[family]); });
      spill_db().SetDiversion(diversion);
      same([&](Side& side) { return side.db->Put(WriteOptions(), side.handles[family], "k", "v"); });
      same([&](Side& side) { return side.db->Delete(WriteOptions(), side.handles[family], "k"); });
      same([&](Side& side) { return side.db->SingleDelete(WriteOptions(), side.handles[family], "k"); });
      same([&](Side& side) { return side.db->DeleteRange(WriteOptions(), side.handles[family], "k", "l"); });
      expect_same_contents();
    }
  }
}

TEST_F(SpillFamilies, TheFilesOfADroppedOneAreRemovedWithItsHandle) {
  open_all();
  for (const std::size_t family : {kOpened, kMade}) {
    fill(family);
    same([&](Side& side) { return side.db->Flush({}, side.handles[family]); });
    same([&](Side& side) { return side.db->DropColumnFamily(side.handles[family]); });
    EXPECT_GT(sorted_files(path(spill())), 0U);
    same([&](Side& side) { return side.db->DestroyColumnFamilyHandle(side.handles[family]); });
    for (Side& side : sides()) side.handles[family] = nullptr;
    for (const Side& side : sides()) EXPECT_EQ(sorted_files(path(side)), 0U) << side.name;
  }
  for (Side& side : sides()) side.handles.resize(1);
}

// The address sanitizer reports a use of a deleted handle.
TEST_F(SpillFamilies, NothingIsLostWhenAHandleIsDeleted) {
  for (const RollbackPolicy policy : {RollbackPolicy::off, RollbackPolicy::eager}) {
    spill_options_.rollback = policy;
    spill_options_.poll_ms = 1;
    for (const std::size_t family : {kOpened, kMade}) {
      SCOPED_TRACE(family);
      open_all();
      fill(0);
      fill(family);
      delete_handles(family);
      fill(0);
      ASSERT_TRUE(spill_db().Rollback().ok());
      expect_same_contents();
      for (Side& side : sides()) std::erase(side.handles, nullptr);
      open();
      expect_same_contents();
    }
  }
}

TEST_F(SpillFamilies, AHandleMayBeDeletedAtAnyStepOfARollback) {
  for (const char* const step : {"spill.rollback.sorted", "spill.rollback.gate_closed", "spill.rollback.ingested",
                                 "spill.rollback.dropped", "spill.rollback.published"}) {
    for (const std::size_t family : {kOpened, kMade}) {
      SCOPED_TRACE(step);
      open_all();
      fill(family);
      std::future<void> deleted;
      {
        const AtStep at(step, [&] { deleted = std::async(std::launch::async, [&] { delete_handles(family); }); });
        EXPECT_TRUE(spill_db().Rollback().ok());
        EXPECT_TRUE(at.was_reached());
        deleted.wait();
      }
      for (Side& side : sides()) std::erase(side.handles, nullptr);
      open();
      expect_same_contents();
    }
  }
}

// An ingestion blocks RocksDB's writers until its flush is over. The flush calls the commit queue. So code in the queue
// must not wait for RocksDB's writers.
TEST_F(SpillFamilies, OneIsDroppedWhileTheIngestionOfAnotherWaitsForAFlush) {
  class InTheFlush final : public steps::Watcher {
   public:
    explicit InTheFlush(std::function<void()> what) : what_(std::move(what)) { steps::watch(this); }
    ~InTheFlush() override { steps::watch(nullptr); }
    void reached(std::string_view step) override {
      if (step == "spill.rollback.gate_closed") is_ingesting_ = true;
      if (step == "spill.commit.main_synced" && is_ingesting_.exchange(false)) what_();
    }

   private:
    const std::function<void()> what_;
    std::atomic<bool> is_ingesting_{false};
  };
  open_all();
  fill(kOpened);
  std::future<rocksdb::Status> dropped;
  const InTheFlush drop([&] {
    dropped = std::async(std::launch::async, [&] { return spill_db().DropColumnFamily(spill().handles[kMade]); });
    dropped.wait_for(std::chrono::milliseconds(300));  // the drop is in the queue
  });
  auto back = std::async(std::launch::async, [&] { return spill_db().Rollback(); });
  if (back.wait_for(std::chrono::seconds(60)) != std::future_status::ready) {
    std::cerr << "they wait for each other" << std::endl;
    std::abort();
  }
  EXPECT_TRUE(back.get().ok());
  ASSERT_TRUE(dropped.valid()) << "the ingestion needed no flush";
  EXPECT_TRUE(dropped.get().ok());
  EXPECT_TRUE(plain().db->DropColumnFamily(plain().handles[kMade]).ok());
  expect_same_contents();
}

// A write needs no handle, because the batch has the family's id.
TEST_F(SpillFamilies, ABatchOutlivesTheHandleThatItWasMadeWith) {
  for (const std::size_t family : {kOpened, kMade}) {
    for (const Diversion diversion : {Diversion::always, Diversion::never}) {
      open_all();
      std::vector<rocksdb::WriteBatch> batches(2);
      for (std::size_t i = 0; i < 2; ++i) {
        ASSERT_TRUE(batches[i].Put(sides()[i].handles[family], "k", std::to_string(static_cast<int>(diversion))).ok());
        ASSERT_TRUE(batches[i].Put("k", "default").ok());
      }
      delete_handles(family);
      spill_db().SetDiversion(diversion);
      same([&](Side& side) { return side.db->Write(WriteOptions(), &batches[&side == &spill() ? 1 : 0]); });
      EXPECT_TRUE(spill_db().Rollback().ok());
      for (Side& side : sides()) std::erase(side.handles, nullptr);
      open();
      expect_same_contents();
    }
  }
}

// Writes that cannot be brought back when a handle is deleted must not be discarded like those of a dropped family.
TEST_F(SpillFamilies, WhatCannotComeBackBeforeAHandleIsDeletedIsThereAfterReopening) {
  const auto files = std::make_shared<NoSortedFiles>();
  const std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(files);
  options_.env = env.get();
  for (const std::uint64_t put_back_bytes : {std::uint64_t{0}, std::uint64_t{1} << 20}) {
    open_all();
    fill(0);
    fill(kMade);
    files->refuses = true;
    delete_handles(kMade);
    files->refuses = false;
    const rocksdb::Status status = spill_db().Rollback();
    EXPECT_TRUE(status.IsAborted()) << status.ToString();
    EXPECT_NE(status.ToString().find("reopen"), std::string::npos);
    expect_same_contents();
    for (Side& side : sides()) std::erase(side.handles, nullptr);
    spill_options_.put_back_bytes = put_back_bytes;
    open();
    expect_same_contents();
    ASSERT_TRUE(spill_db().Rollback().ok());
    expect_same_contents();
    spill_options_.put_back_bytes = 0;
  }
  close();
}

// RocksDB would place rolled-back writes where FIFO compaction deletes them first.
TEST_F(SpillFamilies, OfOneWithFifoCompactionNothingIsDiverted) {
  families_[kOpened].options.compaction_style = rocksdb::kCompactionStyleFIFO;
  open();
  spill_db().SetDiversion(Diversion::always);
  for (Side& side : sides()) {
    EXPECT_TRUE(side.db->Put({}, side.handles[kOpened], "a", "1").ok());
    EXPECT_TRUE(side.db->Put({}, side.handles[0], "live", "1").ok());
  }
  EXPECT_EQ(spill_db().GetSpillStatistics().live_entries, 1U);
  // A key in the spill store is brought back first.
  for (Side& side : sides()) {
    rocksdb::WriteBatch batch;
    EXPECT_TRUE(batch.Put(side.handles[0], "live", "2").ok());
    EXPECT_TRUE(batch.Put(side.handles[kOpened], "a", "2").ok());
    EXPECT_TRUE(side.db->Write({}, &batch).ok());
  }
  EXPECT_EQ(spill_db().GetSpillStatistics().live_entries, 0U);
  same([](Side& side) { return all(side, 0); });
  same([](Side& side) { return all(side, kOpened); });
}

// RocksDB 7.8 ingests plain tables as if they had one key.
TEST_F(SpillFamilies, OfOneWithPlainTablesNothingIsDiverted) {
  options_.allow_mmap_reads = true;
  families_[kOpened].options.table_factory.reset(rocksdb::NewPlainTableFactory());
  families_[kOpened].options.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(1));
  open();
  spill_db().SetDiversion(Diversion::always);
  for (Side& side : sides()) {
    for (const char* key : {"a1", "a2", "a3"}) EXPECT_TRUE(side.db->Put({}, side.handles[kOpened], key, key).ok());
    EXPECT_TRUE(side.db->Put({}, side.handles[0], "live", "1").ok());
  }
  EXPECT_EQ(spill_db().GetSpillStatistics().live_entries, 1U);
  EXPECT_TRUE(spill_db().Rollback().ok());
  for (const char* key : {"a1", "a2", "a3"}) {
    std::string value;
    EXPECT_TRUE(spill().db->Get({}, spill().handles[kOpened], key, &value).ok()) << key;
    EXPECT_EQ(value, key);
  }
  same([](Side& side) { return all(side, 0); });
}

// What was diverted before a family got such options is not lost, and comes back with the earlier options.
TEST_F(SpillFamilies, OptionsUnderWhichNothingComesBackAreRefusedWhileSomethingIsSpilled) {
  const rocksdb::ColumnFamilyOptions before = families_[kOpened].options;
  rocksdb::ColumnFamilyOptions fifo = before;
  fifo.compaction_style = rocksdb::kCompactionStyleFIFO;
  rocksdb::ColumnFamilyOptions plain_tables = before;
  plain_tables.table_factory.reset(rocksdb::NewPlainTableFactory());
  plain_tables.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(1));
  open();
  spill_db().SetDiversion(Diversion::always);
  EXPECT_TRUE(spill().db->Put({}, spill().handles[kOpened], "a", "1").ok());
  for (const rocksdb::ColumnFamilyOptions& options : {plain_tables, fifo}) {
    close();
    families_[kOpened].options = options;
    const rocksdb::Status status = try_open(spill());
    EXPECT_TRUE(status.IsNotSupported()) << status.ToString();
    EXPECT_NE(status.ToString().find(families_[kOpened].name), std::string::npos) << status.ToString();
    families_[kOpened].options = before;
    open();
    std::string value;
    EXPECT_TRUE(spill().db->Get({}, spill().handles[kOpened], "a", &value).ok());
    EXPECT_EQ(spill_db().GetSpillStatistics().live_entries, 1U);
  }
  EXPECT_TRUE(spill_db().Rollback().ok());
  close();
  families_[kOpened].options = fifo;
  EXPECT_TRUE(try_open(spill()).ok());
}

// Other threads divert that key repeatedly, and the batch is written nevertheless.
TEST_F(SpillFamilies, ABatchWithAKeyOfOneWithFifoCompactionIsWrittenDuringOtherWrites) {
  families_[kOpened].options.compaction_style = rocksdb::kCompactionStyleFIFO;
  open();
  spill_db().SetDiversion(Diversion::always);
  Side& ours = spill();
  std::atomic<bool> is_over{false};
  std::thread other([&] {
    while (!is_over) EXPECT_TRUE(ours.db->Put({}, ours.handles[0], "live", "1").ok());
  });
  for (int i = 0; i < 10; ++i) {
    rocksdb::WriteBatch batch;
    EXPECT_TRUE(batch.Put(ours.handles[0], "live", "2").ok());
    EXPECT_TRUE(batch.Put(ours.handles[kOpened], "a", std::to_string(i)).ok());
    EXPECT_TRUE(ours.db->Write({}, &batch).ok());
  }
  is_over = true;
  other.join();
  std::string value;
  EXPECT_TRUE(ours.db->Get({}, ours.handles[kOpened], "a", &value).ok());
  EXPECT_EQ(value, "9");
}

// Nothing is brought back during a pause of background work: a no_slowdown write returns that, and others wait for the
// end.
TEST_F(SpillFamilies, ABatchWithAKeyOfOneWithFifoCompactionWaitsWhileBackgroundWorkIsPaused) {
  families_[kOpened].options.compaction_style = rocksdb::kCompactionStyleFIFO;
  open();
  spill_db().SetDiversion(Diversion::always);
  Side& ours = spill();
  EXPECT_TRUE(ours.db->Put({}, ours.handles[0], "live", "1").ok());
  ASSERT_TRUE(ours.db->PauseBackgroundWork().ok());
  rocksdb::WriteBatch batch;
  EXPECT_TRUE(batch.Put(ours.handles[0], "live", "2").ok());
  EXPECT_TRUE(batch.Put(ours.handles[kOpened], "a", "1").ok());
  rocksdb::WriteOptions at_once;
  at_once.no_slowdown = true;
  EXPECT_TRUE(ours.db->Write(at_once, &batch).IsIncomplete());
  auto written = std::async(std::launch::async, [&] { return ours.db->Write({}, &batch); });
  EXPECT_EQ(written.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  EXPECT_TRUE(ours.db->Put({}, ours.handles[0], "beside", "1").ok());
  EXPECT_TRUE(ours.db->ContinueBackgroundWork().ok());
  EXPECT_TRUE(written.get().ok());
  std::string value;
  EXPECT_TRUE(ours.db->Get({}, ours.handles[0], "live", &value).ok());
  EXPECT_EQ(value, "2");
}

// The guard is a family, too, and has no block cache.
TEST_F(SpillFamilies, SumsOverAllFamiliesAreWithoutOurOwn) {
  open();
  using Properties = rocksdb::DB::Properties;
  for (const std::string& property :
       {Properties::kBlockCacheCapacity, Properties::kBlockCacheUsage, Properties::kNumSnapshots,
        Properties::kIsFileDeletionsEnabled, Properties::kNumEntriesActiveMemTable, Properties::kNumLiveVersions,
        std::string("rocksdb.nothing"), Properties::kLevelStats}) {
    same([&](Side& side) {
      std::uint64_t sum = 0;
      const bool is_known = side.db->GetAggregatedIntProperty(property, &sum);
      return property + (is_known ? " " + std::to_string(sum) : " is not known");
    });
  }
}

TEST_F(SpillFamilies, TheDefaultOnesHandleIsNotTheUsersToDestroy) {
  open();
  same([](Side& side) {
    EXPECT_TRUE(side.db->DestroyColumnFamilyHandle(side.db->DefaultColumnFamily()).IsInvalidArgument());
    return side.db->Put({}, "k", "1");
  });
}

TEST_F(SpillFamilies, DestroyingANullHandleIsOk) {
  open();
  fill(0);
  EXPECT_EQ(same([](Side& side) { return side.db->DestroyColumnFamilyHandle(nullptr); }), "OK");
  same([](Side& side) { return all(side, 0); });
}

TEST_F(SpillFamilies, AFamilyMayBeListedTwice) {
  families_.push_back(families_[kOpened]);
  open();
  for (const Side& side : sides()) {
    ASSERT_EQ(side.handles.size(), 3U);
    EXPECT_EQ(side.handles[1]->GetID(), side.handles[2]->GetID());
  }
  fill(1);
  delete_handles(1);
  same([](Side& side) { return all(side, 2); });
  fill(2);
  ASSERT_TRUE(spill_db().Rollback().ok());
  same([](Side& side) { return all(side, 2); });
  for (Side& side : sides()) std::erase(side.handles, nullptr);
}

}  // namespace
}  // namespace spillway::clients
