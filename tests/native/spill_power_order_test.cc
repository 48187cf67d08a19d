// Times at which a loss of power would leave a later write without an earlier one if one sync were omitted. Each test
// covers a barrier of scripts/barriers.toml that no other test covers.
#include <gtest/gtest.h>
#include <pthread.h>
#include <rocksdb/env.h>
#include <rocksdb/sst_file_writer.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "at_each_step.h"
#include "faults/file_system.h"
#include "faults/power_loss.h"
#include "spill_rocksdb_of.h"
#include "spillway/db.h"
#include "temporary_directory.h"

namespace spillway::faults {
namespace {

using clients::rocksdb_of;
using rocksdb::Status;

class SpillPowerOrder : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kSeeds = 16;  // seeds of what a loss of power leaves
  static constexpr std::uint64_t kGeneration = 16 << 10;

  ~SpillPowerOrder() override { db_.reset(); }

  void open() {
    const Status status = try_open();
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  Status try_open() {
    db_.reset();
    system_ = *FaultyFileSystem::open(root_);
    env_ = rocksdb::NewCompositeEnv(system_);
    rocksdb::Options options;
    options.create_if_missing = true;
    options.env = env_.get();
    SpillOptions spill;
    spill.rollback = RollbackPolicy::off;
    spill.put_back_bytes = put_back_bytes_;
    spill.generation_bytes = kGeneration;
    if (listener_ != nullptr) spill.listeners.push_back(listener_);
    DB* db = nullptr;
    const Status status = DB::Open(options, spill, root_ + "/db", &db);
    db_.reset(db);
    return status;
  }
  void lose_power(std::uint64_t seed) {
    system_->cut_power();
    db_.reset();
    const std::string next = scratch_.path("after-" + std::to_string(seed));
    const spillway::Status status = power_loss(root_, next, {.seed = seed});
    ASSERT_TRUE(status) << status.message();
    root_ = next;
    open();
  }
  void put(Diversion diversion, const std::string& key, const std::string& value) {
    db_->SetDiversion(diversion);
    const Status status = db_->Put({}, key, value);
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
  void put_main(const std::string& key, const std::string& value) { put(Diversion::never, key, value); }
  void divert(const std::string& key, const std::string& value) { put(Diversion::always, key, value); }
  void put_synced(const std::string& key, const std::string& value) {
    rocksdb::WriteOptions synced;
    synced.sync = true;
    const Status status = db_->Put(synced, key, value);
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
  bool has(const std::string& key, const std::string& value) {
    std::string found;
    return db_->Get({}, key, &found).ok() && found == value;
  }

  // After a loss of power: `later` is there only with `earlier`. A test counts how often it was there, else it may have
  // tried nothing.
  void expect_prefix(const std::string& earlier, const std::string& later, const std::string& round) {
    const bool is_there = has(later, round);
    later_survived_ += is_there ? 1 : 0;
    EXPECT_TRUE(!is_there || has(earlier, round)) << "round " << round;
  }

  int later_survived_ = 0;
  std::uint64_t put_back_bytes_ = 0;  // 0: ingests
  std::shared_ptr<SpillListener> listener_;
  const TemporaryDirectory scratch_{memory_path()};
  std::string root_ = scratch_.path("root");
  std::shared_ptr<FaultyFileSystem> system_;
  std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<DB> db_;
};

// An ingestion is durable at once. RocksDB flushes its memtable before only if a key of the memtable lies between those
// of the files.
TEST_F(SpillPowerOrder, WhatIsIngestedIsNotThereWithoutAnOlderWriteToRocksdb) {
  open();
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::string round = std::to_string(seed);
    put_main("a", round);
    divert("z", round);
    bool ingested = false;
    {
      const AtEach off("spill.rollback.ingested", [&] {
        ingested = true;
        system_->cut_power();
      });
      db_->Rollback().PermitUncheckedError();
    }
    ASSERT_TRUE(ingested);
    lose_power(seed);
    expect_prefix("a", "z", round);
  }
  EXPECT_GT(later_survived_, 0) << "nothing was tried";
}

// The same for a user's file. The power fails at the first sync of RocksDB's log: if that comes after the ingestion,
// the file is there.
TEST_F(SpillPowerOrder, AnExternalFileIsNotThereWithoutAnOlderWriteToRocksdb) {
  open();
  for (std::uint64_t seed = 0; seed < 2 * kSeeds; ++seed) {
    const std::string round = std::to_string(seed);
    put_main("a", round);
    rocksdb::Options options;
    options.env = env_.get();
    rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options);
    const std::string path = root_ + "/external.sst";
    ASSERT_TRUE(writer.Open(path).ok());
    ASSERT_TRUE(writer.Put("z", round).ok());
    ASSERT_TRUE(writer.Finish().ok());
    bool is_synced = false;
    system_->set_fault_rule([&](const FileOperation& operation) {
      if (operation.action == Action::sync && operation.name.ends_with(".log")) {
        is_synced = true;
        system_->cut_power();
      }
      return FileFault();
    });
    rocksdb::IngestExternalFileArg argument;
    argument.column_family = db_->DefaultColumnFamily();
    argument.external_files = {path};
    const Status status = seed % 2 == 0 ? db_->IngestExternalFile({path}, {}) : db_->IngestExternalFiles({argument});
    EXPECT_FALSE(status.ok());
    ASSERT_TRUE(is_synced);
    lose_power(seed);
    EXPECT_FALSE(has("z", round)) << "ingested before the log was synced, seed " << seed;
  }
}

// A flush removes marks from RocksDB's log. If the sync of RocksDB's log before it fails, the spill store must be
// synced nevertheless, because the marks name its writes.
TEST_F(SpillPowerOrder, WhatIsFlushedIsNotThereWithoutTheDivertedWriteBeforeItThoughASyncHasFailed) {
  open();
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::string round = std::to_string(seed);
    divert("d", round);
    put_main("m", round);
    // Of the directory with the logs: first by RocksDB, then for the order of the two logs.
    const auto is_names = [](const FileOperation& operation) {
      return operation.action == Action::sync_directory && operation.name == "db";
    };
    const auto rule = fail_nth(is_names, 2, rocksdb::IOStatus::IOError("injected"));
    const auto failed = std::make_shared<std::atomic<bool>>(false);
    system_->set_fault_rule([rule, failed](const FileOperation& operation) {
      FileFault outcome = rule(operation);
      if (!outcome.status.ok()) *failed = true;
      return outcome;
    });
    rocksdb_of(*db_).Flush({}).PermitUncheckedError();
    EXPECT_TRUE(*failed);
    lose_power(seed);
    expect_prefix("d", "m", round);
    ASSERT_TRUE(db_->Rollback().ok());
  }
  EXPECT_GT(later_survived_, 0) << "nothing was tried";
}

// A full store refuses the note. It is brought back, and synced for that, but not before the power fails.
TEST_F(SpillPowerOrder, WhatIsFlushedIsNotThereWithoutTheDivertedWriteBeforeItThoughNoNoteHasRoom) {
  open();
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::string round = std::to_string(seed);
    put_main("between", round);
    divert("d", round);
    put_main("m", round);
    const auto is_flushed = std::make_shared<std::atomic<bool>>(false);
    system_->set_fault_rule([is_flushed](const FileOperation& operation) {
      if (!operation.name.ends_with(".spill")) return FileFault();
      char thread[16] = {};
      pthread_getname_np(pthread_self(), thread, sizeof thread);
      const bool is_flush = std::string_view(thread).starts_with("rocksdb");
      for (int i = 0; i < 2'000 && !is_flush && !*is_flushed; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      return operation.action == Action::write ? FileFault{.status = rocksdb::IOStatus::NoSpace("injected")}
                                               : FileFault();
    });
    ASSERT_TRUE(rocksdb_of(*db_).Flush({}).ok());
    system_->cut_power();
    *is_flushed = true;
    lose_power(seed);
    expect_prefix("d", "m", round);
    ASSERT_TRUE(db_->Rollback().ok());
  }
  EXPECT_GT(later_survived_, 0) << "nothing was tried";
}

TEST_F(SpillPowerOrder, EveryWriteToRocksdbHasAMarkWhereSomethingWasDivertedSinceTheLastOne) {
  open();
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::string round = std::to_string(seed);
    divert("d1", round);
    put_main("m1", round);
    ASSERT_TRUE(db_->SyncWAL().ok());
    divert("d2", round);
    put_main("m2", round);
    lose_power(seed);
    expect_prefix("d2", "m2", round);
    ASSERT_TRUE(db_->Rollback().ok());
  }
  EXPECT_GT(later_survived_, 0) << "nothing was tried";
}

TEST_F(SpillPowerOrder, WhatMakesWritesDurableDoesSoWithDivertedOnes) {
  open();
  const std::vector<std::pair<const char*, std::function<Status()>>> calls{
      {"SyncWAL", [&] { return db_->SyncWAL(); }},
      {"FlushWAL", [&] { return db_->FlushWAL(true); }},
      {"Flush", [&] { return db_->Flush({}, db_->DefaultColumnFamily()); }},
      {"Flush of several", [&] { return db_->Flush({}, std::vector{db_->DefaultColumnFamily()}); }}};
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto& [name, call] = calls[seed % calls.size()];
    const std::string round = std::to_string(seed);
    divert("d", round);
    ASSERT_TRUE(call().ok()) << name;
    lose_power(seed);
    EXPECT_TRUE(has("d", round)) << name << ", seed " << seed;
    ASSERT_TRUE(db_->Rollback().ok());
  }
}

// It would remove sequence numbers from tables before a note records them, and RocksDB does not report its beginning.
TEST_F(SpillPowerOrder, ACompactionOfFilesDoesNotRunDuringARollback) {
  open();
  put_main("main", "1");
  ASSERT_TRUE(rocksdb_of(*db_).Flush({}).ok());
  rocksdb::ColumnFamilyMetaData family;
  rocksdb_of(*db_).GetColumnFamilyMetaData(&family);
  const std::vector<std::string> files{family.levels.front().files.front().name};
  divert("spilled", "1");
  std::thread compaction;
  std::atomic<bool> is_over{false};
  bool was_over = false;
  {
    const AtStep ingested("spill.rollback.ingested", [&] {
      compaction = std::thread([&] {
        EXPECT_TRUE(db_->CompactFiles({}, files, 6).ok());
        is_over = true;
      });
      for (int i = 0; i < 300 && !is_over; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      was_over = is_over;
    });
    ASSERT_TRUE(db_->Rollback().ok());
    ASSERT_TRUE(ingested.was_reached());
  }
  compaction.join();
  EXPECT_FALSE(was_over);
}

TEST_F(SpillPowerOrder, WhatIsPutBackIsDurableInRocksdb) {
  put_back_bytes_ = 1 << 20;
  open();
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::string round = std::to_string(seed);
    db_->SetDiversion(Diversion::always);
    put_synced("d", round);
    ASSERT_TRUE(db_->Rollback().ok());
    ASSERT_EQ(db_->GetSpillStatistics().rollbacks_by_put, 1U);
    lose_power(seed);
    EXPECT_TRUE(has("d", round)) << "seed " << seed;
  }
}

class WhenRollbackBegins final : public SpillListener {
 public:
  explicit WhenRollbackBegins(std::function<void()> what) : what_(std::move(what)) {}
  void on_spill_event(const SpillEvent& event) override {
    if (event.kind == SpillEvent::Kind::rollback_begin) what_();
  }

 private:
  const std::function<void()> what_;
};

// A superseded version is omitted from a rollback, unless the newer version may be lost.
TEST_F(SpillPowerOrder, WhatOnlyAnUnsyncedWriteSupersedesIsBroughtBack) {
  std::string newer;
  listener_ = std::make_shared<WhenRollbackBegins>([&] {
    if (newer.empty()) return;
    const std::string value = std::exchange(newer, "");
    std::thread([&] { divert("k", value); }).join();
  });
  open();
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::string round = std::to_string(seed);
    db_->SetDiversion(Diversion::always);
    put_synced("k", "older " + round);
    newer = "newer " + round;
    {
      const AtStep sorted("spill.rollback.sorted", [&] {  // otherwise the note that follows would make it durable
        system_->set_fault_rule([](const FileOperation& operation) {
          const bool is_store = operation.action == Action::sync && operation.name.ends_with(".spill");
          return is_store ? FileFault{.status = rocksdb::IOStatus::IOError("injected")} : FileFault();
        });
      });
      db_->Rollback().PermitUncheckedError();
      ASSERT_TRUE(sorted.was_reached());
    }
    ASSERT_EQ(newer, "");
    system_->cut_power();
    system_->set_fault_rule({});
    lose_power(seed);
    EXPECT_TRUE(has("k", "older " + round) || has("k", "newer " + round)) << "seed " << seed;
    ASSERT_TRUE(db_->Rollback().ok());
  }
}

// Log data after a batch's WAL termination point cannot be a mark.
TEST_F(SpillPowerOrder, AWriteThatCanHaveNoMarkIsNotThereWithoutTheDivertedOneBeforeIt) {
  open();
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::string round = std::to_string(seed);
    divert("d", round);
    rocksdb::WriteBatch batch;
    ASSERT_TRUE(batch.Put("m", round).ok());
    batch.MarkWalTerminationPoint();
    db_->SetDiversion(Diversion::never);
    ASSERT_TRUE(db_->Write({}, &batch).ok());
    lose_power(seed);
    expect_prefix("d", "m", round);
    ASSERT_TRUE(db_->Rollback().ok());
  }
  EXPECT_GT(later_survived_, 0) << "nothing was tried";
}

// RocksDB has flushed what its log had, so the log is empty afterwards; and the note that records it is not written.
TEST_F(SpillPowerOrder, ARecoveryThatDiesBeforeItsNoteLosesNothing) {
  open();
  put_main("main", "1");
  divert("spilled", "1");
  system_->cut_power();  // like a kill: what was written is there
  {
    const AtStep dies("spill.commit.before_append", [&] { system_->cut_power(); });
    EXPECT_FALSE(try_open().ok());
    EXPECT_TRUE(dies.was_reached());
  }
  open();
  EXPECT_TRUE(has("main", "1"));
  EXPECT_TRUE(has("spilled", "1"));
}

// A note says that records before it are kept. Concurrent appends may be of writes that followed newer writes to
// RocksDB.
TEST_F(SpillPowerOrder, ANoteKeepsNoDivertedWriteWithoutTheWriteToRocksdbBeforeIt) {
  open();
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::string round = std::to_string(seed);
    int writes = 0;
    const auto write_both = [&] {
      for (const int last = writes + 2; writes < last;) {
        ++writes;
        put_main("main" + std::to_string(writes), round);
        divert("spilled" + std::to_string(writes), round);
      }
    };
    write_both();
    {
      const AtEach beside("spill.commit.main_synced", write_both);
      ASSERT_TRUE(rocksdb_of(*db_).Flush({}).ok());
    }
    ASSERT_EQ(writes, 4) << "the log was synced for the flush alone";
    lose_power(seed);
    for (int i = 1; i <= 4; ++i) {
      const std::string number = std::to_string(i);
      EXPECT_TRUE(!has("spilled" + number, round) || has("main" + number, round)) << "seed " << seed << ", write " << i;
    }
    ASSERT_TRUE(db_->Rollback().ok());
  }
}

// A sync of RocksDB's log makes durable what was there when it began.
TEST_F(SpillPowerOrder, WhatRocksdbTookDuringASyncOfItsLogIsSyncedForTheNextDivertedWrite) {
  open();
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::string round = std::to_string(seed);
    put_main("before", round);
    db_->SetDiversion(Diversion::always);
    {
      const AtStep beside("spill.commit.main_synced", [&] { std::thread([&] { put_main("main", round); }).join(); });
      put_synced("spilled0", round);
      ASSERT_TRUE(beside.was_reached());
    }
    db_->SetDiversion(Diversion::always);
    put_synced("spilled1", round);
    lose_power(seed);
    EXPECT_TRUE(has("spilled1", round)) << "seed " << seed;
    EXPECT_TRUE(has("main", round)) << "seed " << seed;
  }
}

// The same for the spill store.
TEST_F(SpillPowerOrder, WhatWasDivertedDuringASyncIsSyncedForTheNextWriteToRocksdb) {
  open();
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::string round = std::to_string(seed);
    divert("spilled0", round);
    {
      const AtStep beside("spill.commit.synced", [&] { std::thread([&] { divert("spilled1", round); }).join(); });
      ASSERT_TRUE(db_->SyncWAL().ok());
      ASSERT_TRUE(beside.was_reached());
    }
    db_->SetDiversion(Diversion::never);
    put_synced("main", round);
    lose_power(seed);
    EXPECT_TRUE(has("main", round)) << "seed " << seed;
    EXPECT_TRUE(has("spilled1", round)) << "seed " << seed;
  }
}

// A flush during a call that holds commits: the spill store must be durable up to the marks that it removes. RocksDB
// waits for a second after each failed flush.
TEST_F(SpillPowerOrder, AFlushDuringACallThatHoldsCommitsFlushesNothingWithoutItsMark) {
  open();
  for (std::uint64_t seed = 0; seed < kSeeds / 2; ++seed) {
    const std::string round = std::to_string(seed);
    divert("spilled", round);
    put_main("main", round);
    std::thread flush;
    system_->set_fault_rule([&](const FileOperation& operation) {
      if (operation.action == Action::sync && operation.name.ends_with(".spill") && !flush.joinable()) {
        flush = std::thread([&] { rocksdb_of(*db_).Flush({}).PermitUncheckedError(); });
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        system_->cut_power();
      }
      return FileFault();
    });
    db_->CreateCheckpoint(scratch_.path("copy-" + round)).PermitUncheckedError();
    ASSERT_TRUE(flush.joinable());
    flush.join();
    system_->set_fault_rule({});
    lose_power(seed);
    expect_prefix("spilled", "main", round);
  }
  EXPECT_GT(later_survived_, 0) << "nothing was tried";
}

// RocksDB flushes what its log has, so what an opening has found is durable. It stays so if a compaction removes the
// sequence numbers that show what the diverted writes follow.
TEST_F(SpillPowerOrder, WhatAnOpeningHasFoundIsDurable) {
  open();
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::string round = std::to_string(seed);
    put_main("main", round);
    divert("spilled", round);
    system_->cut_power();  // like a kill: what was written is there
    open();
    ASSERT_TRUE(has("main", round) && has("spilled", round));
    rocksdb::CompactRangeOptions all;
    all.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
    ASSERT_TRUE(rocksdb_of(*db_).CompactRange(all, nullptr, nullptr).ok());
    lose_power(seed);
    EXPECT_TRUE(has("main", round)) << "seed " << seed;
    EXPECT_TRUE(has("spilled", round)) << "seed " << seed;
  }
}

// If all of a generation is superseded, nothing is ingested. The newer versions are kept only with the earlier writes
// of RocksDB's log.
TEST_F(SpillPowerOrder, AGenerationThatIsSupersededStaysWhenRocksdbsLogCannotBeSynced) {
  open();
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const std::string round = std::to_string(seed);
    const std::string older = std::string(kGeneration, 'o') + round;
    const std::string newer = std::string(kGeneration, 'n') + round;
    divert("k", older);  // a separate generation
    ASSERT_TRUE(db_->SyncWAL().ok());
    put_main("a", round);
    divert("k", newer);
    bool failed = false;
    system_->set_fault_rule([&](const FileOperation& operation) {
      const bool fails_store = operation.action == Action::write && operation.name.find(".spill") != std::string::npos;
      const bool fails_sync = operation.action == Action::sync && operation.name.ends_with(".log");
      if (!fails_sync && (!fails_store || std::exchange(failed, true))) return FileFault();
      return FileFault{.status = rocksdb::IOStatus::IOError("injected")};
    });
    db_->Put({}, "x", round).PermitUncheckedError();  // fails the store: its contents come back one by one
    ASSERT_TRUE(failed);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    const auto is_over = [&] {
      const SpillStatistics now = db_->GetSpillStatistics();
      return now.rollback_failures > 0 || now.rollbacks_by_ingest > 0;
    };
    while (!is_over() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    ASSERT_TRUE(is_over());
    lose_power(seed);
    EXPECT_TRUE(has("k", older) || has("k", newer)) << "seed " << seed;
    EXPECT_TRUE(!has("k", newer) || has("a", round)) << "seed " << seed;
    ASSERT_TRUE(db_->Rollback().ok());
  }
}

// Close syncs RocksDB's log only for writes that diverted writes follow.
TEST_F(SpillPowerOrder, ALossOfPowerDuringTheCloseLeavesNoWriteWithoutTheOneBeforeIt) {
  open();
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::string round = std::to_string(seed);
    put_main("main1", round);
    divert("spilled1", round);
    put_main("main2", round);
    if (seed % 2 == 0) divert("spilled2", round);
    {
      const AtStep stopped("spill.close.stopped", [&] { system_->cut_power(); });
      db_->Close().PermitUncheckedError();
      ASSERT_TRUE(stopped.was_reached());
    }
    lose_power(seed);
    EXPECT_TRUE(has("main1", round)) << "seed " << seed;
    EXPECT_TRUE(has("spilled1", round)) << "seed " << seed;
    if (seed % 2 == 0) {
      EXPECT_TRUE(has("spilled2", round) && has("main2", round)) << "seed " << seed;
    }
    ASSERT_TRUE(db_->Rollback().ok());
  }
}

// RocksDB may flush and compact by itself until it is closed, after the last note was written.
TEST_F(SpillPowerOrder, WhatWasDivertedOutlivesACompactionDuringTheClose) {
  open();
  put_main("main", "1");
  divert("spilled", "1");
  {
    const AtStep stopped("spill.close.stopped", [&] {
      rocksdb::DB& main = rocksdb_of(*db_);
      ASSERT_TRUE(main.Flush({}).ok());
      rocksdb::CompactRangeOptions all;
      all.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
      ASSERT_TRUE(main.CompactRange(all, nullptr, nullptr).ok());
    });
    ASSERT_TRUE(db_->Close().ok());
    ASSERT_TRUE(stopped.was_reached());
  }
  open();
  EXPECT_TRUE(has("main", "1"));
  EXPECT_TRUE(has("spilled", "1"));
}

}  // namespace
}  // namespace spillway::faults
