// spillway::DB on a drive that fails: the caller gets the error, what was acknowledged is there, and the database
// continues or says that it must be opened again.
#include "spill_faults.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "at_each_step.h"
#include "faults/file_system.h"
#include "needs.h"
#include "spill/compat/db_out.h"
#include "spill_rocksdb_of.h"
#include "spillway/db.h"

namespace spillway::faults {
namespace {

using clients::rocksdb_of;
using rocksdb::IOStatus;
using rocksdb::Status;

// Like a file system that finds its drive full during write-back: one error, from which RocksDB recovers.
TEST_F(FaultsSpillway, RocksdbRecoversFromOneFailedSyncOfItsLog) {
  open();
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const std::string round = std::to_string(seed);
    db_->SetDiversion(Diversion::never);
    ASSERT_TRUE(put("a", round).ok());
    const auto of_log = [](const FileOperation& operation) {
      return operation.action == Action::sync && operation.name.ends_with(".log");
    };
    system_->set_fault_rule(fail_nth(of_log, 1, IOStatus::NoSpace("injected")));
    db_->SetDiversion(Diversion::always);
    EXPECT_FALSE(put("b", round, true).ok());  // it would be durable without "a"
    db_->SetDiversion(Diversion::never);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    const auto is_taken = [&](bool sync) {
      while (!put("c", round, sync).ok()) {
        if (std::chrono::steady_clock::now() > until) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
      return true;
    };
    EXPECT_TRUE(is_taken(false));
    db_->SetDiversion(Diversion::always);
    EXPECT_TRUE(is_taken(true));
    lose_power(seed);
    EXPECT_EQ(get("a"), round) << "seed " << seed;
    EXPECT_EQ(get("c"), round) << "seed " << seed;
    ASSERT_TRUE(db_->Rollback().ok());
  }
}

TEST_F(FaultsSpillway, AFailedAppendIsReportedAndNothingAcknowledgedIsLost) {
  open();
  db_->SetDiversion(Diversion::always);
  ASSERT_TRUE(put("a", "1").ok());
  system_->set_fault_rule([](const FileOperation& operation) {
    return operation.action == Action::write && of_spill(operation)
               ? FileFault{.status = IOStatus::IOError("no (injected)"), .written_first = 7}
               : FileFault();
  });
  EXPECT_FALSE(put("a", "2").ok());  // its key is in the spill store: it can go nowhere else
  EXPECT_EQ(get("a"), "1");
  system_->set_fault_rule({});
  expect_acknowledged();
  ASSERT_TRUE(db_->Rollback().ok());
  EXPECT_TRUE(put("a", "3").ok());
  open();
  expect_acknowledged();
}

// A sync during the rollback that repairs the store must not take it for one that failed again.
TEST_F(FaultsSpillway, AFailedStoreIsRepairedDuringConcurrentSyncs) {
  SPILLWAY_LONG_TEST();
  spill_.put_back_bytes = 1 << 20;
  open();
  for (int round = 0; round < 6; ++round) {
    db_->SetDiversion(Diversion::always);
    ASSERT_TRUE(put("a", std::to_string(round)).ok()) << round;
    system_->set_fault_rule([](const FileOperation& operation) {
      return operation.action == Action::write && of_spill(operation)
                 ? FileFault{.status = IOStatus::IOError("no (injected)")}
                 : FileFault();
    });
    EXPECT_TRUE(put("a", "refused").IsIOError());
    system_->set_fault_rule({});
    std::atomic<bool> is_over = false;
    std::vector<std::thread> others;
    for (int i = 0; i < 3; ++i) {
      others.emplace_back([&] {
        while (!is_over) (void)db_->SyncWAL();
      });
    }
    EXPECT_TRUE(db_->Rollback().ok());
    is_over = true;
    for (std::thread& one : others) one.join();
  }
  expect_acknowledged();
}

TEST_F(FaultsSpillway, AWriteGoesToRocksdbIfNoGenerationCanBegin) {
  open();
  db_->SetDiversion(Diversion::always);
  system_->set_fault_rule(
      fail_nth([](const FileOperation& operation) { return operation.action == Action::create && of_spill(operation); },
               1, IOStatus::IOError("no (injected)")));
  EXPECT_TRUE(put("a", "1").ok());  // written to RocksDB
  EXPECT_EQ(db_->GetSpillStatistics().live_entries, 0U);
  EXPECT_TRUE(put("a", "2").ok());
  EXPECT_EQ(db_->GetSpillStatistics().live_entries, 1U);
  open();
  expect_acknowledged();
}

TEST_F(FaultsSpillway, AFailedSyncIsRepairedBeforeTheWriteIsAcknowledged) {
  open();
  db_->SetDiversion(Diversion::always);
  ASSERT_TRUE(put("a", "1", true).ok());
  system_->set_fault_rule(
      fail_nth([](const FileOperation& operation) { return operation.action == Action::sync && of_spill(operation); },
               1, IOStatus::IOError("no (injected)")));
  EXPECT_TRUE(put("b", "2", true).ok());  // after a rollback has brought back the store's contents
  expect_acknowledged();
  lose_power(1);
  expect_acknowledged();
}

TEST_F(FaultsSpillway, AFullDriveAndAFullRegionLoseNothing) {
  spill_.capacity_bytes = 256 << 10;
  open();
  db_->SetDiversion(Diversion::always);
  const std::string value(4000, 'v');
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(put("region" + std::to_string(i), value).ok());  // the rest goes to RocksDB
  EXPECT_GT(db_->GetSpillStatistics().main_writes, 0U);
  expect_acknowledged();
  ASSERT_TRUE(db_->Rollback().ok());

  std::uint64_t used = 0;
  system_->set_fault_rule([&](const FileOperation& operation) {
    used = operation.bytes_after;
    return FileFault();
  });
  ASSERT_TRUE(put("x", value).ok());
  system_->set_fault_rule(full_beyond(used + 10'000));
  int refused = 0;
  for (int i = 0; i < 20; ++i) refused += put("drive" + std::to_string(i), value).ok() ? 0 : 1;
  EXPECT_GT(refused, 0);
  expect_acknowledged();
  system_->set_fault_rule({});
  open();
  expect_acknowledged();
  EXPECT_TRUE(put("after", "1").ok());
}

TEST_F(FaultsSpillway, ReadsOfTheSpillStoreThatFailAreErrorsAndNotMissingKeys) {
  open();
  db_->SetDiversion(Diversion::always);
  ASSERT_TRUE(put("a", std::string(1000, 'v')).ok());
  system_->set_fault_rule([](const FileOperation& operation) {
    return operation.action == Action::read ? FileFault{.status = IOStatus::IOError("no (injected)")} : FileFault();
  });
  std::string value;
  EXPECT_TRUE(db_->Get({}, "a", &value).IsIOError());
  const std::unique_ptr<rocksdb::Iterator> iterator(db_->NewIterator({}));
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) (void)iterator->value();
  EXPECT_FALSE(iterator->status().ok());
  EXPECT_FALSE(db_->Rollback().ok());
  system_->set_fault_rule({});
  expect_acknowledged();
  EXPECT_TRUE(db_->Rollback().ok());
  expect_acknowledged();
}

// If RocksDB 7.8.3 cannot read a file's first key, it takes the file for one without keys and reports no error. Such a
// file must not be ingested: scans and compactions would find its keys in unexpected places.
TEST_F(FaultsSpillway, AReadThatFailsWhileRocksdbIngestsLosesNothing) {
  open();
  for (std::uint64_t n = 1; n <= 20; ++n) {
    SCOPED_TRACE(n);
    db_->SetDiversion(Diversion::always);
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(put(std::to_string(i), std::to_string(n)).ok());
    system_->set_fault_rule(fail_nth(
        [](const FileOperation& operation) {
          return operation.action == Action::read && operation.name.find("/spill/") != std::string::npos;
        },
        n, IOStatus::IOError("no (injected)")));
    db_->Rollback().PermitUncheckedError();
    system_->set_fault_rule({});
    expect_acknowledged();
    ASSERT_TRUE(db_->Rollback().ok());
    expect_acknowledged();
    std::vector<rocksdb::LiveFileMetaData> live;
    db_->GetLiveFilesMetaData(&live);
    for (const auto& file : live) EXPECT_FALSE(file.smallestkey.empty()) << file.name;
    db_->SetDiversion(Diversion::never);
    for (int i = 5; i < 10; ++i) ASSERT_TRUE(put(std::to_string(i), std::to_string(n) + "again").ok());
    const Status compacted = db_->CompactRange({}, nullptr, nullptr);
    EXPECT_TRUE(compacted.ok()) << compacted.ToString();
    expect_acknowledged();
  }
}

// Every kind of operation fails at a low rate, during diversion and rollbacks. Only in the spill store's directory:
// RocksDB 7.8.3 as built by Debian aborts if its log is used after a failure.
TEST_F(FaultsSpillway, ErrorsAtRandomLoseNothingThatWasAcknowledged) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    open();
    system_->set_fault_rule(
        fail_share([](const FileOperation& operation) { return operation.name.find("/spill") != std::string::npos; },
                   0.03, seed, IOStatus::IOError("no (injected)")));
    std::map<std::string, std::set<std::string>> possible;  // the outcome of a failed write is unknown
    for (int i = 0; i < 300; ++i) {
      db_->SetDiversion((i / 20) % 2 == 0 ? Diversion::always : Diversion::never);
      const std::string key = std::to_string(i % 40);
      const std::string value = std::to_string(seed) + "." + std::to_string(i);
      if (put(key, value, i % 5 == 0).ok()) {
        possible[key].clear();
      } else {
        possible[key].insert(value);
      }
      if (i % 50 == 49) db_->Rollback().PermitUncheckedError();
    }
    system_->set_fault_rule({});
    open();
    for (auto& [key, value] : acknowledged_) {
      const std::string found = get(key);
      EXPECT_TRUE(found == value || possible[key].contains(found)) << key << " is " << found << ", not " << value;
      value = found;
    }
  }
}

TEST_F(FaultsSpillway, AWriteWaitsForTheRoomThatARollbackIsAboutToMake) {
  spill_.capacity_bytes = 256 << 10;
  spill_.generation_bytes = 64 << 10;
  open();
  db_->SetDiversion(Diversion::always);
  std::jthread writer;
  const AtStep during("spill.rollback.sorted", [&] {
    EXPECT_TRUE(comes_true([this] { return db_->GetSpillStatistics().main_writes == 1; })) << "found it full";
    writer = std::jthread([&] { EXPECT_TRUE(db_->Put({}, "late", std::string(8000, 'l')).ok()); });
    EXPECT_TRUE(comes_true([this] { return db_->GetSpillStatistics().waits > 0; }));
  });
  const std::string value(4000, 'v');
  for (int i = 0; db_->GetSpillStatistics().main_writes == 0; ++i) {
    ASSERT_LT(i, 200);
    ASSERT_TRUE(put("key" + std::to_string(i), value).ok());
  }
  ASSERT_TRUE(comes_true([&] { return during.was_reached(); }));
  ASSERT_TRUE(comes_true([this] { return db_->GetSpillStatistics().rollbacks_by_ingest > 0; }));
  writer.join();
  EXPECT_EQ(db_->GetSpillStatistics().main_writes, 1U);
  EXPECT_EQ(get("late"), std::string(8000, 'l'));
  expect_acknowledged();
}

// RocksDB recovers by itself from a full drive. If its memtable is empty it has nothing to flush then, and RocksDB 7.8
// continues with a file that accepts no more appends. RocksDB 9.10 begins a new one.
TEST_F(FaultsSpillway, ALogThatFailedIsNotWrittenToAgain) {
  open();
  db_->SetDiversion(Diversion::never);
  ASSERT_TRUE(put("a", "1").ok());
  ASSERT_TRUE(rocksdb_of(*db_).Flush({}).ok());
  const auto of_log = [](const FileOperation& operation) {
    return operation.action == Action::write && operation.name.ends_with(".log");
  };
  system_->set_fault_rule(fail_nth(of_log, 1, IOStatus::NoSpace("no (injected)")));
  EXPECT_TRUE(put("b", "2").IsIOError());
  bool has_new_log = false;
  for (int i = 0; i < 50; ++i) {
    const rocksdb::Status status = put("c", "3");
    EXPECT_TRUE(status.ok() || (status.IsIOError() && !has_new_log)) << status.ToString();
    has_new_log = status.ok();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_EQ(has_new_log, SPILLWAY_ROCKSDB_AT_LEAST(9, 0));
  const rocksdb::Status synced = db_->FlushWAL(true);
  EXPECT_TRUE(has_new_log ? synced.ok() : synced.IsIOError()) << synced.ToString();
  open();
  expect_acknowledged();
  EXPECT_TRUE(put("c", "4").ok());
}

// A failed opening can be repeated: the contents are there, and still bound to the database.
TEST_F(FaultsSpillway, AnOpeningThatFailsAnywhereLosesNothing) {
  open();
  db_->SetDiversion(Diversion::always);
  ASSERT_TRUE(put("a", "1", true).ok());
  ASSERT_TRUE(put("b", "1").ok());
  db_.reset();
  const auto of_store = [](const FileOperation& operation) {
    return of_spill(operation) || operation.name.find("DURABLE") != std::string::npos;
  };
  int failed = 0;
  for (const Action action : {Action::sync, Action::write, Action::read, Action::create, Action::rename}) {
    for (int nth = 1; nth <= 12; ++nth) {
      SCOPED_TRACE(std::to_string(static_cast<int>(action)) + ", " + std::to_string(nth));
      auto system = FaultyFileSystem::open(root_);
      ASSERT_TRUE(system) << system.status().message();
      (*system)->set_fault_rule(
          fail_nth([&](const FileOperation& operation) { return operation.action == action && of_store(operation); },
                   nth, IOStatus::IOError("injected")));
      const std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(*system);
      rocksdb::Options options;
      options.env = env.get();
      DB* opened = nullptr;
      const Status status = DB::Open(options, spill_, root_ + "/db", &opened);
      delete opened;
      failed += status.ok() ? 0 : 1;
      open();
      ASSERT_NE(db_, nullptr) << "after " << status.ToString();
      expect_acknowledged();
      db_.reset();
    }
  }
  EXPECT_GT(failed, 3);
}

// A list of files for a backup is made without the guard, which is created again afterwards.
TEST_F(FaultsSpillway, PlainRocksdbIsRefusedThoughTheGuardCouldNotBeMadeAgain) {
  open();
  system_->set_fault_rule([](const FileOperation& operation) {
    const bool is_binding = operation.action == Action::write && operation.name.find("BINDING") != std::string::npos;
    return is_binding ? FileFault{.status = IOStatus::IOError("injected")} : FileFault();
  });
  std::vector<std::string> files;
  std::uint64_t manifest_bytes = 0;
  EXPECT_TRUE(db_->GetLiveFiles(files, &manifest_bytes, /*flush_memtable=*/true).IsIOError());
  system_->set_fault_rule({});
  db_->SetDiversion(Diversion::always);
  ASSERT_TRUE(put("spilled", "1").ok());
  ASSERT_GT(db_->GetSpillStatistics().live_entries, 0U);
  db_.reset();
  rocksdb::Options options;
  options.env = env_.get();
  rocksdb::DB* plain = nullptr;
  const Status status = rocksdb::DB::Open(options, root_ + "/db", spill::DbOut(&plain));
  delete plain;
  ASSERT_TRUE(status.IsInvalidArgument()) << status.ToString();
  open();
  expect_acknowledged();
}

// A write whose sync failed may be in the store. A later write of its key to RocksDB is newer.
TEST_F(FaultsSpillway, AWriteInDoubtHidesNoneThatWasAcknowledgedLater) {
  for (const Action action : {Action::sync, Action::write}) {
    for (const bool deletes_range : {false, true}) {
      SCOPED_TRACE(std::string(action == Action::sync ? "sync" : "write") + (deletes_range ? ", range" : ""));
      open();
      db_->SetDiversion(Diversion::never);
      ASSERT_TRUE(put("b", "0").ok());
      db_->SetDiversion(Diversion::always);
      ASSERT_TRUE(put("a", "1").ok());
      ASSERT_TRUE(db_->PauseBackgroundWork().ok());  // so that no rollback ends the doubt
      const auto is_hit = [&](const FileOperation& operation) {
        return operation.action == action && of_spill(operation);
      };
      system_->set_fault_rule(fail_nth(is_hit, 1, IOStatus::IOError("injected")));
      rocksdb::WriteOptions at_once;
      at_once.sync = true;
      at_once.no_slowdown = true;
      rocksdb::WriteBatch batch;
      ASSERT_TRUE((deletes_range ? batch.DeleteRange("b", "c") : batch.Put("b", "in doubt")).ok());
      EXPECT_TRUE(db_->Write(at_once, &batch).IsIncomplete());
      system_->set_fault_rule({});
      at_once.sync = false;
      const Status other = db_->Put(at_once, "x", "1");
      EXPECT_TRUE(other.ok()) << "nothing is in doubt about this key: " << other.ToString();
      const Status later = db_->Put(at_once, "b", "later");
      if (later.ok()) acknowledged_["b"] = "later";
      EXPECT_TRUE(later.ok() || later.IsIncomplete()) << later.ToString();
      system_->cut_power();  // like a kill: what was written is there
      open();
      if (later.ok()) {
        EXPECT_EQ(get("b"), "later");
      }
      ASSERT_TRUE(put("b", "at last").ok());
      ASSERT_TRUE(db_->Rollback().ok());
      expect_acknowledged();
      db_.reset();
    }
  }
}

// A flush whose sync of the spill store fails must not wait for anything that may wait for the flush.
TEST_F(FaultsSpillway, AFlushDuringACopyEndsThoughTheStoreFails) {
  open();
  db_->SetDiversion(Diversion::never);
  rocksdb::WriteOptions unlogged;
  unlogged.disableWAL = true;
  ASSERT_TRUE(db_->Put(unlogged, "m", "1").ok());  // so that a copy needs a flush
  db_->SetDiversion(Diversion::always);
  ASSERT_TRUE(put("a", "1").ok());
  std::promise<void> syncs;
  std::promise<void> resume_sync;
  const std::shared_future<void> resumed = resume_sync.get_future().share();
  std::atomic<int> seen{0};
  system_->set_fault_rule([&](const FileOperation& operation) {
    if (operation.action != Action::sync || !of_spill(operation) || seen++ > 0) return FileFault();
    syncs.set_value();
    resumed.wait();
    return FileFault{.status = IOStatus::IOError("injected")};
  });
  auto flushed = std::async(std::launch::async, [&] { return rocksdb_of(*db_).Flush({}); });
  syncs.get_future().wait();
  auto copied = std::async(std::launch::async, [&] { return db_->CreateCheckpoint(root_ + "/copy"); });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // it holds the commit queue
  resume_sync.set_value();
  EXPECT_EQ(flushed.wait_for(std::chrono::seconds(20)), std::future_status::ready) << "they wait for each other";
  EXPECT_EQ(copied.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  system_->set_fault_rule({});
}

// The rollback that repairs the store ends the doubt.
TEST_F(FaultsSpillway, AfterARollbackNothingIsInDoubt) {
  open();
  db_->SetDiversion(Diversion::always);
  ASSERT_TRUE(put("a", "1").ok());
  system_->set_fault_rule(
      fail_nth([](const FileOperation& operation) { return operation.action == Action::sync && of_spill(operation); },
               1, IOStatus::IOError("injected")));
  ASSERT_TRUE(put("b", "1", true).ok());  // after a rollback
  db_->SetDiversion(Diversion::never);
  rocksdb::WriteOptions at_once;
  at_once.no_slowdown = true;
  EXPECT_TRUE(db_->Put(at_once, "b", "2").ok());
  EXPECT_EQ(get("b"), "2");
}

// A store that is full when it is opened has no room for the note of a recovery.
TEST_F(FaultsSpillway, AFullStoreIsOpenedAndBroughtBack) {
  open();
  db_->SetDiversion(Diversion::always);
  for (int i = 0; i < 60; ++i) ASSERT_TRUE(put("k" + std::to_string(i), std::string(8'000, 'v')).ok());
  const std::uint64_t before = spill_.capacity_bytes;
  spill_.capacity_bytes = spill_.generation_bytes;
  for (const bool closes : {false, true}) {
    if (!closes) system_->cut_power();  // like a kill
    open();
    ASSERT_NE(db_, nullptr);
    expect_acknowledged();
  }
  EXPECT_TRUE(db_->Close().ok());
  open();
  EXPECT_TRUE(db_->Rollback().ok());
  expect_acknowledged();
  spill_.capacity_bytes = before;
}

}  // namespace
}  // namespace spillway::faults
