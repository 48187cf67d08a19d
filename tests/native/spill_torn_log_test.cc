// RocksDB's logs of which a loss of power has left nothing that can be read, not even the first record.
#include <gtest/gtest.h>
#include <rocksdb/options.h>
#include <rocksdb/transaction_log.h>
#include <rocksdb/utilities/backup_engine.h>
#include <rocksdb/utilities/checkpoint.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "flipped_bytes.h"
#include "spill_main_only.h"
#include "spill_rocksdb_of.h"
#include "spillway/db.h"
#include "temporary_directory.h"

namespace spillway::clients {
namespace {

using rocksdb::Status;

class SpillTornLog : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kInFirstRecord = 12;  // behind the checksum and the length of the first record

  SpillTornLog() {
    options_.create_if_missing = true;
    spill_.rollback = RollbackPolicy::off;
    spill_.put_back_bytes = 0;
  }
  ~SpillTornLog() override { db_.reset(); }

  void open() {
    db_.reset();
    if (logs_apart_) options_.wal_dir = path_ + "/logs";
    DB* db = nullptr;
    const Status status = DB::Open(options_, spill_, path_, &db);
    ASSERT_TRUE(status.ok()) << status.ToString();
    db_.reset(db);
  }
  // The next opening finds what a process that is killed now would leave.
  void die() {
    const std::string left = directory_.path("left-" + std::to_string(++deaths_));
    std::filesystem::copy(path_, left, std::filesystem::copy_options::recursive);
    db_.reset();
    path_ = left;
  }
  std::vector<std::string> logs() const {
    std::vector<std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator(logs_apart_ ? path_ + "/logs" : path_)) {
      if (entry.path().extension() == ".log") all.push_back(entry.path().string());
    }
    std::sort(all.begin(), all.end());
    return all;
  }
  // Only what is in the newest log is lost, and there is no log before it.
  void tear_the_only_log() {
    const std::vector<std::string> all = logs();
    ASSERT_EQ(all.size(), 1U);
    ASSERT_GT(std::filesystem::file_size(all.front()), kInFirstRecord);
    flip(all.front(), kInFirstRecord, 0x55);
  }
  void put(Diversion diversion, const std::string& key, const std::string& value) {
    db_->SetDiversion(diversion);
    const Status status = db_->Put({}, key, value);
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  std::string get(const std::string& key) {
    std::string value;
    const Status status = db_->Get({}, key, &value);
    return status.ok() ? value : status.IsNotFound() ? "-" : status.ToString();
  }
  void expect_all_calls_work() {
    const std::string round = std::to_string(++rounds_);
    using Call = std::pair<std::string, std::function<Status()>>;
    const std::vector<Call> calls{
        {"our checkpoint", [&] { return checkpoint_by_us(*db_, directory_.path("ours-" + round)); }},
        {"RocksDB's checkpoint", [&] { return checkpoint_by_rocksdb(*db_, directory_.path("theirs-" + round)); }},
        {"backup", [&] { return backup(*db_, directory_.path("backup-" + round)); }},
        {"GetSortedWalFiles",
         [&] {
           rocksdb::VectorLogPtr files;
           return db_->GetSortedWalFiles(files);
         }},
        {"GetLiveFilesStorageInfo", [&] {
           std::vector<rocksdb::LiveFileStorageInfo> files;
           return db_->GetLiveFilesStorageInfo({}, &files);
         }}};
    for (const auto& [name, call] : calls) {
      const Status status = call();
      EXPECT_TRUE(status.ok()) << name << ": " << status.ToString();
    }
  }

  const TemporaryDirectory directory_{memory_path()};
  rocksdb::Options options_;
  SpillOptions spill_;
  std::string path_ = directory_.path("db");
  bool logs_apart_ = false;
  int deaths_ = 0;
  int rounds_ = 0;
  std::unique_ptr<DB> db_;
};

TEST_F(SpillTornLog, IsInTheWayOfNoCopy) {
  open();
  put(Diversion::never, "in a table", "1");
  ASSERT_TRUE(db_->Flush({}).ok());
  put(Diversion::never, "torn", "1");
  die();
  tear_the_only_log();
  open();
  EXPECT_EQ(get("in a table"), "1");
  EXPECT_EQ(get("torn"), "-");
  expect_all_calls_work();
  put(Diversion::never, "later", "1");
  put(Diversion::always, "diverted", "1");
  expect_all_calls_work();
  die();
  open();
  for (const char* key : {"in a table", "later", "diverted"}) EXPECT_EQ(get(key), "1") << key;
}

// Before anything was ever flushed, and while something lies in the spill store; in a directory of its own.
TEST_F(SpillTornLog, IsInTheWayOfNoCopyWhileSomethingIsDiverted) {
  logs_apart_ = true;
  open();
  put(Diversion::always, "diverted", "1");
  put(Diversion::never, "torn", "1");
  die();
  tear_the_only_log();
  for (int opening = 0; opening < 2; ++opening) {
    open();
    EXPECT_EQ(get("diverted"), "1");
    EXPECT_EQ(get("torn"), "-");
    expect_all_calls_work();
    put(Diversion::always, "diverted", "1");
    die();
  }
}

// What is replayed of a log before it is in a table then.
TEST_F(SpillTornLog, TakesNoLogBeforeItAlong) {
  open();
  put(Diversion::never, "before", "1");
  rocksdb::ColumnFamilyHandle* other = nullptr;
  ASSERT_TRUE(db_->CreateColumnFamily({}, "other", &other).ok());
  ASSERT_TRUE(db_->Put({}, other, "other", "1").ok());
  ASSERT_TRUE(db_->Flush({}, other).ok());  // begins a log
  put(Diversion::never, "torn", "1");
  ASSERT_TRUE(db_->DestroyColumnFamilyHandle(other).ok());
  die();
  ASSERT_EQ(logs().size(), 2U);
  flip(logs().back(), kInFirstRecord, 0x55);
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  DB* db = nullptr;
  const Status status =
      DB::Open(options_, spill_, path_, {{rocksdb::kDefaultColumnFamilyName, {}}, {"other", {}}}, &handles, &db);
  ASSERT_TRUE(status.ok()) << status.ToString();
  db_.reset(db);
  EXPECT_EQ(get("before"), "1");
  EXPECT_EQ(get("torn"), "-");
  std::string value;
  EXPECT_TRUE(db_->Get({}, handles[1], "other", &value).ok());
  expect_all_calls_work();
  for (rocksdb::ColumnFamilyHandle* handle : handles) ASSERT_TRUE(db_->DestroyColumnFamilyHandle(handle).ok());
}

}  // namespace
}  // namespace spillway::clients
