// Rollbacks that fail, or find the store full: the diverted writes stay readable, the failure is reported, and the
// rollback is retried.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <string>
#include <vector>

#include "at_each_step.h"
#include "spill_degrade.h"
#include "spill_rocksdb_of.h"
#include "spillway/db.h"

namespace spillway::faults {
namespace {

using clients::rocksdb_of;
using rocksdb::IOStatus;
using rocksdb::Status;

// RocksDB's error may occur and end while the rollback waits for the ingestion.
TEST_F(SpillDegrade, NothingIsIngestedByARocksdbThatFailedWhileAnIngestionWaited) {
  open(RollbackPolicy::off, 64 << 20, SpillOptions().put_back_bytes);
  const std::string file = sorted_file();
  ASSERT_TRUE(db_->Put({}, "main", "1").ok());
  db_->SetDiversion(Diversion::always);
  ASSERT_TRUE(db_->Put({}, "a", "1").ok());
  const auto is_main_log = [](const FileOperation& operation) {
    return operation.action == Action::write && operation.name.ends_with(".log");
  };
  system_->set_fault_rule(fail_nth(is_main_log, 1, IOStatus::NoSpace("no (injected)")));
  const Status ingested = ends([&] { return db_->IngestExternalFile({file}, {}); });
  EXPECT_TRUE(ingested.IsAborted()) << ingested.ToString();
  EXPECT_EQ(db_->GetSpillStatistics().live_entries, 0U);
  for (const char* key : {"main", "a"}) EXPECT_EQ(get(key), "1");
  EXPECT_EQ(get("sorted"), "-");
}

// A check for errors of RocksDB is not a write without its log. After such a write, memtables would not count as
// durable.
TEST_F(SpillDegrade, AFailedRollbackChangesNoReadOfWhatIsDurable) {
  open(RollbackPolicy::off);
  db_->SetDiversion(Diversion::always);
  ASSERT_TRUE(db_->Put({}, "a", "1").ok());
  system_->set_fault_rule([](const FileOperation& operation) {
    return is_sorted_file(operation) ? FileFault{.status = IOStatus::IOError("no (injected)")} : FileFault();
  });
  EXPECT_TRUE(db_->Rollback().IsIOError());
  system_->set_fault_rule({});
  db_->SetDiversion(Diversion::never);
  ASSERT_TRUE(db_->Put({}, "main", "1").ok());
  rocksdb::ReadOptions durable;
  durable.read_tier = rocksdb::kPersistedTier;
  std::string value;
  const Status status = db_->Get(durable, "main", &value);
  EXPECT_TRUE(status.ok()) << status.ToString();
}

// Also of a rollback that has just put writes back and has not ended yet.
TEST_F(SpillDegrade, ListsOfFilesHaveWhatARollbackIsPuttingBack) {
  open(RollbackPolicy::off, 64 << 20, SpillOptions().put_back_bytes);
  db_->SetDiversion(Diversion::always);
  ASSERT_TRUE(db_->Put({}, "a", "1").ok());
  ASSERT_TRUE(db_->Flush({}).ok());
  std::vector<std::string> files;
  std::uint64_t manifest_bytes = 0;
  std::future<Status> listed;
  {
    const AtEach then("spill.rollback.forgotten", [&] {
      if (listed.valid()) return;
      listed = std::async(std::launch::async,
                          [&] { return db_->GetLiveFiles(files, &manifest_bytes, /*flush_memtable=*/false); });
      listed.wait_for(std::chrono::milliseconds(200));
    });
    EXPECT_TRUE(db_->Rollback().ok());
    ASSERT_TRUE(listed.valid());
    EXPECT_TRUE(listed.get().ok());
  }
  std::uint64_t in_memtables = 1;
  EXPECT_TRUE(db_->GetIntProperty("rocksdb.num-entries-active-mem-table", &in_memtables));
  EXPECT_EQ(in_memtables, 0U);
}

// What a rollback has ingested, and what a flush has removed from RocksDB's log, is recorded in a note, because a
// compaction may remove the sequence numbers that show it. A full store refuses the note.
TEST_F(SpillDegrade, ANoteThatAFullStoreRefusesIsNotNeeded) {
  open(RollbackPolicy::off);
  const std::string older(64 << 10, 'o');
  const std::string newer(64 << 10, 'n');
  ASSERT_TRUE(db_->Put({}, "main 1", "1").ok());
  db_->SetDiversion(Diversion::always);
  ASSERT_TRUE(db_->Put({}, "k", older).ok());  // a separate generation
  db_->SetDiversion(Diversion::never);
  ASSERT_TRUE(db_->Put({}, "main 2", "2").ok());
  db_->SetDiversion(Diversion::always);
  ASSERT_TRUE(db_->Put({}, "k", newer).ok());
  system_->set_fault_rule([](const FileOperation& operation) {
    return operation.action == Action::write && is_spill_log(operation)
               ? FileFault{.status = IOStatus::NoSpace("(injected)")}
               : FileFault();
  });
  ASSERT_TRUE(db_->Put({}, "main 3", "3").ok());  // finds the store full: generations are brought back one by one
  ASSERT_TRUE(comes_true(
      [&] { return !heard_->of(Kind::rollback_failed).empty() || !heard_->of(Kind::rollback_end).empty(); }));
  rocksdb::CompactRangeOptions to_the_bottom;
  to_the_bottom.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
  ASSERT_TRUE(rocksdb_of(*db_).CompactRange(to_the_bottom, nullptr, nullptr).ok());
  system_->cut_power();  // like a kill: what was written is there
  open(RollbackPolicy::off);
  EXPECT_EQ(get("k"), newer);
  for (const char* number : {"1", "2", "3"}) EXPECT_EQ(get(std::string("main ") + number), number);
}

// RocksDB does not report the beginning of a CompactFiles.
TEST_F(SpillDegrade, ACompactionOfFilesWaitsForTheNoteThatIsOwed) {
  open(RollbackPolicy::off);
  db_->SetDiversion(Diversion::never);
  ASSERT_TRUE(db_->Put({}, "main", "1").ok());
  db_->SetDiversion(Diversion::always);
  ASSERT_TRUE(db_->Put({}, "k", "1").ok());
  system_->set_fault_rule([](const FileOperation& operation) {
    return operation.action == Action::write && (is_spill_log(operation) || is_sorted_file(operation))
               ? FileFault{.status = IOStatus::NoSpace("(injected)")}
               : FileFault();
  });
  ASSERT_TRUE(rocksdb_of(*db_).Flush({}).ok());  // its note is refused
  rocksdb::ColumnFamilyMetaData family;
  rocksdb_of(*db_).GetColumnFamilyMetaData(&family);
  const std::vector<std::string> files{family.levels.front().files.front().name};
  const Status refused = db_->CompactFiles({}, files, 6);
  EXPECT_TRUE(refused.IsNoSpace()) << refused.ToString();
  EXPECT_EQ(db_->GetSpillStatistics().live_entries, 1U);
  system_->set_fault_rule({});
  EXPECT_TRUE(db_->CompactFiles({}, files, 6).ok());
  EXPECT_EQ(db_->GetSpillStatistics().live_entries, 0U);
  EXPECT_EQ(get("k"), "1");
}

// Until a note is written, or the store is empty. MainOrder, one of RocksDB's listeners, holds compactions.
TEST_F(SpillDegrade, CompactionsWaitForTheNoteOfARollback) {
  for (const bool is_refused : {false, true}) {
    SCOPED_TRACE(is_refused ? "refused" : "taken");
    open(RollbackPolicy::off);
    std::vector<std::future<void>> compactions;
    const auto is_held = [&] {
      compactions.push_back(std::async(std::launch::async, [this] {
        for (const auto& one : rocksdb_of(*db_).GetDBOptions().listeners) one->OnCompactionBegin(nullptr, {});
      }));
      return compactions.back().wait_for(std::chrono::milliseconds(300)) == std::future_status::timeout;
    };
    const auto all_begin = [&] {
      const auto begins = [](const auto& one) {
        return one.wait_for(std::chrono::seconds(20)) != std::future_status::timeout;
      };
      return std::ranges::all_of(compactions, begins);
    };
    is_held();
    EXPECT_TRUE(all_begin());
    db_->SetDiversion(Diversion::never);
    ASSERT_TRUE(db_->Put({}, "k", "of RocksDB").ok());
    db_->SetDiversion(Diversion::always);
    for (const char* value : {"older", "newer"}) {  // a generation each
      ASSERT_TRUE(db_->Put({}, "k", value + std::string(64 << 10, ' ')).ok());
    }
    std::atomic<int> ingested_held = -1;
    std::atomic<int> published_held = -1;
    {
      const AtEach then(is_refused ? "spill.rollback.published" : "spill.rollback.ingested", [&] {
        std::atomic<int>& held = is_refused ? published_held : ingested_held;
        if (held < 0) held = is_held() ? 1 : 0;
      });
      if (is_refused) {
        system_->set_fault_rule([](const FileOperation& operation) {
          return operation.action == Action::write && is_spill_log(operation)
                     ? FileFault{.status = IOStatus::NoSpace("(injected)")}
                     : FileFault();
        });
        EXPECT_TRUE(db_->Put({}, "other", "").ok());  // finds the store full: generations are brought back one by one
        EXPECT_TRUE(comes_true([&] { return db_->GetSpillStatistics().live_entries == 0; }));
      } else {
        EXPECT_TRUE(db_->Rollback().ok());
      }
      EXPECT_TRUE(comes_true([&] { return (is_refused ? published_held : ingested_held) >= 0; }));
    }
    EXPECT_EQ(is_refused ? published_held : ingested_held, 1);
    EXPECT_TRUE(all_begin());
    is_held();
    EXPECT_TRUE(all_begin());
  }
}

// RocksDB may count the sequence numbers of ingested files before they are in its MANIFEST, and even if they never are.
TEST_F(SpillDegrade, WhatIsDivertedWhileFilesAreIngestedOutlivesAKill) {
  for (const bool dies : {true, false}) {
    SCOPED_TRACE(dies ? "killed meanwhile" : "the ingestion fails");
    open(RollbackPolicy::off);
    db_->SetDiversion(Diversion::never);
    ASSERT_TRUE(db_->Put({}, "k", "1").ok());
    // Otherwise the ingestion flushes first, and the MANIFEST has that first.
    ASSERT_TRUE(rocksdb_of(*db_).Flush({}).ok());
    db_->SetDiversion(Diversion::always);
    ASSERT_TRUE(db_->Put({}, "k", "2").ok());
    std::atomic<bool> is_ingesting = false;
    std::atomic<bool> has_come = false;
    bool diverted = false;
    const AtEach then("spill.rollback.gate_closed", [&] { is_ingesting = true; });
    system_->set_fault_rule([&](const FileOperation& operation) {
      if (!is_ingesting || operation.action != Action::write || operation.name.find("MANIFEST") == std::string::npos) {
        return FileFault();
      }
      if (!has_come.exchange(true) && dies) {
        diverted = std::async(std::launch::async, [&] { return db_->Put({}, "z", "3").ok(); }).get();
        system_->cut_power();
      }
      return FileFault{.status = IOStatus::IOError("(injected)")};
    });
    EXPECT_FALSE(db_->Rollback().ok());
    ASSERT_TRUE(has_come);
    if (!dies) diverted = db_->Put({}, "z", "3").ok();
    ASSERT_TRUE(diverted);
    system_->cut_power();  // like a kill: what was written is there
    open(RollbackPolicy::off);
    EXPECT_EQ(get("k"), "2");
    EXPECT_EQ(get("z"), "3");
    EXPECT_TRUE(db_->Rollback().ok());
  }
}

// RocksDB may fail while sorted files are written. After it has recovered it ingests no more files.
TEST_F(SpillDegrade, WhatCannotBeIngestedAnyMoreIsPutBack) {
  open(RollbackPolicy::off);
  ASSERT_TRUE(db_->Put({}, "main", "1").ok());
  db_->SetDiversion(Diversion::always);
  for (const char* key : {"a", "b"}) ASSERT_TRUE(db_->Put({}, key, "1").ok());
  std::atomic<bool> is_full = false;
  std::atomic<int> flushes = 0;
  system_->set_fault_rule([&](const FileOperation& operation) {
    if (operation.action == Action::create && is_sorted_file(operation) && flushes.fetch_add(1) == 0) {
      is_full = true;
      const Status flushed = std::async(std::launch::async, [&] { return rocksdb_of(*db_).Flush({}); }).get();
      EXPECT_TRUE(flushed.IsIOError()) << flushed.ToString();
      is_full = false;
      auto resumed =
          std::async(std::launch::async, [&] { return comes_true([&] { return rocksdb_of(*db_).Resume().ok(); }); });
      EXPECT_TRUE(resumed.get());
    }
    const bool is_hit = is_full && operation.action == Action::write && operation.name.ends_with(".sst");
    return is_hit ? FileFault{.status = IOStatus::NoSpace("the drive is full (injected)")} : FileFault();
  });
  const Status status = db_->Rollback();
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(flushes, 1) << "no file was written, or RocksDB was given another";
  EXPECT_EQ(db_->GetSpillStatistics().live_entries, 0U);
  for (int opening = 0; opening < 2; ++opening) {
    for (const char* key : {"main", "a", "b"}) EXPECT_EQ(get(key), "1") << key;
    if (opening == 0) open(RollbackPolicy::off);
  }
}

TEST_F(SpillDegrade, AFailingRollbackIsReportedAndRetriedWithLongerPauses) {
  open(RollbackPolicy::eager);
  system_->set_fault_rule([](const FileOperation& operation) {
    return operation.action == Action::create && is_sorted_file(operation)
               ? FileFault{.status = IOStatus::IOError("no (injected)")}
               : FileFault();
  });
  db_->SetDiversion(Diversion::always);
  ASSERT_TRUE(db_->Put({}, "a", "1").ok());
  db_->SetDiversion(Diversion::automatic);
  constexpr std::size_t kAttempts = 6;
  ASSERT_TRUE(comes_true([&] { return heard_->of(Kind::rollback_failed).size() >= kAttempts; }));
  const auto failed = heard_->of(Kind::rollback_failed);
  std::chrono::milliseconds least{20};
  for (std::size_t i = 1; i < kAttempts; ++i, least *= 2) {
    EXPECT_GE(failed[i].at - failed[i - 1].at, least) << "between attempt " << i << " and the next";
    EXPECT_NE(failed[i].message.find("no (injected)"), std::string::npos) << failed[i].message;
  }
  std::uint64_t count = 0;
  ASSERT_TRUE(db_->GetIntProperty("spillway.rollback-failures", &count));
  EXPECT_GE(count, kAttempts);
  EXPECT_FALSE(db_->Rollback().ok());
  EXPECT_EQ(get("a"), "1");
  std::string log;
  ASSERT_TRUE(rocksdb::ReadFileToString(rocksdb::Env::Default(), scratch_.path("root") + "/db/LOG", &log).ok());
  EXPECT_NE(log.find("spillway: rollback_failed"), std::string::npos);
  system_->set_fault_rule({});
  EXPECT_TRUE(db_->Rollback().ok());
  EXPECT_EQ(db_->GetSpillStatistics().live_entries, 0U);
  EXPECT_EQ(get("a"), "1");
}

}  // namespace
}  // namespace spillway::faults
