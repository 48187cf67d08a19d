// The holes of T26, one test each, in which the order of events matters: after a loss of power, a kill or a rollback
// both stores together contain a prefix.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "at_each_step.h"
#include "base/file_bytes.h"
#include "spill/compat/db_out.h"
#include "spill_faults.h"
#include "spill_rocksdb_of.h"
#include "spillway/db.h"

namespace spillway::faults {
namespace {

using clients::rocksdb_of;
using rocksdb::IOStatus;

TEST_F(FaultsSpillway, AStaleCopyDoesNotReviveAfterAnOverwriteInRocksdb) {
  open();
  db_->SetDiversion(Diversion::always);
  ASSERT_TRUE(put("k", "old", true).ok());
  ASSERT_TRUE(db_->Rollback().ok());
  db_->SetDiversion(Diversion::never);
  ASSERT_TRUE(put("k", "new", true).ok());
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    lose_power(seed);
    EXPECT_EQ(get("k"), "new");
    ASSERT_TRUE(db_->Rollback().ok());
    EXPECT_EQ(get("k"), "new");
  }
}

TEST_F(FaultsSpillway, WritesThatArriveDuringARollbackSurviveIt) {
  open();
  db_->SetDiversion(Diversion::always);
  ASSERT_TRUE(put("k", "1").ok());
  {
    const AtStep during("spill.rollback.sorted", [this] { EXPECT_TRUE(put("k", "2", true).ok()); });
    ASSERT_TRUE(db_->Rollback().ok());
    EXPECT_TRUE(during.was_reached());
  }
  EXPECT_EQ(get("k"), "2");
  lose_power(3);
  EXPECT_EQ(get("k"), "2");
}

// What it contains, except for RocksDB's memtable, cannot be made durable any more. So nothing after it may be
// acknowledged as durable.
TEST_F(FaultsSpillway, AFailedLogMakesNoSyncWriteDurable) {
  open();
  db_->SetDiversion(Diversion::never);
  ASSERT_TRUE(put("a", "1").ok());
  const auto of_log = [](const FileOperation& operation) {
    return operation.action == Action::write && operation.name.ends_with(".log");
  };
  system_->set_fault_rule(fail_nth(of_log, 1, IOStatus::IOError("no (injected)")));
  EXPECT_TRUE(put("b", "2").IsIOError());
  db_->SetDiversion(Diversion::always);
  EXPECT_TRUE(put("spilled", "1", true).IsIOError());
  EXPECT_TRUE(put("a", "2").ok()) << "what need not be durable";
  lose_power(1);
}

// Neither log is synced for it. RocksDB's log records what its writes follow.
TEST_F(FaultsSpillway, AWriteToRocksdbIsLostWithADivertedOneBeforeIt) {
  open();
  bool lost = false;
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    const std::string round = std::to_string(seed);
    db_->SetDiversion(Diversion::always);
    ASSERT_TRUE(put("spilled", round).ok());
    db_->SetDiversion(Diversion::never);
    ASSERT_TRUE(put("main", round).ok());
    EXPECT_EQ(db_->GetSpillStatistics().ordering_syncs, 0U);
    EXPECT_EQ(db_->GetSpillStatistics().ordering_marks, 1U);
    lose_power(seed);
    EXPECT_TRUE(get("main") != round || get("spilled") == round) << seed;
    lost = lost || get("spilled") != round;
    ASSERT_TRUE(db_->Rollback().ok());
    lose_power(100 + seed);  // what recovery left out stays out
    EXPECT_TRUE(get("main") != round || get("spilled") == round) << seed;
  }
  EXPECT_TRUE(lost) << "nothing was tried";
}

TEST_F(FaultsSpillway, ASyncWriteToRocksdbMakesWhatWasDivertedBeforeItDurable) {
  expect_both_survive([this](const std::string& value) { ASSERT_TRUE(put("main", value, true).ok()); });
}

// Programs use a sync write without operations as a barrier.
TEST_F(FaultsSpillway, AnEmptySyncWriteMakesWhatWasAcknowledgedBeforeItDurable) {
  rocksdb::WriteOptions sync;
  sync.sync = true;
  const std::vector<std::function<void(rocksdb::WriteBatch&)>> empty{
      [](rocksdb::WriteBatch&) {},
      [](rocksdb::WriteBatch& batch) { EXPECT_TRUE(batch.PutLogData("for the log alone").ok()); }};
  for (const auto& fill : empty) {
    for (const Diversion then : {Diversion::never, Diversion::always}) {
      expect_both_survive([&](const std::string& value) {
        ASSERT_TRUE(put("main", value).ok());
        db_->SetDiversion(then);
        rocksdb::WriteBatch batch;
        fill(batch);
        ASSERT_TRUE(db_->Write(sync, &batch).ok());
      });
    }
  }
}

TEST_F(FaultsSpillway, AFlushTakesWhatWasDivertedBeforeItAlong) {
  expect_both_survive([this](const std::string& value) {
    ASSERT_TRUE(put("main", value).ok());
    ASSERT_TRUE(rocksdb_of(*db_).Flush({}).ok());  // as RocksDB does by itself
  });
}

// RocksDB reuses the sequence numbers of writes that were in no log when the process died.
TEST_F(FaultsSpillway, ReusedSequenceNumbersAreNotTakenForDurable) {
  int kept = 0;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    db_.reset();
    root_ = scratch_.path("numbers-" + std::to_string(seed));
    open();
    db_->SetDiversion(Diversion::never);
    rocksdb::WriteOptions unlogged;
    unlogged.disableWAL = true;
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(db_->Put(unlogged, "u" + std::to_string(i), "1").ok());
    db_->SetDiversion(Diversion::always);
    ASSERT_TRUE(put("d1", "1").ok());
    system_->cut_power();  // like a kill
    open();
    ASSERT_EQ(get("d1"), "1");
    db_->SetDiversion(Diversion::never);
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(put("w" + std::to_string(i), std::string(3000, 'w')).ok());
    db_->SetDiversion(Diversion::always);
    ASSERT_TRUE(put("d2", "1").ok());
    ASSERT_TRUE(put("large", std::string(70'000, 'l')).ok());  // the generation is full, and becomes durable
    ASSERT_TRUE(put("d3", "1").ok());
    lose_power(1'000 + seed);
    EXPECT_EQ(get("d1"), "1") << "an opening has found it: seed " << seed;
    if (get("d2") != "1") continue;
    ++kept;
    EXPECT_NE(get("w4"), "-") << "seed " << seed;
  }
  RecordProperty("kept", kept);
}

// RocksDB's log does not record a write that is not in it.
TEST_F(FaultsSpillway, AKilledProcessKeepsWhatWasDivertedAfterAWriteThatIsInNoLog) {
  open();
  db_->SetDiversion(Diversion::never);
  rocksdb::WriteOptions unlogged;
  unlogged.disableWAL = true;
  ASSERT_TRUE(db_->Put(unlogged, "main", "1").ok());
  db_->SetDiversion(Diversion::always);
  ASSERT_TRUE(put("spilled", "1").ok());
  system_->cut_power();  // like a kill: what was written is there
  open();
  EXPECT_EQ(get("spilled"), "1");
}

// Nor the part of a batch after its WAL termination point.
TEST_F(FaultsSpillway, AKilledProcessKeepsWhatWasDivertedAfterABatchThatIsPartlyInTheLog) {
  open();
  db_->SetDiversion(Diversion::never);
  rocksdb::WriteBatch batch;
  ASSERT_TRUE(batch.Put("in the log", "1").ok());
  batch.MarkWalTerminationPoint();
  ASSERT_TRUE(batch.Put("in the memtable alone", "1").ok());
  ASSERT_TRUE(db_->Write({}, &batch).ok());
  db_->SetDiversion(Diversion::always);
  ASSERT_TRUE(put("spilled", "1").ok());
  ASSERT_TRUE(db_->CreateCheckpoint(root_ + "/copy").ok());
  system_->cut_power();  // like a kill: what was written is there
  open();
  EXPECT_EQ(get("spilled"), "1");
  EXPECT_EQ(get("in the log"), "1");
  rocksdb::DB* opened = nullptr;
  ASSERT_TRUE(rocksdb::DB::Open({}, root_ + "/copy", spill::DbOut(&opened)).ok());
  const std::unique_ptr<rocksdb::DB> copied(opened);
  for (const char* key : {"in the log", "in the memtable alone", "spilled"}) {
    std::string value;
    EXPECT_TRUE(copied->Get({}, key, &value).ok()) << key;
  }
}

// After a loss of power a new file may show earlier contents of the drive: frames of an older file.
TEST_F(FaultsSpillway, WhatAnOldGenerationLeftOnTheDriveIsNotTakenForANewOnes) {
  const auto log = [this] {
    std::string path;
    for (const auto& entry : std::filesystem::directory_iterator(root_ + "/db/spill")) {
      if (entry.path().extension() == ".spill") path = entry.path().string();
    }
    return path;
  };
  open();
  std::string old;
  for (int round = 0; round < 2; ++round) {  // the remains of the second begin like the third
    open();
    db_->SetDiversion(Diversion::always);
    for (const char* key : {"k1", "k2", "k3"}) ASSERT_TRUE(put(key, "1", true).ok());
    old = file_bytes(log());
    ASSERT_TRUE(db_->Rollback().ok());
    db_->SetDiversion(Diversion::never);
    for (const char* key : {"k2", "k3"}) ASSERT_TRUE(db_->Delete({}, key).ok());
    ASSERT_TRUE(rocksdb_of(*db_).Flush({}).ok());
    ASSERT_TRUE(db_->Close().ok());
  }
  open();
  db_->SetDiversion(Diversion::always);
  ASSERT_TRUE(put("k1", "2", true).ok());
  system_->cut_power();
  const std::string path = log();
  std::string bytes = file_bytes(path);
  const std::size_t end = bytes.find_last_not_of('\0') + 1;
  ASSERT_LT(end, old.find_last_not_of('\0')) << "nothing is tried";
  bytes.resize(end);
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes << old.substr(end);
  open();
  EXPECT_EQ(get("k1"), "2");
  for (const char* key : {"k2", "k3"}) EXPECT_EQ(get(key), "-") << key;
}

// The log still has the mark of a generation of which nothing is left.
TEST_F(FaultsSpillway, AMarkOfWhatWasBroughtBackDoesNotEndTheReplay) {
  spill_.put_back_bytes = 1 << 20;  // nothing is flushed
  open();
  db_->SetDiversion(Diversion::always);
  ASSERT_TRUE(put("spilled", "1").ok());
  db_->SetDiversion(Diversion::never);
  ASSERT_TRUE(put("main", "1").ok());
  EXPECT_EQ(db_->GetSpillStatistics().ordering_marks, 1U);
  ASSERT_TRUE(db_->Rollback().ok());
  ASSERT_TRUE(put("later", "1", true).ok());
  lose_power(1);
  for (const char* key : {"spilled", "main", "later"}) EXPECT_EQ(get(key), "1") << key;
}

// Reset before RocksDB's log is durable; and a crash between merge and reset, after which everything is merged again.
TEST_F(FaultsSpillway, ALossOfPowerAtAnyStepOfARollbackLosesNothing) {
  std::uint64_t seed = 10;
  for (const char* step : {"spill.rollback.sorted", "spill.rollback.ingested", "spill.region.drop.renamed",
                           "spill.rollback.dropped", "spill.rollback.published"}) {
    SCOPED_TRACE(step);
    open();
    db_->SetDiversion(Diversion::never);
    ASSERT_TRUE(put("main", step).ok());
    db_->SetDiversion(Diversion::always);
    ASSERT_TRUE(put("spilled", step, true).ok());
    {
      const AtStep off(step, [this] { system_->cut_power(); });
      db_->Rollback().PermitUncheckedError();
      EXPECT_TRUE(off.was_reached());
    }
    lose_power(seed++);
    expect_acknowledged();
    EXPECT_TRUE(db_->Rollback().ok());
    expect_acknowledged();
  }
}

// The generations of a run are dropped one after the other. What was dropped is in RocksDB, and what was not comes back
// once more, beside what was written meanwhile.
TEST_F(FaultsSpillway, ADropThatFailsInTheMiddleOfARunLosesNothing) {
  for (const Action action : {Action::rename, Action::sync_directory}) {
    for (std::uint64_t nth = 1; nth <= 4; ++nth) {
      SCOPED_TRACE(static_cast<int>(action) * 100 + static_cast<int>(nth));
      open();
      ++rounds_;
      const auto value = [&](int i) {
        return std::to_string(rounds_) + "." + std::to_string(i) + std::string(8 << 10, 'v');
      };
      db_->SetDiversion(Diversion::always);
      for (int i = 0; i < 48; ++i) ASSERT_TRUE(put("key" + std::to_string(i % 20), value(i)).ok());
      ASSERT_GE(db_->GetSpillStatistics().live_generations, 5U);
      std::uint64_t renamed = 0;
      std::atomic<std::thread::id> syncs{};  // the thread that has renamed the n-th log and makes that durable next
      system_->set_fault_rule([&, action](const FileOperation& one) {  // ahead, and when it is tried again
        const bool is_nth = action == Action::rename ? one.name.ends_with(".dropped") && renamed == nth - 1
                                                     : syncs.load() == std::this_thread::get_id();
        return one.action == action && is_nth ? FileFault{.status = IOStatus::IOError("no (injected)")} : FileFault();
      });
      {
        const AtSteps steps([&](std::string_view step) {
          if (step == "spill.region.drop.renamed" && ++renamed == nth) syncs = std::this_thread::get_id();
        });
        const rocksdb::Status status = db_->Rollback();
        EXPECT_TRUE(status.IsIOError()) << status.ToString();
      }
      system_->set_fault_rule({});
      expect_acknowledged();
      db_->SetDiversion(Diversion::never);
      for (int i = 0; i < 20; i += 3) ASSERT_TRUE(put("key" + std::to_string(i), value(100 + i), true).ok());
      db_->SetDiversion(Diversion::always);
      ASSERT_TRUE(put("key1", value(200), true).ok());
      expect_acknowledged();
      if (nth % 2 == 0) lose_power(rounds_ + 100);
      expect_acknowledged();
      ASSERT_TRUE(db_->Rollback().ok());
      EXPECT_EQ(db_->GetSpillStatistics().live_entries, 0U);
      expect_acknowledged();
    }
  }
}

// What the drive is told of a drop is told while commits continue: these would wait for one another.
TEST_F(FaultsSpillway, WritesContinueWhileTheDriveIsToldOfADrop) {
  open();
  db_->SetDiversion(Diversion::always);
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(put("key" + std::to_string(i), std::string(8 << 10, 'v')).ok());
  ASSERT_GE(db_->GetSpillStatistics().live_generations, 3U);
  {
    const AtEach told("spill.region.drop.prepared", [this] {
      for (int i = 0; i < 30; i += 3) EXPECT_TRUE(put("key" + std::to_string(i), "newer", true).ok());
      EXPECT_TRUE(put("new", "newer").ok());
      expect_acknowledged();
    });
    ASSERT_TRUE(db_->Rollback().ok());
    EXPECT_GE(told.times(), 3);
  }
  expect_acknowledged();
  lose_power(31);
  acknowledged_.erase("new");
  expect_acknowledged();
  ASSERT_TRUE(db_->Rollback().ok());
  expect_acknowledged();
}

// A flush takes the first write to RocksDB out of its log. The others, and what was diverted after them, come while
// that log is synced: the note is made without another sync, for which commits would wait. Of what comes after it a
// loss of power leaves a prefix.
TEST_F(FaultsSpillway, ANoteInAFlushSyncsNoLogWhileCommitsWait) {
  int lost = 0;
  for (std::uint64_t seed = 40; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    db_.reset();
    root_ = scratch_.path("notes-" + std::to_string(seed));
    open();
    db_->SetDiversion(Diversion::always);
    ASSERT_TRUE(put("spilled", "1").ok());
    db_->SetDiversion(Diversion::never);
    ASSERT_TRUE(put("main", "1").ok());
    db_->SetDiversion(Diversion::always);
    ASSERT_TRUE(put("spilled2", "1").ok());
    {
      const AtStep meanwhile("spill.commit.main_synced", [this] {
        db_->SetDiversion(Diversion::never);
        EXPECT_TRUE(put("main3", "1").ok());
        db_->SetDiversion(Diversion::always);
        EXPECT_TRUE(put("spilled3", "1").ok());
      });
      ASSERT_TRUE(rocksdb_of(*db_).Flush({}).ok());
      EXPECT_TRUE(meanwhile.was_reached());
    }
    EXPECT_EQ(db_->GetSpillStatistics().ordering_syncs, 1U);
    std::vector<rocksdb::LiveFileMetaData> tables;
    rocksdb_of(*db_).GetLiveFilesMetaData(&tables);
    std::vector<std::string> names;
    for (const auto& table : tables) names.push_back(table.name);
    ASSERT_TRUE(rocksdb_of(*db_).CompactFiles({}, names, 6).ok()) << "sets the sequence numbers of tables to 0";
    lose_power(seed);
    for (const char* key : {"spilled", "main", "spilled2"}) EXPECT_EQ(get(key), "1") << key;
    EXPECT_TRUE(get("spilled3") == "-" || get("main3") == "1") << "a hole";
    if (get("main3") == "-") ++lost;
    ASSERT_TRUE(db_->Rollback().ok());
    for (const char* key : {"spilled", "main", "spilled2"}) EXPECT_EQ(get(key), "1") << key;
  }
  EXPECT_GT(lost, 0) << "nothing was tried";
}

TEST_F(FaultsSpillway, WhatIsDeletedDuringAStallStaysDeleted) {
  open();
  db_->SetDiversion(Diversion::never);
  ASSERT_TRUE(put("k", "1", true).ok());
  db_->SetDiversion(Diversion::always);
  rocksdb::WriteOptions sync;
  sync.sync = true;
  ASSERT_TRUE(db_->Delete(sync, "k").ok());
  lose_power(20);
  EXPECT_EQ(get("k"), "-");
  ASSERT_TRUE(db_->Rollback().ok());
  EXPECT_EQ(get("k"), "-");
  lose_power(21);
  EXPECT_EQ(get("k"), "-");
}

}  // namespace
}  // namespace spillway::faults
