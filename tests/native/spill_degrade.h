// A spillway::DB whose RocksDB or whose store fails, with the events that its listener received, for tests.
#pragma once

#include <gtest/gtest.h>
#include <rocksdb/env.h>
#include <rocksdb/sst_file_writer.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "faults/file_system.h"
#include "spill_faults.h"
#include "spillway/db.h"
#include "temporary_directory.h"

namespace spillway::faults {

using Clock = std::chrono::steady_clock;
using Kind = SpillEvent::Kind;

class Heard final : public SpillListener {
 public:
  struct One {
    Kind kind;
    std::string message;
    Clock::time_point at;
  };
  void on_spill_event(const SpillEvent& event) override {
    const std::lock_guard lock(mutex_);
    all_.push_back({event.kind, event.message, Clock::now()});
  }
  std::vector<One> of(Kind kind) const {
    const std::lock_guard lock(mutex_);
    std::vector<One> result;
    for (const One& one : all_) {
      if (one.kind == kind) result.push_back(one);
    }
    return result;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<One> all_;
};

inline bool is_sorted_file(const FileOperation& operation) {
  return operation.name.find("/spill/") != std::string::npos && operation.name.ends_with(".sst");
}
inline bool is_spill_log(const FileOperation& operation) { return operation.name.find(".spill") != std::string::npos; }

class SpillDegrade : public ::testing::Test {
 protected:
  void open(RollbackPolicy policy, std::size_t memtable_bytes = 64 << 20, std::uint64_t put_back_bytes = 0) {
    db_.reset();
    auto system = FaultyFileSystem::open(scratch_.path("root"));
    ASSERT_TRUE(system) << system.status().message();
    system_ = *system;
    env_ = rocksdb::NewCompositeEnv(system_);
    rocksdb::Options options;
    options.create_if_missing = true;
    options.env = env_.get();
    options.write_buffer_size = memtable_bytes;
    SpillOptions spill;
    spill.capacity_bytes = 4 << 20;
    spill.generation_bytes = 64 << 10;
    spill.put_back_bytes = put_back_bytes;
    spill.poll_ms = 5;
    spill.rollback = policy;
    spill.listeners.push_back(heard_);
    DB* db = nullptr;
    const rocksdb::Status status = DB::Open(options, spill, scratch_.path("root") + "/db", &db);
    ASSERT_TRUE(status.ok()) << status.ToString();
    db_.reset(db);
  }
  std::string get(const std::string& key) {
    std::string value;
    const rocksdb::Status status = db_->Get({}, key, &value);
    return status.ok() ? value : status.IsNotFound() ? "-" : status.ToString();
  }
  std::string sorted_file() {
    rocksdb::Options options;
    options.env = env_.get();
    rocksdb::SstFileWriter writer({}, options);
    const std::string path = scratch_.path("root") + "/sorted.sst";
    EXPECT_TRUE(writer.Open(path).ok());
    EXPECT_TRUE(writer.Put("sorted", "1").ok());
    EXPECT_TRUE(writer.Finish().ok());
    return path;
  }
  // Fails the operations. If `write` has not ended after some time, lets them succeed, so that the test ends.
  rocksdb::Status ends(const std::function<rocksdb::Status()>& write) {
    auto outcome = std::async(std::launch::async, write);
    const bool ended = outcome.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
    EXPECT_TRUE(ended) << "it waits for ever";
    if (!ended) system_->set_fault_rule({});
    return outcome.get();
  }

  const TemporaryDirectory scratch_{memory_path()};
  const std::shared_ptr<Heard> heard_ = std::make_shared<Heard>();
  std::shared_ptr<FaultyFileSystem> system_;
  std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<DB> db_;
};

}  // namespace spillway::faults
