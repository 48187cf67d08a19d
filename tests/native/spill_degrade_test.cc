// If the spill store or a rollback fails, RocksDB remains: writes wait for it as without a spill store, no write waits
// for ever, and the failure is reported.
#include "spill_degrade.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "needs.h"
#include "spill/compat/rocksdb_version.h"
#include "spill_rocksdb_of.h"
#include "spillway/db.h"

namespace spillway::faults {
namespace {

using clients::rocksdb_of;
using rocksdb::IOStatus;
using rocksdb::Status;

TEST_F(SpillDegrade, AFullDriveIsAnErrorAndNotAnEndlessWait) {
  open(RollbackPolicy::off);
  db_->SetDiversion(Diversion::always);
  const std::string value(20'000, 'v');
  ASSERT_TRUE(db_->Put({}, "a", value).ok());
  system_->set_fault_rule([](const FileOperation& operation) {
    return operation.action == Action::write ? FileFault{.status = IOStatus::NoSpace("the drive is full (injected)")}
                                             : FileFault();
  });
  for (int i = 0; i < 3; ++i) {
    const Status diverted = ends([&] { return db_->Put({}, "a", "2"); });  // its key is in the store
    EXPECT_TRUE(diverted.IsIOError()) << diverted.ToString();
  }
  EXPECT_EQ(get("a"), value);
  system_->set_fault_rule({});
  const Status status = db_->Rollback();
  EXPECT_TRUE(status.ok()) << status.ToString() << ": it needs no reopening";
  EXPECT_EQ(get("a"), value);
  EXPECT_TRUE(db_->Put({}, "a", "3").ok());
  EXPECT_EQ(get("a"), "3");
}

// Not only the write that filled the drive, but every later one that needs the same log.
TEST_F(SpillDegrade, AFullDriveIsTheReasonOfEachWriteThatItsLogRefuses) {
  open(RollbackPolicy::off);
  ASSERT_TRUE(db_->Put({}, "main", "1").ok());
  db_->SetDiversion(Diversion::never);
  system_->set_fault_rule([](const FileOperation& operation) {
    return operation.action == Action::write ? FileFault{.status = IOStatus::NoSpace("the drive is full (injected)")}
                                             : FileFault();
  });
  for (int i = 0; i < 3; ++i) {
    const Status failed = ends([&] { return db_->Put({}, "new", "1"); });
    EXPECT_TRUE(failed.IsNoSpace()) << i << ": " << failed.ToString();
  }
  system_->set_fault_rule({});
}

// Also if RocksDB's log has failed meanwhile, by a write or by a put of the rollback. With nothing to flush, RocksDB
// begins no new log.
TEST_F(SpillDegrade, WhatWasDivertedComesBackAfterRocksdbsLogHasFailed) {
  SPILLWAY_LONG_TEST();
  for (const bool by_a_write : {false, true}) {
    for (const bool has_memtable : {false, true}) {
      SCOPED_TRACE(testing::Message() << by_a_write << has_memtable);
      open(RollbackPolicy::off, 64 << 20, SpillOptions().put_back_bytes);
      if (has_memtable) {
        ASSERT_TRUE(db_->Put({}, "main", "1").ok());
      }
      db_->SetDiversion(Diversion::always);
      ASSERT_TRUE(db_->Put({}, "a", "1").ok());
      ASSERT_TRUE(db_->Put({}, "b", "1").ok());
      system_->set_fault_rule([](const FileOperation& operation) {
        return operation.action == Action::write
                   ? FileFault{.status = IOStatus::NoSpace("the drive is full (injected)")}
                   : FileFault();
      });
      const Status failed = by_a_write ? ends([&] { return db_->Put({}, "new", "1"); }) : db_->Rollback();
      EXPECT_TRUE(failed.IsIOError()) << failed.ToString();
      system_->set_fault_rule({});
      const Status status = db_->Rollback();
      EXPECT_TRUE(status.ok()) << status.ToString() << ": it needs no reopening";
      EXPECT_EQ(db_->GetSpillStatistics().live_entries, 0U);
      for (int opening = 0; opening < 2; ++opening) {
        for (const char* key : {"a", "b"}) EXPECT_EQ(get(key), "1");
        EXPECT_EQ(get("main"), has_memtable ? "1" : "-");
        db_->SetDiversion(Diversion::always);
        EXPECT_TRUE(db_->Put({}, "a", "2").ok());
        EXPECT_TRUE(db_->Rollback().ok());
        // RocksDB does not wait for the flush after an error.
        system_->set_fault_rule([](const FileOperation& operation) {
          return operation.name.ends_with(".sst") ? FileFault{.delay = std::chrono::milliseconds(200)} : FileFault();
        });
        std::vector<std::string> files;
        std::uint64_t manifest_bytes = 0;
        EXPECT_TRUE(db_->GetLiveFiles(files, &manifest_bytes).ok());
        for (const char* property : {"rocksdb.num-entries-active-mem-table", "rocksdb.num-immutable-mem-table"}) {
          std::uint64_t in_memtables = 1;
          EXPECT_TRUE(db_->GetIntProperty(property, &in_memtables));
          EXPECT_EQ(in_memtables, 0U) << property;
        }
        system_->set_fault_rule({});
        const Status ingested = db_->IngestExternalFile({sorted_file()}, {});
        EXPECT_EQ(ingested.IsAborted(), opening == 0) << ingested.ToString();
        EXPECT_EQ(ingested.ok(), opening == 1) << ingested.ToString();
        if (opening == 0) open(RollbackPolicy::off);
        EXPECT_EQ(get("a"), "2");
        EXPECT_TRUE(db_->Put({}, "a", "1").ok());
      }
      db_.reset();
      std::filesystem::remove_all(scratch_.path("root"));
    }
  }
}

// If RocksDB has stopped writes and then fails for good, writes return that error, and so do writes that wait for a
// rollback.
TEST_F(SpillDegrade, AnErrorThatStopsRocksdbEndsEveryWait) {
  SPILLWAY_LONG_TEST();
  open(RollbackPolicy::off, 64 << 10);
  // A flush that has begun fails when the drive is full, and not before.
  const auto is_full = std::make_shared<std::atomic<bool>>(false);  // the file system outlives this function
  const auto is_table = [](const FileOperation& operation) { return operation.name.ends_with(".sst"); };
  system_->set_fault_rule([=](const FileOperation& operation) {
    while (is_table(operation) && !*is_full) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return operation.action == Action::write && *is_full
               ? FileFault{.status = IOStatus::NoSpace("the drive is full (injected)")}
               : FileFault();
  });
  const std::string value(10'000, 'v');
  int written = 0;
  for (; db_->GetSpillStatistics().diverted_writes == 0 && written < 100; ++written) {
    ASSERT_TRUE(db_->Put({}, "key " + std::to_string(written), value).ok());
  }
  ASSERT_GT(db_->GetSpillStatistics().diverted_writes, 0U);
  const std::string newest = "key " + std::to_string(written - 1);
  *is_full = true;
  const Status put = ends([&] { return db_->Put({}, newest, "2"); });
  EXPECT_TRUE(put.IsIOError()) << put.ToString();
  const Status rolled_back = ends([&] { return db_->Rollback(); });
  EXPECT_TRUE(rolled_back.IsIOError()) << rolled_back.ToString();
  system_->set_fault_rule({});
  const Status status = ends([&] { return db_->Rollback(); });
  EXPECT_TRUE(status.ok()) << status.ToString() << ": it needs no reopening";
  for (int i = 0; i < written; ++i) EXPECT_EQ(get("key " + std::to_string(i)), value);
  EXPECT_TRUE(db_->Put({}, newest, "3").ok());
  EXPECT_EQ(get(newest), "3");
}

// Also if the spill store is full but has room for notes.
TEST_F(SpillDegrade, AnErrorThatStopsRocksdbEndsTheWaitForRoom) {
  open(RollbackPolicy::off, 64 << 10);
  const auto fails = std::make_shared<std::atomic<bool>>(false);  // the file system outlives this function
  system_->set_fault_rule([fails](const FileOperation& operation) {
    if (!operation.name.ends_with(".sst")) return FileFault();
    while (!*fails) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return operation.action == Action::write ? FileFault{.status = IOStatus::NoSpace("no (injected)")} : FileFault();
  });
  const std::string value(10'000, 'v');
  rocksdb::WriteOptions at_once;
  at_once.no_slowdown = true;
  Status status;
  std::string newest;
  for (int i = 0; status.ok() && i < 2000; ++i) {
    const std::string key = "key " + std::to_string(i);
    status = db_->Put(at_once, key, value);
    if (status.ok()) newest = key;
  }
  EXPECT_TRUE(status.IsIncomplete()) << status.ToString();
  status = {};
  for (int i = 0; status.ok() && i < 2000; ++i) status = db_->Put(at_once, newest, value);  // uses up the reserve
  EXPECT_TRUE(status.IsIncomplete()) << status.ToString();
  *fails = true;
  const Status put = ends([&] { return db_->Put({}, newest, value); });
  EXPECT_TRUE(put.IsIOError()) << put.ToString();
  system_->set_fault_rule({});
}

// Failed compactions do not stop RocksDB, but a stop of writes lasts until one succeeds.
TEST_F(SpillDegrade, FailingCompactionsAreNotWaitedForForEver) {
  open(RollbackPolicy::off);
  const std::unordered_map<std::string, std::string> few_files{{"level0_file_num_compaction_trigger", "2"},
                                                               {"level0_slowdown_writes_trigger", "3"},
                                                               {"level0_stop_writes_trigger", "3"}};
  ASSERT_TRUE(db_->SetOptions(few_files).ok());
  system_->set_fault_rule([](const FileOperation& operation) {
    std::array<char, 16> thread{};
    pthread_getname_np(pthread_self(), thread.data(), thread.size());
    const bool is_compaction = std::string_view(thread.data()).starts_with("rocksdb:low");
    return is_compaction && operation.action == Action::write ? FileFault{.status = IOStatus::NoSpace("no (injected)")}
                                                              : FileFault();
  });
  db_->SetDiversion(Diversion::always);
  ASSERT_TRUE(db_->Put({}, "spilled", "1").ok());
  db_->SetDiversion(Diversion::never);
  rocksdb::FlushOptions at_once;
  at_once.allow_write_stall = true;
  for (const char* value : {"1", "2", "3"}) {
    for (const char* key : {"a", "main"}) {  // overlapping files, so that none is only moved
      ASSERT_TRUE(db_->Put({}, key, value).ok());
    }
    const Status flushed = rocksdb_of(*db_).Flush(at_once);
    ASSERT_TRUE(flushed.ok()) << flushed.ToString();
  }
  std::uint64_t is_stopped = 0;
  EXPECT_TRUE(comes_true([&] {
    db_->GetIntProperty("rocksdb.is-write-stopped", &is_stopped);
    std::uint64_t errors = 0;
    db_->GetIntProperty("rocksdb.background-errors", &errors);
    return is_stopped == 1 && errors > 0;
  }));
#if !SPILLWAY_ROCKSDB_AT_LEAST(8, 8)  // from then on RocksDB's writes wait for as long as it tries to recover
  const Status of_rocksdb = ends([&] { return rocksdb_of(*db_).Put({}, "main", "4"); });
  EXPECT_FALSE(of_rocksdb.ok());
  const Status put = ends([&] { return db_->Put({}, "main", "4"); });
  EXPECT_EQ(put.code(), of_rocksdb.code()) << put.ToString();
#endif
  const Status rolled_back = ends([&] { return db_->Rollback(); });
  EXPECT_TRUE(rolled_back.ok()) << "they come back through the log: " << rolled_back.ToString();
  db_->SetDiversion(Diversion::automatic);
  EXPECT_TRUE(db_->Put({}, "main", "5").ok()) << "it is diverted";
  system_->set_fault_rule({});
  const Status status = ends([&] { return db_->Rollback(); });
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(get("main"), "5");
  EXPECT_EQ(get("spilled"), "1");
}

// What cannot be ingested any more after an error waits until RocksDB takes it through its log, and is retried with a
// pause.
TEST_F(SpillDegrade, ARollbackWithoutRoomInRocksdbIsRetriedAtIntervals) {
  open(RollbackPolicy::off, 64 << 10, /*put_back_bytes=*/1 << 20);
  Status passed = Status::IOError("is over");
  for (const auto& one : rocksdb_of(*db_).GetDBOptions().listeners) {
    one->OnBackgroundError(rocksdb::BackgroundErrorReason::kFlush, &passed);
  }
  const auto is_free = std::make_shared<std::atomic<bool>>(false);  // the file system outlives this function
  system_->set_fault_rule([is_free](const FileOperation& operation) {
    while (operation.name.ends_with(".sst") && !*is_free) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return FileFault();
  });
  const std::string value(10'000, 'v');
  for (int i = 0; db_->GetSpillStatistics().diverted_writes == 0 && i < 100; ++i) {
    ASSERT_TRUE(db_->Put({}, "key " + std::to_string(i), value).ok());
  }
  ASSERT_GT(db_->GetSpillStatistics().diverted_writes, 0U);
  auto rolled_back = std::async(std::launch::async, [&] { return db_->Rollback(); });
  std::this_thread::sleep_for(std::chrono::seconds(1));
  EXPECT_LT(heard_->of(Kind::rollback_begin).size(), 100U);
  *is_free = true;
  EXPECT_TRUE(rolled_back.get().ok());
  EXPECT_EQ(db_->GetSpillStatistics().live_entries, 0U);
}

TEST_F(SpillDegrade, AFailedStoreLeavesWritesToRocksdbUntilItIsMended) {
  open(RollbackPolicy::off);
  db_->SetDiversion(Diversion::always);
  ASSERT_TRUE(db_->Put({}, "a", "1").ok());
  system_->set_fault_rule([](const FileOperation& operation) {
    return operation.action == Action::write && is_spill_log(operation)
               ? FileFault{.status = IOStatus::IOError("no (injected)")}
               : FileFault();
  });
  (void)ends([&] { return db_->Put({}, "first", "1"); });  // the store fails with it
  EXPECT_EQ(heard_->of(Kind::store_failed).size(), 1U);
  const auto before = db_->GetSpillStatistics();
  for (int i = 0; i < 20; ++i) {
    const Status status = ends([&] { return db_->Put({}, "k" + std::to_string(i), "1"); });
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
  EXPECT_EQ(db_->GetSpillStatistics().main_writes, before.main_writes + 20);
  EXPECT_EQ(heard_->of(Kind::store_failed).size(), 1U);
  EXPECT_TRUE(ends([&] { return db_->Put({}, "a", "2"); }).IsIOError());
  EXPECT_EQ(get("a"), "1");
  system_->set_fault_rule({});
  // A rollback repairs the store. One in progress may still fail.
  EXPECT_TRUE(comes_true([&] { return ends([&] { return db_->Put({}, "a", "3"); }).ok(); }))
      << heard_->of(Kind::rollback_failed).back().message;
  EXPECT_EQ(get("a"), "3");
  const auto mended = db_->GetSpillStatistics();
  ASSERT_TRUE(db_->Put({}, "diverted again", "1").ok());
  EXPECT_EQ(db_->GetSpillStatistics().diverted_writes, mended.diverted_writes + 1);
}

// The stall is RocksDB's then: a write that may not wait returns that, and one that may wait retries with a pause.
TEST_F(SpillDegrade, AStallWhileTheStoreHasFailedIsWaitedForAsWithoutOne) {
  open(RollbackPolicy::off, /*memtable_bytes=*/256 << 10);
  db_->SetDiversion(Diversion::always);
  ASSERT_TRUE(db_->Put({}, "a", "1").ok());
  system_->set_fault_rule(
      [](const FileOperation& operation) {  // nor can it be brought back, which would repair the store
        const bool is_hit = (operation.action == Action::write && is_spill_log(operation)) ||
                            (operation.action == Action::create && is_sorted_file(operation));
        return is_hit ? FileFault{.status = IOStatus::IOError("no (injected)")} : FileFault();
      });
  (void)ends([&] { return db_->Put({}, "first", "1"); });  // the store fails with it
  ASSERT_EQ(heard_->of(Kind::store_failed).size(), 1U);
  for (const Diversion diversion : {Diversion::automatic, Diversion::always}) {
    db_->SetDiversion(diversion);
    ASSERT_TRUE(rocksdb_of(*db_).PauseBackgroundWork().ok());  // no memtable is flushed
    const std::string value(20'000, 'v');
    rocksdb::WriteOptions at_once;
    at_once.no_slowdown = true;
    auto refused = std::async(std::launch::async, [&] {
      Status status;
      for (int i = 0; i < 1'000 && status.ok(); ++i) status = db_->Put(at_once, "k" + std::to_string(i), value);
      return status;
    });
    const bool is_told = refused.wait_for(std::chrono::seconds(10)) == std::future_status::ready;
    EXPECT_TRUE(is_told) << "a write without slowdown waits for RocksDB";
    const auto began = Clock::now();
    const auto before = db_->GetSpillStatistics();
    auto waiting = std::async(std::launch::async, [&] { return db_->Put({}, "waits", value); });
    EXPECT_EQ(waiting.wait_for(std::chrono::milliseconds(500)), std::future_status::timeout);
    const auto tries = db_->GetSpillStatistics().last_resort - before.last_resort;
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began).count();
    EXPECT_GT(tries, 0U);
    EXPECT_LE(tries, static_cast<std::uint64_t>(ms) + 20) << "in " << ms << " ms";
    ASSERT_TRUE(rocksdb_of(*db_).ContinueBackgroundWork().ok());
    const Status told = refused.get();
    if (is_told) {
      EXPECT_TRUE(told.IsIncomplete()) << told.ToString();
    }
    const Status waited = waiting.get();
    EXPECT_TRUE(waited.ok()) << waited.ToString();
    EXPECT_EQ(get("waits"), value);
  }
}

TEST_F(SpillDegrade, EveryEventIsALineInRocksdbsLog) {
  open(RollbackPolicy::off);
  db_->SetDiversion(Diversion::always);
  ASSERT_TRUE(db_->Put({}, "a", std::string(100'000, 'v')).ok());
  ASSERT_TRUE(db_->Rollback().ok());
  db_.reset();  // RocksDB writes the end of its log before
  std::string log;
  ASSERT_TRUE(rocksdb::ReadFileToString(rocksdb::Env::Default(), scratch_.path("root") + "/db/LOG", &log).ok());
  for (const char* event : {"generation_sealed", "rollback_begin", "rollback_end"}) {
    EXPECT_NE(log.find(std::string("spillway: ") + event), std::string::npos) << event;
  }
}

}  // namespace
}  // namespace spillway::faults
