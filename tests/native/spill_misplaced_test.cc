// RocksDB may put a file that it ingests below older versions of its keys (native/spill/main_db/ingested_files.h).
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <rocksdb/utilities/options_util.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "at_each_step.h"
#include "spill/compat/db_out.h"
#include "spill/compat/rocksdb_version.h"
#include "spill/main_db/ingested_files.h"
#include "spill_rocksdb_of.h"
#include "spillway/db.h"
#include "temporary_directory.h"

namespace spillway::clients {
namespace {

using rocksdb::ColumnFamilyMetaData;
using rocksdb::SstFileMetaData;

struct File {
  int level;
  std::uint64_t number;
  std::string smallest;
  std::string largest;
  std::uint64_t sequence = 0;
};

ColumnFamilyMetaData family_of(const std::vector<File>& files) {
  constexpr int kLevels = 7;
  std::vector<std::vector<SstFileMetaData>> of_level(kLevels);
  for (const File& file : files) {
    SstFileMetaData& one = of_level[static_cast<std::size_t>(file.level)].emplace_back();
    one.file_number = file.number;
    one.smallestkey = file.smallest;
    one.largestkey = file.largest;
    one.smallest_seqno = file.sequence;
    one.largest_seqno = file.sequence;
  }
  ColumnFamilyMetaData family;
  for (int level = 0; level < kLevels; ++level) {
    family.levels.emplace_back(level, 0, std::move(of_level[static_cast<std::size_t>(level)]));
  }
  return family;
}

bool lies_well(const std::vector<File>& files, const spill::FileNumbers& ingested) {
  return spill::lie_above_older(family_of(files), *rocksdb::BytewiseComparator(), ingested, /*before=*/100);
}

TEST(IngestedFilesTest, TheNewestL0FileIsAboveAllOthers) {
  EXPECT_TRUE(lies_well({{0, 7, "a", "z", 50}, {0, 9, "a", "z", 101}, {1, 5, "a", "z"}}, {9}));
  EXPECT_TRUE(lies_well({{0, 9, "a", "z", 101}, {0, 10, "m", "p", 102}}, {9, 10}));
}
TEST(IngestedFilesTest, AnL0FileWithoutANewNumberIsBelowOthers) {
  EXPECT_FALSE(lies_well({{0, 7, "a", "z", 50}, {0, 9, "m", "p", 0}}, {9}));
  EXPECT_TRUE(lies_well({{0, 7, "a", "c", 50}, {0, 9, "m", "p", 0}}, {9}));
}
TEST(IngestedFilesTest, DeeperItMayNotLieBelowWhatItOverlaps) {
  EXPECT_FALSE(lies_well({{0, 7, "k", "k", 50}, {6, 9, "a", "z"}}, {9}));
  EXPECT_FALSE(lies_well({{1, 7, "z", "zz"}, {6, 9, "a", "z"}}, {9})) << "both ends belong to a file";
  EXPECT_FALSE(lies_well({{5, 7, "0", "a"}, {6, 9, "a", "z"}}, {9}));
  EXPECT_FALSE(lies_well({{4, 7, "k", "k"}, {5, 9, "a", "z", 101}}, {9})) << "whatever its number is";
}
TEST(IngestedFilesTest, InDeeperLevelsItMayBeAboveOthersOrNextToThem) {
  EXPECT_TRUE(lies_well({{0, 7, "0", "9", 50}, {5, 9, "a", "f"}, {5, 8, "g", "z"}, {6, 3, "a", "z"}}, {9}));
  EXPECT_TRUE(lies_well({{0, 7, "0", "9", 50}, {5, 9, "a", "f"}, {6, 10, "g", "z"}}, {9, 10}));
}
TEST(IngestedFilesTest, WhatIsNowhereIsNotThere) { EXPECT_FALSE(lies_well({{0, 7, "a", "z", 50}}, {9})); }

// docs/decisions/0017
TEST(IngestedFilesTest, NothingIsIngestedWhileRocksdbCountsAsStopped) {
  using Reason = rocksdb::BackgroundErrorReason;
  using Severity = rocksdb::Status::Severity;
  struct Case {
    Severity severity;
    Reason reason;
    bool may_ingest;  // from then on
    bool is_stuck;
  };
  const Case cases[] = {
      {Severity::kHardError, Reason::kWriteCallback, false, true},
      {Severity::kFatalError, Reason::kFlush, false, true},
      {Severity::kSoftError, Reason::kCompaction, true, false},
      {Severity::kNoError, Reason::kCompaction, true, false},
      {Severity::kNoError, Reason::kFlush, false, false},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(testing::Message() << static_cast<int>(one.severity) << ", " << static_cast<int>(one.reason));
    spill::IngestedFiles files;
    EXPECT_TRUE(files.may_ingest());
    rocksdb::Status error(rocksdb::Status::IOError("no"), one.severity);
    files.OnBackgroundError(one.reason, &error);
    EXPECT_EQ(files.may_ingest(), one.may_ingest);
    EXPECT_EQ(files.is_stuck(), one.is_stuck);
  }
}

// DB::Resume() calls a recovery ended that RocksDB has begun beside it, and Close() then does not wait for it.
TEST(IngestedFilesTest, RocksdbBeginsNoRecoveryOfItsOwnBesideOneByHand) {
  using Reason = rocksdb::BackgroundErrorReason;
  spill::IngestedFiles files;
  rocksdb::Status full(rocksdb::Status::NoSpace(), rocksdb::Status::kHardError);
  const auto announced = [&] {
    bool begins = true;
    files.OnBackgroundError(Reason::kFlush, &full);
    files.OnErrorRecoveryBegin(Reason::kFlush, full, &begins);
    return begins;
  };
  EXPECT_FALSE(files.recovers_by_itself());
  EXPECT_TRUE(announced());
  EXPECT_TRUE(files.recovers_by_itself());
  {
    const spill::IngestedFiles::ByHandOnly outer(files);
    { const spill::IngestedFiles::ByHandOnly inner(files); }
    EXPECT_FALSE(announced());
    EXPECT_FALSE(files.recovers_by_itself());
  }
  EXPECT_FALSE(files.is_just_recovered());
  {
    const spill::IngestedFiles::ByHandOnly by_hand(files);
    files.OnErrorRecoveryCompleted(full);
    EXPECT_FALSE(files.is_just_recovered());
  }
  files.OnErrorRecoveryCompleted(full);
  EXPECT_TRUE(files.is_just_recovered());
  EXPECT_TRUE(announced());
  files.OnBackgroundError(Reason::kFlush, &full);  // not announced: RocksDB cannot find out whether there is space
  EXPECT_FALSE(files.recovers_by_itself());
}

TEST(IngestedFilesTest, NumbersAreThoseOfTheFilesThatAreExpected) {
  spill::IngestedFiles files;
  rocksdb::ExternalFileIngestionInfo info;
  files.expect("/somewhere/1-0.sst");
  info.external_file_path = "/somewhere/1-0.sst";
  info.internal_file_path = "/database/000123.sst";
  files.OnExternalFileIngested(nullptr, info);
  info.external_file_path = "/somewhere/else.sst";
  files.OnExternalFileIngested(nullptr, info);
  EXPECT_EQ(files.take("/somewhere/else.sst"), std::nullopt);
  EXPECT_EQ(files.take("/somewhere/1-0.sst"), 123U);
  EXPECT_EQ(files.take("/somewhere/1-0.sst"), std::nullopt);
}

rocksdb::Options small_options() {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  options.write_buffer_size = 64 << 10;
  options.allow_fallocate = false;
  options.max_background_jobs = 8;
  options.level0_file_num_compaction_trigger = 1;
  options.disable_auto_compactions = true;
  options.level_compaction_dynamic_level_bytes = false;  // RocksDB ingests into every level
  options.info_log_level = rocksdb::FATAL_LEVEL;
  return options;
}

// From 9.0 on RocksDB ingests into the levels of universal compaction as into any other.
constexpr int kLevelsOfUniversal = SPILLWAY_ROCKSDB_AT_LEAST(9, 0) ? 6 : 1;

SpillOptions ingesting() {
  SpillOptions spill;
  spill.capacity_bytes = 8 << 20;
  spill.generation_bytes = 1 << 20;
  spill.put_back_bytes = 0;
  spill.rollback = RollbackPolicy::off;
  return spill;
}

std::unique_ptr<DB> open(const std::string& path, const rocksdb::Options& options) {
  DB* db = nullptr;
  const rocksdb::Status status = DB::Open(options, ingesting(), path, &db);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return std::unique_ptr<DB>(db);
}

// Makes RocksDB put m below a file with a and z, into the gap: correct, but by ranges it looks misplaced.
void write_around_m(DB& db) {
  db.SetDiversion(Diversion::never);
  EXPECT_TRUE(db.Put({}, "a", "1").ok());
  EXPECT_TRUE(db.Put({}, "z", "1").ok());
  EXPECT_TRUE(db.Flush({}).ok());
  db.SetDiversion(Diversion::always);
  EXPECT_TRUE(db.Put({}, "m", "new").ok());
}

std::string value_of(rocksdb::DB& db, const std::string& key) {
  std::string value;
  const rocksdb::Status status = db.Get({}, key, &value);
  return status.ok() ? value : status.ToString();
}

std::string spilled_bytes(DB& db) {
  std::string bytes;
  EXPECT_TRUE(db.GetProperty("spillway.live-bytes", &bytes));
  return bytes;
}

TEST(SpillMisplaced, WhatMayBeMisplacedIsIngestedAgainUntilItIsNot) {
  const TemporaryDirectory scratch(memory_path());
  const std::unique_ptr<DB> db = open(scratch.path("db"), small_options());
  write_around_m(*db);
  std::vector<std::string> seen;
  const AtEach misplaced("spill.rollback.misplaced", [&] { seen.push_back(value_of(*db, "m")); });
  EXPECT_TRUE(db->Rollback().ok());
  EXPECT_EQ(misplaced.times(), 6) << "once in each level below L0";
  EXPECT_EQ(seen, std::vector<std::string>(6, "new"));
  EXPECT_EQ(spilled_bytes(*db), "0");
  EXPECT_EQ(value_of(rocksdb_of(*db), "m"), "new");
}

TEST(SpillMisplaced, SoItIsWhereCommitsWaitForIt) {
  const TemporaryDirectory scratch(memory_path());
  const std::unique_ptr<DB> db = open(scratch.path("db"), small_options());
  write_around_m(*db);
  const AtEach misplaced("spill.rollback.misplaced", [] {});
  rocksdb::DB* const base = db->GetRootDB();  // first brings back everything
  EXPECT_EQ(misplaced.times(), 6);
  EXPECT_EQ(value_of(*base, "m"), "new");
}

TEST(SpillMisplaced, SoItIsWithUniversalCompaction) {
  const TemporaryDirectory scratch(memory_path());
  rocksdb::Options options = small_options();
  options.compaction_style = rocksdb::kCompactionStyleUniversal;
  const std::unique_ptr<DB> db = open(scratch.path("db"), options);
  write_around_m(*db);
  const AtEach misplaced("spill.rollback.misplaced", [] {});
  EXPECT_TRUE(db->Rollback().ok());
  EXPECT_EQ(misplaced.times(), kLevelsOfUniversal);
  EXPECT_EQ(value_of(rocksdb_of(*db), "m"), "new");
}

TEST(SpillMisplaced, SoItIsInTheCopyOfACheckpoint) {
  const TemporaryDirectory scratch(memory_path());
  const std::unique_ptr<DB> db = open(scratch.path("db"), small_options());
  write_around_m(*db);
  EXPECT_TRUE(db->CreateCheckpoint(scratch.path("copy")).ok());
  rocksdb::DB* opened = nullptr;
  ASSERT_TRUE(rocksdb::DB::Open(small_options(), scratch.path("copy"), spill::DbOut(&opened)).ok());
  const std::unique_ptr<rocksdb::DB> copy(opened);
  EXPECT_EQ(value_of(*copy, "m"), "new");
  rocksdb::ColumnFamilyMetaData files;
  copy->GetColumnFamilyMetaData(&files);
  EXPECT_EQ(files.levels.front().files.size(), 2U) << "ingested until it was above the other file";
}

// Compactions are off while the copy is made.
TEST(SpillMisplaced, ACopysOptionsFileHasTheUsersCompactions) {
  for (const bool disabled : {true, false}) {
    const TemporaryDirectory scratch(memory_path());
    rocksdb::Options options = small_options();
    options.disable_auto_compactions = disabled;
    const std::unique_ptr<DB> db = open(scratch.path("db"), options);
    write_around_m(*db);
    EXPECT_TRUE(db->CreateCheckpoint(scratch.path("copy")).ok());
    rocksdb::DBOptions database;
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    ASSERT_TRUE(rocksdb::LoadLatestOptions({}, scratch.path("copy"), &database, &families).ok());
    ASSERT_EQ(families.size(), 1U);
    EXPECT_EQ(families.front().options.disable_auto_compactions, disabled);
  }
}

TEST(SpillMisplaced, WhatMayBeMisplacedIsThereAfterAReopening) {
  const TemporaryDirectory scratch(memory_path());
  rocksdb::Options options = small_options();
  {
    const std::unique_ptr<DB> db = open(scratch.path("db"), options);
    write_around_m(*db);
    EXPECT_TRUE(db->Rollback().ok());
    EXPECT_TRUE(db->Put({}, "n", "newer").ok());
    EXPECT_TRUE(db->Put({}, "m", "newer").ok());
  }
  const std::unique_ptr<DB> db = open(scratch.path("db"), options);
  EXPECT_EQ(value_of(*db, "m"), "newer");
  EXPECT_EQ(value_of(*db, "n"), "newer");
}

// Calls a function after RocksDB has ingested files and before the caller of the ingestion continues.
class WhenIngested final : public rocksdb::EventListener {
 public:
  explicit WhenIngested(std::function<void()> what) : what_(std::move(what)) {}
  void OnExternalFileIngested(rocksdb::DB*, const rocksdb::ExternalFileIngestionInfo& info) override {
    if (info.global_seqno > 0) what_();
  }

 private:
  const std::function<void()> what_;
};

// No log has the sequence number of the ingestion, and a compaction removes it from the table. Without a note of it,
// later diverted writes would look like writes after a lost one.
TEST(SpillMisplaced, WritesDivertedAfterItSurviveAKill) {
  const TemporaryDirectory scratch(memory_path());
  rocksdb::Options options = small_options();
  DB* diverting = nullptr;
  int puts = 0;
  options.listeners.push_back(std::make_shared<WhenIngested>([&] {
    if (++puts > 1) return;
    std::thread([&] { EXPECT_TRUE(diverting->Put({}, "x", "1").ok()); }).join();
  }));
  const std::unique_ptr<DB> db = open(scratch.path("db"), options);
  diverting = db.get();
  write_around_m(*db);
  bool is_copied = false;
  const AtEach sorted("spill.rollback.sorted", [&] {
    if (puts == 0 || is_copied) return;
    rocksdb::CompactRangeOptions all;
    all.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
    EXPECT_TRUE(rocksdb_of(*db).CompactRange(all, nullptr, nullptr).ok());
    std::filesystem::copy(scratch.path("db"), scratch.path("killed"), std::filesystem::copy_options::recursive);
    is_copied = true;
  });
  EXPECT_TRUE(db->Rollback().ok());
  ASSERT_TRUE(is_copied);
  options.listeners.clear();
  const std::unique_ptr<DB> killed = open(scratch.path("killed"), options);
  EXPECT_EQ(value_of(*killed, "x"), "1");
  EXPECT_EQ(value_of(*killed, "m"), "new");
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // the sanitizers replace this function, too
#define SPILLWAY_CAN_SLOW_DOWN
#endif

#ifdef SPILLWAY_CAN_SLOW_DOWN
// A thread that waits on a condition of RocksDB's compactions continues only after a delay.
std::atomic<bool> compactions_are_slow{false};

class CompactionsBegun final : public rocksdb::EventListener {
 public:
  void OnCompactionBegin(rocksdb::DB*, const rocksdb::CompactionJobInfo& info) override {
    if (info.cf_name != "other") return;
    {
      const std::lock_guard lock(mutex_);
      any_ = true;
    }
    begun_.notify_one();
  }
  void forget() {
    const std::lock_guard lock(mutex_);
    any_ = false;
  }
  void await() {
    std::unique_lock lock(mutex_);
    begun_.wait_for(lock, std::chrono::milliseconds(20), [this] { return any_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable begun_;
  bool any_ = false;
};

constexpr auto kFor = std::chrono::seconds(3);

TEST(SpillMisplaced, WhatIsBroughtBackIsNewestThoughACompactionIsJustEnding) {
  const TemporaryDirectory scratch(memory_path());
  rocksdb::Options options = small_options();
  options.disable_auto_compactions = false;
  rocksdb::Options noise = options;
  noise.level0_file_num_compaction_trigger = 8;
  const auto begun = std::make_shared<CompactionsBegun>();
  options.listeners.push_back(begun);
  std::vector<rocksdb::ColumnFamilyDescriptor> families{{"default", options}, {"other", options}};
  for (int i = 0; i < 6; ++i) families.emplace_back("noise-" + std::to_string(i), noise);
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  DB* opened = nullptr;
  ASSERT_TRUE(DB::Open(options, ingesting(), scratch.path("db"), families, &handles, &opened).ok());
  const std::unique_ptr<DB> db(opened);

  compactions_are_slow = true;
  std::atomic<bool> is_over{false};
  std::vector<std::thread> others;  // write to the MANIFEST
  for (std::size_t i = 2; i < handles.size(); ++i) {
    others.emplace_back([&, i] {
      rocksdb::FlushOptions at_once;
      at_once.allow_write_stall = true;
      while (!is_over) {
        EXPECT_TRUE(rocksdb_of(*db).Put({}, handles[i], "k", "v").ok());
        EXPECT_TRUE(rocksdb_of(*db).Flush(at_once, handles[i]).ok());
      }
    });
  }
  rocksdb::FlushOptions beside;
  beside.wait = false;
  beside.allow_write_stall = true;
  const auto end = std::chrono::steady_clock::now() + kFor;
  for (int i = 0; std::chrono::steady_clock::now() < end && !HasFailure(); ++i) {
    const std::string key = "k" + std::to_string(i);
    begun->forget();
    db->SetDiversion(Diversion::never);
    EXPECT_TRUE(db->Put({}, handles[1], key, "old").ok());
    db->Flush(beside, handles[1]).PermitUncheckedError();
    db->SetDiversion(Diversion::always);
    EXPECT_TRUE(db->Put({}, handles[1], key, "new").ok());
    begun->await();
    EXPECT_TRUE(db->Rollback().ok());
    std::string value;
    EXPECT_TRUE(db->Get({}, handles[1], key, &value).ok());
    EXPECT_EQ(value, "new") << i;
  }
  is_over = true;
  compactions_are_slow = false;
  for (std::thread& other : others) other.join();
  for (rocksdb::ColumnFamilyHandle* handle : handles) EXPECT_TRUE(db->DestroyColumnFamilyHandle(handle).ok());
}

#endif

}  // namespace
}  // namespace spillway::clients

#ifdef SPILLWAY_CAN_SLOW_DOWN
// Replaces the C library's function: a thread may get the mutex at any time after it was woken.
extern "C" __attribute__((visibility("default"))) int pthread_cond_wait(pthread_cond_t* condition,
                                                                        pthread_mutex_t* mutex) {
  using Wait = int (*)(pthread_cond_t*, pthread_mutex_t*);
  static const auto wait = [] {
    for (const char* version : {"GLIBC_2.3.2", "GLIBC_2.17"}) {
      if (void* const found = dlvsym(RTLD_NEXT, "pthread_cond_wait", version)) return reinterpret_cast<Wait>(found);
    }
    return reinterpret_cast<Wait>(dlsym(RTLD_NEXT, "pthread_cond_wait"));
  }();
  const int result = wait(condition, mutex);
  if (!spillway::clients::compactions_are_slow.load(std::memory_order_relaxed)) return result;
  char name[16] = {};
  pthread_getname_np(pthread_self(), name, sizeof(name));
  if (!std::string_view(name).starts_with("rocksdb:low")) return result;
  pthread_mutex_unlock(mutex);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  pthread_mutex_lock(mutex);
  return result;
}
#endif
