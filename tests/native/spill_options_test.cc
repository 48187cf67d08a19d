// RocksDB's options as a user sees them, compared with plain RocksDB: in the OPTIONS file, in GetOptions, after
// SetOptions.
#include <gtest/gtest.h>
#include <rocksdb/comparator.h>
#include <rocksdb/convenience.h>
#include <rocksdb/env.h>
#include <rocksdb/listener.h>
#include <rocksdb/utilities/checkpoint.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/file_bytes.h"
#include "spill_rocksdb_of.h"
#include "spill_side_by_side.h"

namespace spillway::clients {
namespace {

using Settings = std::unordered_map<std::string, std::string>;

// The text of the newest OPTIONS file, with `directory` replacing its own path.
std::string options_file(const std::string& directory) {
  std::string newest;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("OPTIONS-") && !name.ends_with(".dbtmp")) newest = std::max(newest, name);
  }
  std::string text = file_bytes(directory + "/" + newest);
  for (std::size_t at = 0; (at = text.find(directory)) != std::string::npos;) {
    text.replace(at, directory.size(), "directory");
  }
  return text;
}

rocksdb::ColumnFamilyOptions with_triggers(int slowdown, int stop, std::uint64_t soft, std::uint64_t hard) {
  rocksdb::ColumnFamilyOptions options;
  options.level0_slowdown_writes_trigger = slowdown;
  options.level0_stop_writes_trigger = stop;
  options.soft_pending_compaction_bytes_limit = soft;
  options.hard_pending_compaction_bytes_limit = hard;
  return options;
}

class Listener final : public rocksdb::EventListener {
 public:
  const char* Name() const override { return "TheUsers"; }
};

class SpillOptionsFile : public SideBySide {
 protected:
  void expect_same_file() {
    const std::string expected = options_file(path(plain()));
    EXPECT_NE(expected.find("level0_slowdown_writes_trigger"), std::string::npos);
    EXPECT_EQ(options_file(path(spill())), expected);
  }
  // As text, which has every option that can be serialised.
  void expect_same_options() {
    for (std::size_t i = 0; i < plain().handles.size(); ++i) {
      same([&](Side& side) { return text(side.db->GetOptions(side.handles[i])); });
    }
    same([&](Side& side) {
      std::string text;
      EXPECT_TRUE(rocksdb::GetStringFromDBOptions(&text, side.db->GetDBOptions()).ok());
      return without(text, path(side));
    });
  }
  void create(const std::string& name, const rocksdb::ColumnFamilyOptions& options) {
    for (Side& side : sides()) {
      rocksdb::ColumnFamilyHandle* handle = nullptr;
      const rocksdb::Status status = side.db->CreateColumnFamily(options, name, &handle);
      ASSERT_TRUE(status.ok()) << status.ToString();
      side.handles.push_back(handle);
    }
    families_.emplace_back(name, options);
  }
  // In RocksDB the family's slowdown is off, whatever the user reads.
  void expect_no_slowdown(std::size_t family) {
    const rocksdb::Options runs = rocksdb_of(spill_db()).GetOptions(spill().handles[family]);
    EXPECT_EQ(runs.level0_slowdown_writes_trigger, runs.level0_stop_writes_trigger);
    EXPECT_EQ(runs.soft_pending_compaction_bytes_limit, runs.hard_pending_compaction_bytes_limit);
  }
  static std::string text(const rocksdb::Options& options) {
    std::string text;
    EXPECT_TRUE(rocksdb::GetStringFromColumnFamilyOptions(&text, options).ok());
    return text;
  }
  static std::string without(std::string text, const std::string& part) {
    for (std::size_t at = 0; (at = text.find(part)) != std::string::npos;) text.erase(at, part.size());
    return text;
  }
};

TEST_F(SpillOptionsFile, IsThatOfPlainRocksdb) {
  options_.listeners = {std::make_shared<Listener>()};
  options_.avoid_flush_during_recovery = true;
  families_.emplace_back("other", with_triggers(12, 30, 1 << 20, 1 << 21));
  for (int opened = 0; opened < 2; ++opened) {  // the second time there is a log to filter
    open();
    expect_same_file();
    expect_same_options();
    for (std::size_t i = 0; i < families_.size(); ++i) expect_no_slowdown(i);
  }
  for (const Side& side : sides()) {
    EXPECT_EQ(side.db->GetEnv(), rocksdb::Env::Default());
    EXPECT_EQ(side.db->GetFileSystem(), rocksdb::Env::Default()->GetFileSystem().get());
    EXPECT_EQ(side.db->GetDBOptions().env, rocksdb::Env::Default());
    EXPECT_EQ(side.db->GetDBOptions().wal_filter, nullptr);
    EXPECT_EQ(side.db->GetDBOptions().listeners.size(), 1U);
    EXPECT_TRUE(side.db->GetDBOptions().avoid_flush_during_recovery);
  }
}

// RocksDB corrects triggers that contradict each other.
TEST_F(SpillOptionsFile, HasTheTriggersAsRocksdbCorrectsThem) {
  struct Case {
    int slowdown, stop;
    std::uint64_t soft, hard;
  };
  int number = 0;
  for (const Case& one : std::initializer_list<Case>{{20, 36, 64, 256},
                                                     {50, 36, 64, 256},
                                                     {2, 3, 64, 256},
                                                     {-1, 36, 64, 256},
                                                     {20, 36, 0, 256},
                                                     {20, 36, 64, 0},
                                                     {20, 36, 0, 0},
                                                     {20, 36, 256, 64}}) {
    families_.emplace_back("family" + std::to_string(number++),
                           with_triggers(one.slowdown, one.stop, one.soft, one.hard));
  }
  rocksdb::ColumnFamilyOptions fifo = with_triggers(20, 36, 64, 256);
  fifo.compaction_style = rocksdb::kCompactionStyleFIFO;
  families_.emplace_back("fifo", fifo);
  rocksdb::ColumnFamilyOptions no_trigger = with_triggers(0, 0, 64, 256);
  no_trigger.level0_file_num_compaction_trigger = 0;
  families_.emplace_back("no trigger", no_trigger);
  open();
  expect_same_file();
  expect_same_options();
  for (std::size_t i = 0; i < families_.size(); ++i) expect_no_slowdown(i);
}

TEST_F(SpillOptionsFile, KnowsFamiliesThatAreMadeAtRunTime) {
  open();
  // Names with characters that RocksDB escapes, and one that looks like another section.
  for (const char* name :
       {"plain", "a \"quoted\" one", "with # and : and \\", "line\nbreak", "[CFOptions \"default\"]"}) {
    create(name, with_triggers(11, 31, 1 << 20, 1 << 21));
    expect_no_slowdown(spill().handles.size() - 1);
    expect_same_file();
  }
  expect_same_options();
  // An existing one does not change.
  same([&](Side& side) {
    rocksdb::ColumnFamilyHandle* handle = nullptr;
    return side.db->CreateColumnFamily(with_triggers(5, 6, 7, 8), "plain", &handle);
  });
  same([&](Side& side) { return side.db->SetDBOptions({{"max_background_jobs", "3"}}); });
  expect_same_file();
  // Dropped, and created again.
  same([&](Side& side) { return side.db->DropColumnFamily(side.handles[1]); });
  expect_same_file();
  for (Side& side : sides()) {
    EXPECT_TRUE(side.db->DestroyColumnFamilyHandle(side.handles[1]).ok());
    side.handles.erase(side.handles.begin() + 1);
  }
  families_.erase(families_.begin() + 1);
  create("plain", with_triggers(9, 19, 1 << 10, 1 << 11));
  expect_same_file();
  expect_same_options();
  open();
  expect_same_file();
}

TEST_F(SpillOptionsFile, FollowsSetOptions) {
  families_.emplace_back("other", with_triggers(12, 30, 1 << 20, 1 << 21));
  open();
  const std::vector<Settings> changes{{{"level0_slowdown_writes_trigger", "7"}},
                                      {{"level0_stop_writes_trigger", "17"}},
                                      {{"soft_pending_compaction_bytes_limit", "1M"}},
                                      {{"hard_pending_compaction_bytes_limit", "123456789"}},
                                      {{"level0_slowdown_writes_trigger", "70"}},  // above the stop: accepted as given
                                      {{"level0_slowdown_writes_trigger", "8"}, {"write_buffer_size", "1048576"}},
                                      {{"disable_auto_compactions", "true"}},
                                      {},
                                      {{"level0_slowdown_writes_trigger", "no number"}},
                                      {{"level0_slowdown_writes_trigger", "9"}, {"no_option", "1"}},
                                      {{"level0_slowdown_writes_trigger", "9"}, {"num_levels", "3"}},
                                      {{"level0_stop_writes_trigger", "40"}, {"ttl", "x"}}};
  for (const Settings& change : changes) {
    SCOPED_TRACE(change.empty() ? "nothing" : change.begin()->first);
    same([&](Side& side) { return side.db->SetOptions(side.handles[1], change); });
    expect_same_file();
    expect_same_options();
    expect_no_slowdown(1);
  }
  same([&](Side& side) { return side.db->EnableAutoCompaction({side.handles[1]}); });
  expect_same_file();
  expect_same_options();
  expect_no_slowdown(1);
}

// RocksDB reports the length of the file to a caller that copies the database.
TEST_F(SpillOptionsFile, HasTheSizeThatRocksdbReportsAndIsCompleteInACheckpoint) {
  families_.emplace_back("shorter", with_triggers(2, 100'000'000, 1, std::uint64_t{1} << 40));
  open();
  for (const char* const slowdown : {"4", "2000000000"}) {  // shorter than RocksDB's own, and longer
    for (Side& side : sides()) {
      ASSERT_TRUE(side.db->SetOptions(side.handles[1], {{"level0_slowdown_writes_trigger", slowdown}}).ok());
      std::vector<rocksdb::LiveFileStorageInfo> files;
      ASSERT_TRUE(side.db->GetLiveFilesStorageInfo({}, &files).ok());
      const auto is_options = [](const auto& file) { return file.file_type == rocksdb::kOptionsFile; };
      const auto file = std::find_if(files.begin(), files.end(), is_options);
      ASSERT_NE(file, files.end());
      EXPECT_EQ(file->size, std::filesystem::file_size(file->directory + "/" + file->relative_filename)) << side.name;

      rocksdb::Checkpoint* made = nullptr;
      ASSERT_TRUE(rocksdb::Checkpoint::Create(side.db.get(), &made).ok());
      const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
      const std::string copy = path(side) + "-copy" + slowdown;
      ASSERT_TRUE(checkpoint->CreateCheckpoint(copy).ok());
      EXPECT_EQ(without(options_file(copy), path(side)), without(options_file(path(side)), "directory"));
    }
  }
}

// A file that a process left when it was killed before the rename. RocksDB neither reads nor deletes it.
TEST_F(SpillOptionsFile, IsWrittenAgainAfterACrash) {
  open();
  close();
  for (Side& side : sides()) std::ofstream(path(side) + "/OPTIONS-000001.dbtmp") << "[CFOptions \"default\"";
  open();
  expect_same_file();
}

TEST_F(SpillOptionsFile, FamiliesAtRunTimeAreRefusedAsOpenedOnesAre) {
  class Loose final : public rocksdb::Comparator {
   public:
    int Compare(const rocksdb::Slice& a, const rocksdb::Slice& b) const override { return a.compare(b); }
    const char* Name() const override { return "Loose"; }
    void FindShortestSeparator(std::string*, const rocksdb::Slice&) const override {}
    void FindShortSuccessor(std::string*) const override {}
    bool CanKeysWithDifferentByteContentsBeEqual() const override { return true; }
  };
  const Loose loose;
  open();
  rocksdb::ColumnFamilyOptions options;
  options.comparator = &loose;
  rocksdb::ColumnFamilyHandle* handle = nullptr;
  const rocksdb::Status created = spill_db().CreateColumnFamily(options, "loose", &handle);
  EXPECT_TRUE(created.IsNotSupported());
  close();
  families_.emplace_back("loose", options);
  EXPECT_EQ(try_open(spill()).ToString(), created.ToString());
}

// There are no snapshots with it, and a put may modify a value in place.
TEST_F(SpillOptionsFile, UpdatesInPlaceAreRefused) {
  open();
  rocksdb::ColumnFamilyOptions options;
  options.inplace_update_support = true;
  rocksdb::ColumnFamilyHandle* handle = nullptr;
  EXPECT_TRUE(spill_db().CreateColumnFamily(options, "in place", &handle).IsNotSupported());
  close();
  options_.allow_concurrent_memtable_write = false;
  families_.front().options.inplace_update_support = true;
  const rocksdb::Status status = try_open(spill());
  EXPECT_TRUE(status.IsNotSupported());
  EXPECT_NE(status.ToString().find("inplace_update_support"), std::string::npos) << status.ToString();
}

// The detector diverts one L0 file before RocksDB's stop, for which RocksDB sends no notification.
TEST_F(SpillOptionsFile, EnableAutoCompactionMovesTheDetectorsTriggers) {
  families_.front().options = with_triggers(2, 3, 0, 0);
  families_.front().options.disable_auto_compactions = true;
  families_.front().options.level0_file_num_compaction_trigger = 2;
  open();
  for (const char* key : {"a", "b"}) {
    ASSERT_TRUE(spill_db().Put({}, key, "value").ok());
    ASSERT_TRUE(spill_db().Flush({}).ok());
  }
  EXPECT_FALSE(spill_db().GetSpillStatistics().diverting);
  ASSERT_TRUE(rocksdb_of(spill_db()).PauseBackgroundWork().ok());  // no compaction removes the files
  ASSERT_TRUE(spill_db().EnableAutoCompaction({spill_db().DefaultColumnFamily()}).ok());
  for (int i = 0; i < 1000 && !spill_db().GetSpillStatistics().diverting; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(spill_db().GetSpillStatistics().diverting);
  ASSERT_TRUE(rocksdb_of(spill_db()).ContinueBackgroundWork().ok());
}

}  // namespace
}  // namespace spillway::clients
