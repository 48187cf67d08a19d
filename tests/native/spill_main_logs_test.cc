// RocksDB's logs as files: what a sync makes durable, and how a failed log is handled.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "base/file_bytes.h"
#include "faults/file_system.h"
#include "faults/power_loss.h"
#include "spill/main_db/main_logs.h"
#include "temporary_directory.h"

namespace spillway::spill {
namespace {

using rocksdb::IOStatus;

class MainLogsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(root_ + "/db");
    auto opened = faults::FaultyFileSystem::open(root_);
    ASSERT_TRUE(opened) << opened.status().message();
    system_ = *opened;
    logs_ = std::make_unique<MainLogs>(system_, root_ + "/db", /*use_fsync=*/false);
  }
  std::unique_ptr<rocksdb::FSWritableFile> begin(const std::string& name) {
    std::unique_ptr<rocksdb::FSWritableFile> file;
    EXPECT_TRUE(system_->NewWritableFile(root_ + "/db/" + name, {}, &file, nullptr).ok());
    return logs_->watch(root_ + "/db/" + name, std::move(file));
  }
  void fail_next(faults::Action action) {
    system_->set_fault_rule(
        faults::fail_nth([action](const faults::FileOperation& operation) { return operation.action == action; }, 1,
                         IOStatus::IOError("injected")));
  }
  // The file's contents after any of several losses of power; "differs" if they are not always equal.
  std::string after_losses(const std::string& name) {
    std::string first;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const std::string to = scratch_.path("after-" + std::to_string(++losses_));
      EXPECT_TRUE(faults::power_loss(root_, to, {.seed = seed}));
      std::string now;
      if (!read_file_bytes(to + "/db/" + name, &now)) now = "not there";
      if (seed == 0) first = now;
      if (now != first) return "differs";
    }
    return first;
  }

  TemporaryDirectory scratch_{memory_path()};
  const std::string root_ = scratch_.path("root");
  std::shared_ptr<faults::FaultyFileSystem> system_;
  std::unique_ptr<MainLogs> logs_;
  int losses_ = 0;
};

TEST_F(MainLogsTest, KnowsALogByItsPlaceAndName) {
  EXPECT_TRUE(logs_->is_log(root_ + "/db/000012.log"));
  EXPECT_TRUE(logs_->is_log(root_ + "/db//1234567.log"));
  EXPECT_TRUE(logs_->is_log(root_ + "/./db/000012.log"));
  for (const char* other : {"/db/LOG", "/db/.log", "/db/x12.log", "/db/12x.log", "/db/000012.log.1", "/db/000012.sst",
                            "/db/archive/000012.log", "/000012.log", "/dbs/000012.log"}) {
    EXPECT_FALSE(logs_->is_log(root_ + other)) << other;
  }
  EXPECT_FALSE(logs_->is_log("000012.log"));
}

TEST_F(MainLogsTest, WhatWasAppendedToAnyIsDurableAfterASync) {
  const auto one = begin("000001.log");
  ASSERT_TRUE(one->Append("one", {}, nullptr).ok());
  const auto two = begin("000002.log");
  ASSERT_TRUE(two->Append("two", {}, nullptr).ok());
  EXPECT_TRUE(logs_->has_any());
  EXPECT_EQ(after_losses("000001.log"), "differs");
  ASSERT_TRUE(logs_->sync().ok());
  EXPECT_EQ(after_losses("000001.log"), "one");
  EXPECT_EQ(after_losses("000002.log"), "two");
  ASSERT_TRUE(two->Append(" more", {}, nullptr).ok());
  const auto three = begin("000003.log");
  ASSERT_TRUE(logs_->sync().ok());
  EXPECT_EQ(after_losses("000002.log"), "two more");
  EXPECT_EQ(after_losses("000003.log"), "");
}

TEST_F(MainLogsTest, OneThatWasClosedIsLeftAlone) {
  auto one = begin("000001.log");
  ASSERT_TRUE(one->Append("one", {}, nullptr).ok());
  ASSERT_TRUE(one->Close({}, nullptr).ok());
  EXPECT_FALSE(logs_->has_any());
  EXPECT_TRUE(logs_->sync().ok());
  one.reset();
  EXPECT_TRUE(logs_->sync().ok());
}

TEST_F(MainLogsTest, AFailedWriteIsKnownUntilTheNextLogBegins) {
  const auto one = begin("000001.log");
  EXPECT_FALSE(logs_->have_failed());
  fail_next(faults::Action::write);
  EXPECT_TRUE(logs_->failure().ok());
  const rocksdb::IOStatus failed = one->Append("one", {}, nullptr);
  EXPECT_FALSE(failed.ok());
  EXPECT_TRUE(logs_->have_failed());
  EXPECT_EQ(logs_->failure().ToString(), failed.ToString());
  const auto two = begin("000002.log");
  EXPECT_FALSE(logs_->have_failed());
  EXPECT_TRUE(logs_->failure().ok());
}

TEST_F(MainLogsTest, WhatAFailedSyncWasToKeepIsNotCalledDurableUntilItIsInTables) {
  auto one = begin("000001.log");
  ASSERT_TRUE(one->Append("one", {}, nullptr).ok());
  fail_next(faults::Action::sync);
  EXPECT_FALSE(logs_->sync().ok());
  EXPECT_FALSE(logs_->sync().ok());
  // RocksDB gets the error with its next write, and not before.
  EXPECT_FALSE(logs_->have_failed());
  EXPECT_TRUE(one->Flush({}, nullptr).ok());
  EXPECT_FALSE(one->Append("more", {}, nullptr).ok());
  EXPECT_TRUE(logs_->have_failed());
  const auto two = begin("000002.log");
  EXPECT_FALSE(logs_->have_failed());
  EXPECT_FALSE(logs_->sync().ok());
  EXPECT_TRUE(one->Sync({}, nullptr).ok());  // RocksDB's recovery retries it, and closes the log
  EXPECT_FALSE(logs_->sync().ok());
  EXPECT_TRUE(one->Close({}, nullptr).ok());
  EXPECT_FALSE(logs_->sync().ok());
  logs_->is_gone(root_ + "/db/000001.log");
  EXPECT_TRUE(logs_->sync().ok());
}

TEST_F(MainLogsTest, AFailedSyncOfRocksdbsOwnIsNotMadeGoodByALaterOne) {
  const auto one = begin("000001.log");
  ASSERT_TRUE(one->Append("one", {}, nullptr).ok());
  fail_next(faults::Action::sync);
  EXPECT_FALSE(one->Sync({}, nullptr).ok());
  EXPECT_TRUE(logs_->have_failed());
  EXPECT_FALSE(logs_->sync().ok());
  {
    const auto not_switched_to = begin("000002.log");
    EXPECT_FALSE(logs_->have_failed());
  }
  EXPECT_TRUE(logs_->have_failed());
  EXPECT_FALSE(logs_->sync().ok());
}

TEST_F(MainLogsTest, AnOlderLogThatFailsStopsNoWrites) {
  const auto one = begin("000001.log");
  ASSERT_TRUE(one->Append("one", {}, nullptr).ok());
  const auto two = begin("000002.log");
  fail_next(faults::Action::sync);
  EXPECT_FALSE(one->Sync({}, nullptr).ok());
  EXPECT_FALSE(logs_->have_failed());
  EXPECT_FALSE(logs_->sync().ok());
}

}  // namespace
}  // namespace spillway::spill
