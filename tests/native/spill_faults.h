// A spillway::DB on a file system that fails, fills up, or loses power, for tests.
#pragma once

#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "faults/file_system.h"
#include "faults/power_loss.h"
#include "spillway/db.h"
#include "temporary_directory.h"

namespace spillway::faults {

inline bool of_spill(const FileOperation& operation) { return operation.name.find(".spill") != std::string::npos; }

class FaultsSpillway : public ::testing::Test {
 protected:
  FaultsSpillway() {
    spill_.capacity_bytes = 4 << 20;
    spill_.generation_bytes = 64 << 10;
    spill_.rollback = RollbackPolicy::off;
    spill_.put_back_bytes = 0;
  }
  ~FaultsSpillway() override { db_.reset(); }

  void open() {
    db_.reset();
    auto system = FaultyFileSystem::open(root_);
    ASSERT_TRUE(system) << system.status().message();
    system_ = *system;
    env_ = rocksdb::NewCompositeEnv(system_);
    rocksdb::Options options;
    options.create_if_missing = true;
    options.env = env_.get();
    DB* db = nullptr;
    const rocksdb::Status status = DB::Open(options, spill_, root_ + "/db", &db);
    ASSERT_TRUE(status.ok()) << status.ToString();
    db_.reset(db);
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
  rocksdb::Status put(const std::string& key, const std::string& value, bool sync = false) {
    rocksdb::WriteOptions options;
    options.sync = sync;
    const rocksdb::Status status = db_->Put(options, key, value);
    if (status.ok()) acknowledged_[key] = value;
    return status;
  }
  std::string get(const std::string& key) {
    std::string value;
    const rocksdb::Status status = db_->Get({}, key, &value);
    return status.ok() ? value : status.IsNotFound() ? "-" : status.ToString();
  }
  // Whatever was diverted without a sync survives a loss of power, and so does what `write_main` made RocksDB keep
  // after it.
  void expect_both_survive(const std::function<void(const std::string& value)>& write_main) {
    if (!db_) open();
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      const std::string round = std::to_string(++rounds_);
      db_->SetDiversion(Diversion::always);
      ASSERT_TRUE(put("spilled", round).ok());
      db_->SetDiversion(Diversion::never);
      write_main(round);
      lose_power(rounds_);
      EXPECT_EQ(get("spilled"), round);
      EXPECT_EQ(get("main"), round);
      ASSERT_TRUE(db_->Rollback().ok());
    }
  }
  void expect_acknowledged() {
    for (const auto& [key, value] : acknowledged_) EXPECT_EQ(get(key), value) << key;
  }

  const TemporaryDirectory scratch_{memory_path()};
  std::string root_ = scratch_.path("root");
  SpillOptions spill_;
  std::shared_ptr<FaultyFileSystem> system_;
  std::unique_ptr<rocksdb::Env> env_;
  std::map<std::string, std::string> acknowledged_;
  std::unique_ptr<DB> db_;
  std::uint64_t rounds_ = 0;  // for expect_both_survive
};

inline bool comes_true(const std::function<bool()>& what) {
  for (int i = 0; i < 10'000 && !what(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return what();
}

}  // namespace spillway::faults
