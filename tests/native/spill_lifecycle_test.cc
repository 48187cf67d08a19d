// Opening, pausing, recovering and closing, compared with plain RocksDB.
#include <gtest/gtest.h>
#include <rocksdb/compaction_filter.h>
#include <rocksdb/convenience.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/steps.h"
#include "spill/compat/db_out.h"
#include "spill/compat/rocksdb_calls.h"
#include "spill_side_by_side.h"

namespace spillway::clients {
namespace {

using rocksdb::ReadOptions;
using rocksdb::Status;
using rocksdb::WriteOptions;

class Reached final : public steps::Watcher {
 public:
  explicit Reached(std::string_view step) : step_(step) { steps::watch(this); }
  ~Reached() override { steps::watch(nullptr); }
  void reached(std::string_view step) override {
    if (step == step_) was_reached_ = true;
  }
  bool was_reached() const { return was_reached_; }

 private:
  const std::string step_;
  std::atomic<bool> was_reached_{false};
};

// Refuses to create RocksDB's sorted files on request.
class NoTables final : public rocksdb::FileSystemWrapper {
 public:
  NoTables() : FileSystemWrapper(FileSystem::Default()) {}
  const char* Name() const override { return "NoTables"; }
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* context) override {
    if (refuses && path.ends_with(".sst")) {
      rocksdb::IOStatus status = rocksdb::IOStatus::IOError("refused");
      status.SetRetryable(true);
      return status;
    }
    return target()->NewWritableFile(path, options, file, context);
  }
  std::atomic<bool> refuses{false};
};

// Counts requests for its name after its owner would have deleted it.
class Filter final : public rocksdb::CompactionFilter {
 public:
  const char* Name() const override {
    if (is_gone) ++asked_too_late;
    return "Filter";
  }
  std::atomic<bool> is_gone{false};
  mutable std::atomic<int> asked_too_late{0};
};

class SpillLifecycle : public SideBySide {
 protected:
  void put(const std::string& key, const std::string& value) {
    same([&](Side& side) { return side.db->Put(WriteOptions(), key, value); });
  }
  // RocksDB's memtable has a key between those of the spill store, so an ingestion has to flush it.
  void fill() {
    put("b", "main");
    spill_db().SetDiversion(Diversion::always);
    put("a", "spilled");
    put("c", "spilled");
    spill_db().SetDiversion(Diversion::automatic);
  }
  static std::string all(Side& side) {
    const std::unique_ptr<rocksdb::Iterator> iterator(side.db->NewIterator(ReadOptions()));
    std::string text;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
      text += iterator->key().ToString() + "=" + iterator->value().ToString() + " ";
    }
    return text + (iterator->status().ok() ? "" : iterator->status().ToString());
  }
  // Names without numbers, because RocksDB has several files of some kinds.
  static std::set<std::string> kinds_of_files(const std::string& directory) {
    std::set<std::string> kinds;
    if (!std::filesystem::exists(directory)) return kinds;
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      std::string name = entry.path().filename().string();
      name.erase(std::remove_if(name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c) != 0; }),
                 name.end());
      kinds.insert(name.starts_with("LOG") ? "LOG" : name);
    }
    return kinds;
  }
};

// An ingestion would wait with the gate closed for a paused flush, and merges would wait for the ingestion.
TEST_F(SpillLifecycle, PausingBackgroundWorkPausesRollbacks) {
  open();
  fill();
  for (int i = 0; i < 2; ++i) same([](Side& side) { return side.db->PauseBackgroundWork(); });
  std::future<Status> rolled_back;
  {
    const Reached gate_closed("spill.rollback.gate_closed");
    rolled_back = std::async(std::launch::async, [&] { return spill_db().Rollback(); });
    for (int i = 0; i < 50 && !gate_closed.was_reached(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(spill_options_.poll_ms));
    EXPECT_FALSE(gate_closed.was_reached());
    put("d", "while paused");
    EXPECT_EQ(spill_db().GetSpillStatistics().live_entries, 2U);
    same([](Side& side) { return side.db->ContinueBackgroundWork(); });
    for (int i = 0; i < 50 && !gate_closed.was_reached(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(spill_options_.poll_ms));
    EXPECT_FALSE(gate_closed.was_reached());
    same([](Side& side) { return side.db->ContinueBackgroundWork(); });
    EXPECT_TRUE(rolled_back.get().ok());
  }
  same([](Side& side) { return side.db->ContinueBackgroundWork(); });  // it is not paused any more
  same(all);
}

// Calls that RocksDB answers during a pause are answered, or refused with an explanation. They must not wait, because
// the thread that has paused background work is often the one that calls.
TEST_F(SpillLifecycle, CallsWhilePausedAreAnswered) {
  for (const std::size_t spilled : {std::size_t{0}, std::size_t{1'000}, std::size_t{3} << 20}) {
    SCOPED_TRACE(spilled);
    spill_options_.put_back_bytes = 1 << 20;  // needs no background work
    open();
    put("b", std::string(5 << 20, 'm'));  // a large memtable, which would be flushed
    spill_db().SetDiversion(Diversion::always);
    if (spilled > 0) put("a", std::string(spilled, 's'));
    spill_db().SetDiversion(Diversion::automatic);
    same([](Side& side) { return side.db->PauseBackgroundWork(); });
    const std::vector<std::function<Status()>> calls{
        [&] {
          rocksdb::VectorLogPtr logs;
          return spill_db().GetSortedWalFiles(logs);
        },
        [&] {
          std::vector<std::string> files;
          std::uint64_t bytes = 0;
          return spill_db().GetLiveFiles(files, &bytes, /*flush_memtable=*/false);
        },
        [&] {  // complete lists need a flush: these are incomplete, and the end of the copy reports that
          std::vector<rocksdb::LiveFileMetaData> files;
          rocksdb::ColumnFamilyMetaData family;
          std::vector<rocksdb::ColumnFamilyMetaData> all;
          rocksdb::FileChecksumList* const sums = rocksdb::NewFileChecksumList();
          const std::unique_ptr<rocksdb::FileChecksumList> owned(sums);
          Status status = spill_db().DisableFileDeletions();
          spill_db().GetLiveFilesMetaData(&files);
          spill_db().GetColumnFamilyMetaData(spill_db().DefaultColumnFamily(), &family);
          spill_db().GetAllColumnFamilyMetaData(&all);
          if (status.ok()) status = spill_db().GetLiveFilesChecksumInfo(sums);
          const Status ended = spill::enable_file_deletions(spill_db(), /*force=*/false);
          EXPECT_TRUE(ended.IsAborted()) << ended.ToString();
          return status;
        },
        [&] { return spill_db().CreateCheckpoint(path(sides()[0]) + "-copy"); }};
    for (std::size_t i = 0; i < calls.size(); ++i) {
      SCOPED_TRACE(i);
      auto called = std::async(std::launch::async, calls[i]);
      const bool is_answered = called.wait_for(std::chrono::seconds(10)) == std::future_status::ready;
      EXPECT_TRUE(is_answered);
      if (!is_answered) same([](Side& side) { return side.db->ContinueBackgroundWork(); });
      const Status status = called.get();
      EXPECT_TRUE(status.ok()) << status.ToString();
    }
    // A call that flushes would wait, and all others would wait for it.
    auto listed = std::async(std::launch::async, [&] {
      std::vector<std::string> files;
      std::uint64_t bytes = 0;
      return spill_db().GetLiveFiles(files, &bytes, /*flush_memtable=*/true);
    });
    auto written = std::async(std::launch::async, [&] {
      spill_db().SetDiversion(Diversion::always);
      const Status status = spill_db().Put({}, "c", "1");
      spill_db().SetDiversion(Diversion::automatic);
      return status;
    });
    EXPECT_EQ(written.wait_for(std::chrono::seconds(10)), std::future_status::ready);
    EXPECT_EQ(listed.wait_for(std::chrono::seconds(10)), std::future_status::ready);
    same([](Side& side) { return side.db->ContinueBackgroundWork(); });
    EXPECT_TRUE(written.get().ok());
    const Status status = listed.get();
    EXPECT_TRUE(status.IsAborted()) << status.ToString();
    EXPECT_TRUE(plain().db->Put({}, "c", "1").ok());
    same(all);
    std::filesystem::remove_all(path(sides()[0]) + "-copy");
    close();
    for (const Side& side : sides()) std::filesystem::remove_all(path(side));
  }
}

TEST_F(SpillLifecycle, PausingWaitsForARollbackUnderWay) {
  open();
  fill();
  class PauseAtGate final : public steps::Watcher {
   public:
    explicit PauseAtGate(rocksdb::DB& db) : db_(db) { steps::watch(this); }
    ~PauseAtGate() override { steps::watch(nullptr); }
    void reached(std::string_view step) override {
      if (step == "spill.rollback.gate_closed") {
        paused = std::async(std::launch::async, [this] { return db_.PauseBackgroundWork(); });
      }
    }
    std::future<Status> paused;

   private:
    rocksdb::DB& db_;
  };
  PauseAtGate watcher(spill_db());
  EXPECT_TRUE(spill_db().Rollback().ok());
  EXPECT_TRUE(watcher.paused.get().ok());
  EXPECT_TRUE(spill_db().ContinueBackgroundWork().ok());
  same(all);
}

TEST_F(SpillLifecycle, ClosingWhilePausedKeepsWhatWasDiverted) {
  open();
  fill();
  same([](Side& side) { return side.db->PauseBackgroundWork(); });
  open();
  same(all);
}

TEST_F(SpillLifecycle, CloseAnswersAsRocksdb) {
  open();
  fill();
  const rocksdb::Snapshot* snapshots[2];
  for (std::size_t i = 0; i < 2; ++i) snapshots[i] = sides()[i].db->GetSnapshot();
  for (int i = 0; i < 2; ++i) same([](Side& side) { return side.db->Close(); });
  put("d", "after a refused close");
  same(all);
  EXPECT_TRUE(spill_db().Rollback().ok());
  spill_db().SetDiversion(Diversion::always);
  put("e", "diverted after it");
  for (std::size_t i = 0; i < 2; ++i) sides()[i].db->ReleaseSnapshot(snapshots[i]);
  for (Side& side : sides()) {
    for (auto* handle : side.handles) EXPECT_TRUE(side.db->DestroyColumnFamilyHandle(handle).ok());
    side.handles.clear();
  }
  for (int i = 0; i < 2; ++i) same([](Side& side) { return side.db->Close(); });
  EXPECT_FALSE(spill_db().Rollback().ok());
  open();
  same(all);
}

// For calls that are not RocksDB's alone: nothing is acknowledged that would be lost. (RocksDB's own may crash.)
TEST_F(SpillLifecycle, CallsAfterCloseEnd) {
  open();
  fill();
  for (auto* handle : spill().handles) ASSERT_TRUE(spill_db().DestroyColumnFamilyHandle(handle).ok());
  spill().handles.clear();
  ASSERT_TRUE(spill_db().Close().ok());
  EXPECT_EQ(spill_db().GetSpillStatistics().live_entries, 2U);
  EXPECT_FALSE(spill_db().Rollback().ok());
  EXPECT_FALSE(spill_db().CreateCheckpoint(path(spill()) + "-copy").ok());
  spill_db().SetDiversion(Diversion::always);
  const Status status = spill_db().Put(WriteOptions(), "late", "1");
  EXPECT_FALSE(status.ok()) << "it would be acknowledged and nowhere";
}

TEST_F(SpillLifecycle, TheDestructorClosesInSpiteOfSnapshots) {
  open();
  fill();
  // Reachable until the process ends, so that the leak sanitizer does not report them.
  static auto& never_released = *new std::vector<const rocksdb::Snapshot*>;
  for (Side& side : sides()) never_released.push_back(side.db->GetSnapshot());
  same([](Side& side) { return side.db->Close(); });
  open();
  same(all);
}

// RocksDB's Close does not use the objects in its options, and some programs delete them just before.
TEST_F(SpillLifecycle, CloseDoesNotUseTheObjectsOfTheOptions) {
  Filter filter;
  families_[0].options.compaction_filter = &filter;
  families_[0].options.disable_auto_compactions = true;
  for ([[maybe_unused]] const bool fails : {false, true}) {
#if !SPILLWAY_ROCKSDB_AT_LEAST(10, 2)  // from then on as if it were set
    options_.fail_if_options_file_error = fails;
#endif
    for (const bool is_spilled : {false, true}) {
      filter.is_gone = false;
      open();
      spill_db().SetDiversion(Diversion::always);
      put("a", "spilled");
      spill_db().SetDiversion(Diversion::automatic);
      if (!is_spilled) {
        ASSERT_TRUE(spill_db().Rollback().ok());
      }
      for (Side& side : sides()) {
        for (auto* handle : side.handles) EXPECT_TRUE(side.db->DestroyColumnFamilyHandle(handle).ok());
        side.handles.clear();
        filter.is_gone = true;
        EXPECT_TRUE(side.db->Close().ok());
        side.db.reset();
        EXPECT_EQ(filter.asked_too_late.exchange(0), 0) << side.name;
        filter.is_gone = false;
      }
      std::vector<std::string> names;
      ASSERT_TRUE(rocksdb::DB::ListColumnFamilies(options_, path(spill()), &names).ok());
      EXPECT_EQ(names.size(), is_spilled ? 2U : 1U) << "with the guard";
    }
  }
}

TEST_F(SpillLifecycle, NothingIsLostWhenBackgroundWorkIsCancelled) {
  open();
  fill();
  for (Side& side : sides()) rocksdb::CancelAllBackgroundWork(side.db.get(), /*wait=*/true);
  same(all);
  open();
  same(all);
}

TEST_F(SpillLifecycle, ResumesAfterABackgroundError) {
  const auto files = std::make_shared<NoTables>();
  const std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(files);
  options_.env = env.get();
  options_.max_bgerror_resume_count = 0;  // no automatic recovery
  open();
  fill();
  files->refuses = true;
  same([](Side& side) { return side.db->Flush({}); });
  EXPECT_TRUE(spill_db().Rollback().ok()) << "through RocksDB's log, which needs no flush";
  same(all);
  files->refuses = false;
  EXPECT_EQ(same([](Side& side) { return side.db->Resume(); }), "OK");
  put("d", "after it");
  same(all);
  EXPECT_EQ(spill_db().Rollback().ToString(), "OK");
  same(all);
  close();
}

TEST_F(SpillLifecycle, DisabledFileDeletionsAreCounted) {
  open();
  fill();
  for (int i = 0; i < 2; ++i) same([](Side& side) { return side.db->DisableFileDeletions(); });
  EXPECT_TRUE(spill_db().Rollback().ok());
  const auto is_enabled = [](Side& side) {
    std::uint64_t enabled = 9;
    EXPECT_TRUE(side.db->GetIntProperty(rocksdb::DB::Properties::kIsFileDeletionsEnabled, &enabled));
    return std::to_string(enabled);
  };
  same(is_enabled);
  for (int i = 0; i < 3; ++i) {
    same([](Side& side) { return spill::enable_file_deletions(*side.db, /*force=*/false); });
    same(is_enabled);
  }
  same(all);
}

TEST_F(SpillLifecycle, OtherDirectoriesForLogAndTables) {
  for (Side& side : sides()) {
    options_.wal_dir = path(side) + "-log";
    options_.db_paths = {{path(side) + "-tables", std::uint64_t{1} << 30}};
    ASSERT_TRUE(try_open(side).ok());
  }
  fill();
  EXPECT_TRUE(spill_db().Rollback().ok());
  same(all);
  spill_db().SetDiversion(Diversion::always);
  put("d", "spilled");
  close();
  for (Side& side : sides()) {
    options_.wal_dir = path(side) + "-log";
    options_.db_paths = {{path(side) + "-tables", std::uint64_t{1} << 30}};
    ASSERT_TRUE(try_open(side).ok());
  }
  same(all);
}

// What RocksDB refuses to open is refused with RocksDB's message, and no file of the library is left.
TEST_F(SpillLifecycle, ARefusedOpenLeavesNothingBehind) {
  const rocksdb::DBOptions usual = options_;
  const auto expect_refused = [&](const char* what) {
    SCOPED_TRACE(what);
    std::vector<std::string> answers;
    for (Side& side : sides()) {
      std::string text = try_open(side).ToString();
      EXPECT_NE(text, "OK");
      for (std::size_t at = 0; (at = text.find(path(side))) != std::string::npos;) text.erase(at, path(side).size());
      answers.push_back(text);
    }
    EXPECT_EQ(answers[1], answers[0]);
    EXPECT_EQ(kinds_of_files(path(spill())), kinds_of_files(path(plain())));
  };
  options_.create_if_missing = false;
  expect_refused("no database, and none is to be made");
  options_ = usual;
  for (const Side& side : sides()) {  // by plain RocksDB, so that neither has a spill store
    rocksdb::DB* db = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open(rocksdb::Options(options_, {}), path(side), spill::DbOut(&db)).ok());
    std::unique_ptr<rocksdb::DB> owned(db);
    rocksdb::ColumnFamilyHandle* handle = nullptr;
    ASSERT_TRUE(owned->CreateColumnFamily({}, "other", &handle).ok());
    ASSERT_TRUE(owned->DestroyColumnFamilyHandle(handle).ok());
  }
  expect_refused("a column family is not listed");
  families_.emplace_back("other", rocksdb::ColumnFamilyOptions());
  options_.error_if_exists = true;
  expect_refused("there is a database");
  options_ = usual;
  options_.create_missing_column_families = false;
  families_.emplace_back("missing", rocksdb::ColumnFamilyOptions());
  expect_refused("a column family is missing");
  families_.pop_back();
  families_.back().options.comparator = rocksdb::ReverseBytewiseComparator();
  expect_refused("another comparator");
  families_.back().options.comparator = rocksdb::BytewiseComparator();
  for (const Side& side : sides()) std::ofstream(path(side) + "/CURRENT") << "nothing\n";
  expect_refused("a damaged CURRENT");
}

TEST_F(SpillLifecycle, ASecondOpenIsRefusedAndDisturbsNothing) {
  open();
  fill();
  for (Side& side : sides()) {
    rocksdb::DB* db = nullptr;
    DB* spilled = nullptr;
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    const Status status = &side == &plain()
                              ? rocksdb::DB::Open(options_, path(side), families_, &handles, spill::DbOut(&db))
                              : DB::Open(options_, spill_options_, path(side), families_, &handles, &spilled);
    EXPECT_TRUE(status.IsIOError()) << status.ToString();
    EXPECT_NE(status.ToString().find("lock"), std::string::npos) << status.ToString();
  }
  spill_db().SetDiversion(Diversion::always);
  put("d", "spilled");
  same(all);
  open();
  same(all);
}

}  // namespace
}  // namespace spillway::clients
