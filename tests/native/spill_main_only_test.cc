// Checkpoints, backups, ingestions and imports during diversion: each has a consistent state, and none stops diversion.
#include "spill_main_only.h"

#include <gtest/gtest.h>
#include <rocksdb/comparator.h>
#include <rocksdb/listener.h>
#include <rocksdb/sst_file_writer.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "at_each_step.h"
#include "base/steps.h"
#include "faults/file_system.h"
#include "spill/compat/db_out.h"
#include "spill/compat/rocksdb_calls.h"
#include "spill_rocksdb_of.h"
#include "spillway/db.h"
#include "temporary_directory.h"

namespace spillway::clients {
namespace {

using rocksdb::Status;

class SpillMainOnly : public MainOnly {};

// One thread writes x0, x1, ... one after another. A copy has the first of them, up to some number. Every other write
// has a key that is in the spill store, and is slow to look up: a copy may begin between the look-up and the commit.
TEST_F(SpillMainOnly, ACopyHoldsAPrefix) {
  constexpr int kFillers = 2000;
  constexpr int kRounds = 6;
  db_->SetDiversion(Diversion::always);
  for (const auto& [name, copy] : copies()) {
    SCOPED_TRACE(name);
    std::atomic<bool> over{false};
    std::atomic<int> acknowledged{0};
    std::thread writer([&, &name = name] {
      for (int i = 0; !over && i < 200'000; ++i) {
        rocksdb::WriteBatch batch;
        if (i % 2 == 0) {
          EXPECT_TRUE(batch.Put("live", std::to_string(i)).ok());
        }
        EXPECT_TRUE(batch.Put(name + std::to_string(i), "v").ok());
        for (int filler = 0; i % 2 == 0 && filler < kFillers; ++filler) {
          EXPECT_TRUE(batch.Put("filler" + std::to_string(filler % 50), "v").ok());
        }
        EXPECT_TRUE(db_->Write({}, &batch).ok());
        acknowledged = i + 1;
      }
    });
    for (int round = 0; round < kRounds; ++round) {
      const int before = acknowledged;
      const std::string to = name + "-" + std::to_string(round);
      const Status status = copy(*db_, directory_.path(to));
      ASSERT_TRUE(status.ok()) << status.ToString();
      const int after = acknowledged + 1;
      const auto plain = open_plain(to);
      int first_missing = 0;
      while (get(*plain, name + std::to_string(first_missing)) == "v") ++first_missing;
      EXPECT_GE(first_missing, before);
      EXPECT_LE(first_missing, after);
      for (int i = first_missing; i < after + 10; ++i) EXPECT_EQ(get(*plain, name + std::to_string(i)), "-") << i;
    }
    over = true;
    writer.join();
  }
}

// Blocks every thread that compares the key "slow", until it is released.
class SlowOrder final : public rocksdb::Comparator {
 public:
  const char* Name() const override { return "SlowOrder"; }
  int Compare(const rocksdb::Slice& a, const rocksdb::Slice& b) const override {
    if (is_slow_ && (a == "slow" || b == "slow")) {
      looks_ = true;
      while (is_slow_) std::this_thread::yield();
    }
    return a.compare(b);
  }
  void FindShortestSeparator(std::string*, const rocksdb::Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}
  bool CanKeysWithDifferentByteContentsBeEqual() const override { return false; }

  void slow_down() {
    looks_ = false;
    is_slow_ = true;
  }
  void resume() { is_slow_ = false; }
  bool looks() const { return looks_; }

 private:
  mutable std::atomic<bool> is_slow_{false};
  mutable std::atomic<bool> looks_{false};
};

class AtFlush final : public rocksdb::EventListener {
 public:
  void OnFlushBegin(rocksdb::DB*, const rocksdb::FlushJobInfo&) override {
    if (is_on && !was_there.exchange(true)) what();
  }
  std::function<void()> what;
  std::atomic<bool> is_on{false};
  std::atomic<bool> was_there{false};
};

// A write checks whether it must be diverted while the spill store is emptied for a copy, and commits while the copy is
// made. The copy must not have the next write of that thread without it.
TEST_F(SpillMainOnly, ACopyHasNoWriteWithoutTheDivertedOneBeforeIt) {
  db_.reset();
  const auto at_flush = std::make_shared<AtFlush>();
  SlowOrder order;
  for (const auto& [name, copy] : copies()) {
    SCOPED_TRACE(name);
    rocksdb::Options options;
    options.create_if_missing = true;
    options.comparator = &order;
    options.listeners.push_back(at_flush);
    SpillOptions spill;
    spill.rollback = RollbackPolicy::off;
    DB* opened = nullptr;
    ASSERT_TRUE(DB::Open(options, spill, directory_.path("of-" + name), &opened).ok());
    db_.reset(opened);
    ASSERT_TRUE(put("main", "1").ok());  // so that there is something to flush
    db_->SetDiversion(Diversion::always);
    ASSERT_TRUE(db_->DeleteRange({}, db_->DefaultColumnFamily(), "x", "y").ok());
    db_->SetDiversion(Diversion::never);

    order.slow_down();
    std::atomic<bool> is_over{false};
    std::thread writer([&] {
      rocksdb::WriteBatch batch;
      EXPECT_TRUE(batch.Put("slow", "1").ok());
      EXPECT_TRUE(batch.DeleteRange("p", "q").ok());
      EXPECT_TRUE(db_->Write({}, &batch).ok());
      EXPECT_TRUE(put("next", "1").ok());
      is_over = true;
    });
    while (!order.looks()) std::this_thread::yield();
    at_flush->was_there = false;
    at_flush->what = [&] {
      order.resume();
      for (int i = 0; i < 200 && !is_over; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    };
    at_flush->is_on = true;
    const Status status = copy(*db_, directory_.path("copy-" + name));
    at_flush->is_on = false;
    order.resume();
    writer.join();
    ASSERT_TRUE(status.ok()) << status.ToString();

    rocksdb::Options plain;
    plain.comparator = &order;
    ASSERT_TRUE(rocksdb::DB::Open(plain, directory_.path("copy-" + name), spill::DbOut(&copied_)).ok());
    const std::unique_ptr<rocksdb::DB> copied(copied_);
    EXPECT_EQ(get(*copied, "main"), "1");
    EXPECT_TRUE(get(*copied, "next") == "-" || get(*copied, "slow") == "1") << "the copy is no prefix";
    db_.reset();
  }
}

TEST_F(SpillMainOnly, DiversionContinuesDuringACheckpoint) {
  db_->SetDiversion(Diversion::always);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(put("k" + std::to_string(i), std::string(4000, 'v')).ok());
  ASSERT_TRUE(db_->DeleteRange({}, db_->DefaultColumnFamily(), "k10", "k11").ok());
  ASSERT_TRUE(db_->Delete({}, "k20").ok());
  const auto before = db_->GetSpillStatistics();
  {
    const AtEach beside("spill.checkpoint.captured", [&] {
      ASSERT_TRUE(put("k1", "later").ok());
      ASSERT_TRUE(put("new", "later").ok());
      ASSERT_TRUE(db_->DeleteRange({}, db_->DefaultColumnFamily(), "k5", "k6").ok());
    });
    const Status status = db_->CreateCheckpoint(directory_.path("copy"));
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(beside.times(), 1);
  }
  const auto after = db_->GetSpillStatistics();
  EXPECT_EQ(after.diverted_writes, before.diverted_writes + 3);
  EXPECT_EQ(after.main_writes, before.main_writes);
  EXPECT_EQ(after.rolled_back_entries, before.rolled_back_entries) << "a checkpoint brought something back";
  const auto plain = open_plain("copy");
  for (int i = 0; i < 100; ++i) {
    const bool deleted = i == 10 || i == 20;
    EXPECT_EQ(get(*plain, "k" + std::to_string(i)), deleted ? "-" : std::string(4000, 'v')) << i;
  }
  EXPECT_EQ(get(*plain, "new"), "-");
  EXPECT_EQ(get(*db_, "k1"), "later");
}

TEST_F(SpillMainOnly, DiversionContinuesWhileABackupOrAnIngestionWaitsForTheRollback) {
  const std::string file = sorted_file("one.sst", "ingested", "1");
  const std::vector<std::pair<std::string, std::function<Status()>>> calls{
      {"backup", [&] { return backup(*db_, directory_.path("restored")); }},
      {"ingestion", [&] { return db_->IngestExternalFile({file}, {}); }}};
  db_->SetDiversion(Diversion::always);
  for (const auto& [name, call] : calls) {
    SCOPED_TRACE(name);
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(put("k" + std::to_string(i), std::string(4000, 'v')).ok());
    const auto before = db_->GetSpillStatistics();
    const AtEach beside("spill.rollback.sorted", [&, &name = name] { ASSERT_TRUE(put(name, "beside").ok()); });
    const Status status = call();
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_GT(beside.times(), 0);
    EXPECT_EQ(db_->GetSpillStatistics().main_writes, before.main_writes + (beside.times() > 0 ? 1 : 0))
        << "only what was put back";
    EXPECT_EQ(get(*db_, name), "beside");
  }
  EXPECT_EQ(get(*db_, "ingested"), "1");
  EXPECT_EQ(get(*open_plain("restored"), "backup"), "beside");
}

// An ingested file is newer than everything that was written before, and older than what is written after.
TEST_F(SpillMainOnly, AnIngestedKeyIsNewerThanADivertedOneAndOlderThanTheNext) {
  db_->SetDiversion(Diversion::always);
  ASSERT_TRUE(put("k", "before").ok());
  const std::string file = sorted_file("k.sst", "k", "ingested");
  ASSERT_TRUE(db_->IngestExternalFile({file}, {}).ok());
  EXPECT_EQ(get(*db_, "k"), "ingested");
  EXPECT_TRUE(rocksdb::Env::Default()->FileExists(file).ok()) << "the user's file is the user's";
  ASSERT_TRUE(put("k", "after").ok());
  EXPECT_EQ(get(*db_, "k"), "after");
  ASSERT_TRUE(db_->Rollback().ok());
  EXPECT_EQ(get(*db_, "k"), "after");
}

TEST_F(SpillMainOnly, IngestionRemovesTheUsersFileOnlyWhenItWasToBeMoved) {
  const std::string moved = sorted_file("moved.sst", "m", "1");
  rocksdb::IngestExternalFileOptions options;
  options.move_files = true;
  ASSERT_TRUE(db_->IngestExternalFile({moved}, options).ok());
  EXPECT_TRUE(rocksdb::Env::Default()->FileExists(moved).IsNotFound());
  EXPECT_EQ(get(*db_, "m"), "1");
  std::vector<std::string> left;
  ASSERT_TRUE(rocksdb::Env::Default()->GetChildren(directory_.path("db") + "/spill", &left).ok());
  for (const std::string& one : left) EXPECT_FALSE(one.ends_with(".sst")) << one;
}

TEST_F(SpillMainOnly, WhatCannotBeIngestedLeavesNothingBehind) {
  EXPECT_FALSE(db_->IngestExternalFile({directory_.path("none.sst")}, {}).ok());
  ASSERT_TRUE(rocksdb::WriteStringToFile(rocksdb::Env::Default(), "no table", directory_.path("bad.sst")).ok());
  EXPECT_FALSE(db_->IngestExternalFile({directory_.path("bad.sst")}, {}).ok());
  std::vector<std::string> left;
  ASSERT_TRUE(rocksdb::Env::Default()->GetChildren(directory_.path("db") + "/spill", &left).ok());
  for (const std::string& one : left) EXPECT_FALSE(one.ends_with(".sst")) << one;
  EXPECT_TRUE(put("k", "1").ok());
  const Status exists = db_->CreateCheckpoint(directory_.path("db"));
  EXPECT_TRUE(exists.IsInvalidArgument()) << exists.ToString();
}

// --- Calls that raise RocksDB's sequence number without its log

class SpillSequence : public SpillMainOnly {
 protected:
  // A column family of another database with much larger sequence numbers.
  void export_family() {
    rocksdb::DB* opened = nullptr;
    rocksdb::Options options;
    options.create_if_missing = true;
    ASSERT_TRUE(rocksdb::DB::Open(options, directory_.path("other"), spill::DbOut(&opened)).ok());
    const std::unique_ptr<rocksdb::DB> other(opened);
    for (int i = 0; i < 1000; ++i) ASSERT_TRUE(other->Put({}, "imported", std::to_string(i)).ok());
    rocksdb::Checkpoint* made = nullptr;
    ASSERT_TRUE(rocksdb::Checkpoint::Create(other.get(), &made).ok());
    const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
    rocksdb::ExportImportFilesMetaData* metadata = nullptr;
    ASSERT_TRUE(
        checkpoint->ExportColumnFamily(other->DefaultColumnFamily(), directory_.path("exported"), &metadata).ok());
    metadata_.reset(metadata);
  }
  // Opens on a file system whose files stay as they are when the process is killed.
  void open_families(const std::vector<std::string>& names) {
    auto system = faults::FaultyFileSystem::open(directory_.path("root"));
    ASSERT_TRUE(system) << system.status().message();
    system_ = *system;
    env_ = rocksdb::NewCompositeEnv(system_);
    rocksdb::DBOptions options;
    options.create_if_missing = true;
    options.env = env_.get();
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    for (const std::string& name : names) families.emplace_back(name, rocksdb::ColumnFamilyOptions());
    SpillOptions spill;
    spill.rollback = RollbackPolicy::off;
    DB* db = nullptr;
    const Status status = DB::Open(options, spill, directory_.path("root") + "/db", families, &handles_, &db);
    ASSERT_TRUE(status.ok()) << status.ToString();
    killed_.reset(db);
  }
  void kill() {
    system_->cut_power();
    for (rocksdb::ColumnFamilyHandle* handle : handles_) (void)killed_->DestroyColumnFamilyHandle(handle);
    killed_.reset();
  }

  std::unique_ptr<rocksdb::ExportImportFilesMetaData> metadata_;
  std::shared_ptr<faults::FaultyFileSystem> system_;
  std::unique_ptr<rocksdb::Env> env_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
  std::unique_ptr<DB> killed_;
};

TEST_F(SpillSequence, AnImportLosesNoDivertedWriteToAKill) {
  for (const bool drops : {false, true}) {
    SCOPED_TRACE(drops);
    export_family();
    open_families({"default"});
    rocksdb::ColumnFamilyHandle* imported = nullptr;
    const Status status = killed_->CreateColumnFamilyWithImport({}, "imported", {}, *metadata_, &imported);
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_TRUE(rocksdb::Env::Default()->FileExists(metadata_->files[0].db_path + metadata_->files[0].name).ok());
    std::string value;
    ASSERT_TRUE(killed_->Get({}, imported, "imported", &value).ok());
    EXPECT_EQ(value, "999");
    killed_->SetDiversion(Diversion::always);
    ASSERT_TRUE(killed_->Put({}, "diverted", "1").ok());
    // The last record of RocksDB's sequence number is removed with the table that has it.
    if (drops) {
      ASSERT_TRUE(killed_->DropColumnFamily(imported).ok());
    } else {
      rocksdb::CompactRangeOptions always;
      always.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
      ASSERT_TRUE(rocksdb_of(*killed_).CompactRange(always, imported, nullptr, nullptr).ok());
    }
    ASSERT_TRUE(killed_->DestroyColumnFamilyHandle(imported).ok());
    kill();
    if (drops) {
      open_families({"default"});
    } else {
      open_families({"default", "imported"});
    }
    EXPECT_EQ(get(*killed_, "diverted"), "1");
    kill();
    const std::string root = directory_.path("root");
    ASSERT_EQ(
        std::system(("rm -rf " + root + " " + directory_.path("exported") + " " + directory_.path("other")).c_str()),
        0);
  }
}

TEST_F(SpillSequence, AnIngestionLosesNoDivertedWriteToAKill) {
  open_families({"default"});
  const std::string file = sorted_file("s.sst", "k", "1");
  killed_->SetDiversion(Diversion::never);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(killed_->Put({}, "k", std::to_string(i)).ok());
  ASSERT_TRUE(killed_->IngestExternalFile({file}, {}).ok());
  killed_->SetDiversion(Diversion::always);
  ASSERT_TRUE(killed_->Put({}, "diverted", "1").ok());
  rocksdb::CompactRangeOptions always;
  always.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
  ASSERT_TRUE(rocksdb_of(*killed_).CompactRange(always, nullptr, nullptr).ok());
  kill();
  open_families({"default"});
  EXPECT_EQ(get(*killed_, "diverted"), "1");
  EXPECT_EQ(get(*killed_, "k"), "1");
  kill();
}

// With metadata that a program creates itself: RocksDB joins directory and name with a slash.
TEST_F(SpillSequence, AnImportFindsFilesWhoseNamesHaveNoSlash) {
  export_family();
  for (auto& file : metadata_->files) file.name = file.name.substr(file.name.find_first_not_of('/'));
  open_families({"default"});
  rocksdb::ColumnFamilyHandle* imported = nullptr;
  const Status status = killed_->CreateColumnFamilyWithImport({}, "imported", {}, *metadata_, &imported);
  ASSERT_TRUE(status.ok()) << status.ToString();
  ASSERT_TRUE(killed_->DestroyColumnFamilyHandle(imported).ok());
  kill();
}

// Other threads change options and families meanwhile: the family's writes come back before those threads have to wait.
TEST_F(SpillMainOnly, OptionsAreSetWhileAFamilyThatHasSomethingSpilledIsDropped) {
  rocksdb::ColumnFamilyHandle* family = nullptr;
  ASSERT_TRUE(db_->CreateColumnFamily({}, "family", &family).ok());
  db_->SetDiversion(Diversion::always);
  ASSERT_TRUE(db_->Put({}, family, "k", std::string(100'000, 'v')).ok());
  std::future<Status> set;
  {
    const AtStep beside("spill.rollback.sorted", [&] {
      set = std::async(std::launch::async, [&] { return db_->SetOptions({{"write_buffer_size", "300000"}}); });
      EXPECT_EQ(set.wait_for(std::chrono::seconds(10)), std::future_status::ready);
    });
    EXPECT_TRUE(db_->DropColumnFamily(family).ok());
    EXPECT_TRUE(beside.was_reached());
  }
  EXPECT_TRUE(set.get().ok());
  EXPECT_TRUE(db_->DestroyColumnFamilyHandle(family).ok());
}

// It ignores RocksDB's logs, and with them the writes that diverted writes follow.
TEST_F(SpillMainOnly, OpeningWithBestEffortsIsRefusedWhileSomethingIsSpilled) {
  ASSERT_TRUE(put("main", "1").ok());
  db_->SetDiversion(Diversion::always);
  rocksdb::WriteOptions sync;
  sync.sync = true;
  ASSERT_TRUE(db_->Put(sync, "spilled", "1").ok());
  db_.reset();
  rocksdb::Options options;
  options.best_efforts_recovery = true;
  DB* opened = nullptr;
  const Status status = DB::Open(options, SpillOptions(), directory_.path("db"), &opened);
  EXPECT_TRUE(status.IsNotSupported()) << status.ToString();
  EXPECT_NE(status.ToString().find("best_efforts_recovery"), std::string::npos);
  open();
  for (const char* key : {"main", "spilled"}) EXPECT_EQ(get(*db_, key), "1");
  ASSERT_TRUE(db_->Rollback().ok());
  ASSERT_TRUE(db_->Flush({}).ok());
  db_.reset();
  ASSERT_TRUE(DB::Open(options, SpillOptions(), directory_.path("db"), &opened).ok());
  db_.reset(opened);
  for (const char* key : {"main", "spilled"}) EXPECT_EQ(get(*db_, key), "1");
}

// With atomic_flush RocksDB flushes all families together, because writes that are in no log must be consistent.
TEST_F(SpillMainOnly, CopiesAreConsistentOverAllFamiliesWithAtomicFlush) {
  db_.reset();
  rocksdb::DBOptions options;
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  options.atomic_flush = true;
  const std::vector<rocksdb::ColumnFamilyDescriptor> families{{"default", {}}, {"other", {}}};
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  DB* opened = nullptr;
  ASSERT_TRUE(DB::Open(options, SpillOptions(), directory_.path("atomic"), families, &handles, &opened).ok());
  db_.reset(opened);
  std::atomic<bool> is_over{false};
  std::thread writer([&] {
    rocksdb::WriteOptions unlogged;
    unlogged.disableWAL = true;
    for (int i = 0; !is_over && i < 10'000'000; ++i) {
      rocksdb::WriteBatch batch;
      for (auto* handle : handles) EXPECT_TRUE(batch.Put(handle, "n", std::to_string(i)).ok());
      EXPECT_TRUE(db_->Write(unlogged, &batch).ok());
    }
  });
  for (const auto& [name, copy] : copies()) {
    for (int round = 0; round < 4; ++round) {
      SCOPED_TRACE(name);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      const std::string to = directory_.path(name + std::to_string(round));
      if (name == "backup") continue;  // it flushes if requested
      EXPECT_TRUE(copy(*db_, to).ok());
      std::vector<rocksdb::ColumnFamilyHandle*> of_copy;
      rocksdb::DB* copied = nullptr;
      ASSERT_TRUE(rocksdb::DB::Open({}, to, families, &of_copy, spill::DbOut(&copied)).ok());
      const std::unique_ptr<rocksdb::DB> plain(copied);
      std::array<std::string, 2> values;
      for (std::size_t i = 0; i < 2; ++i) {
        (void)plain->Get({}, of_copy[i], "n", &values[i]);
        EXPECT_TRUE(plain->DestroyColumnFamilyHandle(of_copy[i]).ok());
      }
      EXPECT_EQ(values[0], values[1]);
    }
  }
  is_over = true;
  writer.join();
  for (auto* handle : handles) EXPECT_TRUE(db_->DestroyColumnFamilyHandle(handle).ok());
}

TEST_F(SpillMainOnly, AFamilyThatIsDroppedPastUsIsNoReasonNotToFlushTheOthers) {
  const std::string file = sorted_file("one.sst", "ingested", "1");
  db_->SetDiversion(Diversion::always);
  ASSERT_TRUE(put("a", "1").ok());
  rocksdb::ColumnFamilyHandle* family = nullptr;
  ASSERT_TRUE(db_->CreateColumnFamily({}, "family", &family).ok());
  ASSERT_TRUE(db_->Rollback().ok());
  db_->SetDiversion(Diversion::never);
  ASSERT_TRUE(db_->Put({}, family, "k", "v").ok());
  ASSERT_TRUE(rocksdb_of(*db_).DropColumnFamily(family).ok());
  rocksdb::IngestExternalFileOptions options;
  options.allow_blocking_flush = false;
  const Status status = db_->IngestExternalFile({file}, options);
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_TRUE(db_->DestroyColumnFamilyHandle(family).ok());
}

TEST_F(SpillMainOnly, CopiesHaveTheFamiliesWhoseHandlesWereDeleted) {
  rocksdb::ColumnFamilyHandle* family = nullptr;
  ASSERT_TRUE(db_->CreateColumnFamily({}, "family", &family).ok());
  rocksdb::WriteOptions unlogged;
  unlogged.disableWAL = true;
  ASSERT_TRUE(db_->Put(unlogged, family, "k", "v").ok());
  delete family;  // NOLINT
  ASSERT_TRUE(db_->CreateCheckpoint(directory_.path("copy")).ok());
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* copied = nullptr;
  ASSERT_TRUE(
      rocksdb::DB::Open({}, directory_.path("copy"), {{"default", {}}, {"family", {}}}, &handles, spill::DbOut(&copied))
          .ok());
  const std::unique_ptr<rocksdb::DB> plain(copied);
  std::string value;
  EXPECT_TRUE(plain->Get({}, handles[1], "k", &value).ok());
  EXPECT_EQ(value, "v");
  for (auto* handle : handles) EXPECT_TRUE(plain->DestroyColumnFamilyHandle(handle).ok());
}

TEST_F(SpillMainOnly, ListsThatFlushHaveNoLogsOfWhatIsInTables) {
  ASSERT_TRUE(put("k", std::string(1 << 20, 'v')).ok());
  ASSERT_TRUE(db_->DisableFileDeletions().ok());
  const auto log_bytes = [&](std::uint64_t flushes_from) {
    std::vector<rocksdb::LiveFileStorageInfo> files;
    rocksdb::LiveFilesStorageInfoOptions options;
    options.wal_size_for_flush = flushes_from;
    EXPECT_TRUE(db_->GetLiveFilesStorageInfo(options, &files).ok());
    std::uint64_t bytes = 0;
    for (const auto& file : files) bytes += file.file_type == rocksdb::kWalFile ? file.size : 0;
    return bytes;
  };
  ASSERT_TRUE(put("small", "v").ok());
  EXPECT_GT(log_bytes(std::numeric_limits<std::uint64_t>::max()), 0U);
  EXPECT_GT(log_bytes(std::uint64_t{1} << 30), 0U);
  EXPECT_EQ(log_bytes(0), 0U);
  ASSERT_TRUE(put("small", "v").ok());
  EXPECT_EQ(log_bytes(1), 0U);
  ASSERT_TRUE(spill::enable_file_deletions(*db_, /*force=*/false).ok());
}

// A pause that begins while the list is made waits for it, so the list is complete.
TEST_F(SpillMainOnly, AListIsCompleteThoughAPauseBeginsMeanwhile) {
  for (const bool flushes : {false, true}) {
    SCOPED_TRACE(flushes);
    std::future<Status> paused;
    std::future<Status> late;
    db_->SetDiversion(Diversion::always);
    ASSERT_TRUE(put("a", "1").ok());
    std::vector<std::string> files;
    std::uint64_t manifest_bytes = 0;
    std::atomic<int> put_back = 0;
    std::atomic<bool> begins_late = false;
    std::atomic<bool> is_late = false;
    {
      const AtSteps then([&](std::string_view step) {
        if (step == "spill.rollback.published" && !begins_late.exchange(true)) {  // diverted after the first rollback
          late = std::async(std::launch::async, [&] { return put("late", "1"); });
          for (int i = 0; !is_late && i < 10'000; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
          std::this_thread::sleep_for(std::chrono::milliseconds(100));  // until it waits for the commit queue
        }
        if (step == "spill.write.before_divert") is_late = begins_late.load();
        if (step == "spill.rollback.put_back" && ++put_back == 2) {
          paused = std::async(std::launch::async, [&] { return db_->PauseBackgroundWork(); });
          std::this_thread::sleep_for(std::chrono::milliseconds(100));
        }
      });
      const Status status = db_->GetLiveFiles(files, &manifest_bytes, flushes);
      EXPECT_TRUE(status.ok()) << status.ToString();
    }
    std::uint64_t in_memtables = 1;
    EXPECT_TRUE(db_->GetIntProperty("rocksdb.num-entries-active-mem-table", &in_memtables));
    EXPECT_EQ(in_memtables, 0U);
    EXPECT_TRUE(late.get().ok());
    ASSERT_TRUE(paused.valid());
    EXPECT_TRUE(paused.get().ok());
    EXPECT_TRUE(db_->ContinueBackgroundWork().ok());
  }
}

TEST_F(SpillMainOnly, ACheckpointHasItsLogWhateverTheUsersRecovery) {
  for (const bool best_effort : {true, false}) {
    SCOPED_TRACE(best_effort);
    db_.reset();
    rocksdb::Options options;
    options.create_if_missing = true;
    options.best_efforts_recovery = best_effort;
    options.wal_recovery_mode = rocksdb::WALRecoveryMode::kAbsoluteConsistency;
    DB* opened = nullptr;
    ASSERT_TRUE(DB::Open(options, SpillOptions(), directory_.path(best_effort ? "best" : "all"), &opened).ok());
    db_.reset(opened);
    for (const char* value : {"1", "2", "3"}) ASSERT_TRUE(put("k", value).ok());
    ASSERT_TRUE(put("main", "1").ok());
    db_->SetDiversion(Diversion::always);
    ASSERT_TRUE(put("k", "4").ok());
    const std::string name = best_effort ? "best copy" : "all copy";
    ASSERT_TRUE(db_->CreateCheckpoint(directory_.path(name)).ok());
    const auto copy = open_plain(name);
    EXPECT_EQ(get(*copy, "k"), "4");
    EXPECT_EQ(get(*copy, "main"), "1");
  }
}

// RocksDB's own reads take no snapshot, so files ingested during them need no sequence number.
TEST_F(SpillMainOnly, ReadsThatAreUnderWayHoldNoSnapshotOfRocksdb) {
  ASSERT_TRUE(put("k", "1").ok());
  std::vector<rocksdb::Iterator*> iterators;
  ASSERT_TRUE(db_->NewIterators({}, {db_->DefaultColumnFamily()}, &iterators).ok());
  const std::unique_ptr<rocksdb::Iterator> iterator(iterators[0]);
  rocksdb::IngestExternalFileOptions options;
  options.allow_global_seqno = false;
  const Status status = db_->IngestExternalFile({sorted_file("s.sst", "s", "1")}, options);
  EXPECT_TRUE(status.ok()) << status.ToString();
  iterator->SeekToFirst();
  ASSERT_TRUE(iterator->Valid());
  iterator->Next();
  EXPECT_FALSE(iterator->Valid()) << "it is of a moment before";
}

// RocksDB's memtables would be empty.
TEST_F(SpillMainOnly, WhatWasDivertedAndFlushedIsNoReasonToRefuseAnIngestion) {
  db_->SetDiversion(Diversion::always);
  ASSERT_TRUE(put("k", "1").ok());
  ASSERT_TRUE(db_->Flush({}).ok());
  rocksdb::IngestExternalFileOptions options;
  options.allow_blocking_flush = false;
  const Status status = db_->IngestExternalFile({sorted_file("s.sst", "k", "2")}, options);
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(get(*db_, "k"), "2");
}

// A holder of RocksDB itself sees everything, including a write that was about to be diverted.
TEST_F(SpillMainOnly, NothingIsDivertedAfterRocksdbWasHandedOut) {
  rocksdb::DB* root = nullptr;
  {
    const AtStep decided("spill.write.before_divert", [&] { root = db_->GetRootDB(); });
    db_->SetDiversion(Diversion::always);
    ASSERT_TRUE(put("k", "1").ok());
    ASSERT_TRUE(decided.was_reached());
  }
  EXPECT_EQ(get(*root, "k"), "1");
  EXPECT_EQ(db_->GetSpillStatistics().live_entries, 0U);
}

}  // namespace
}  // namespace spillway::clients
