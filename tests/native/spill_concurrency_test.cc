// Many threads on one spillway::DB while diversion changes and rollbacks run all the time: what a reader has seen never
// becomes older, and a batch is never seen in part.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "spillway/db.h"
#include "ssd/structures/random.h"
#include "temporary_directory.h"

namespace spillway::clients {
namespace {

constexpr int kWriters = 2;
constexpr int kKeys = 16;        // per writer
constexpr int kVersions = 8000;  // versions that each writer writes

std::string key(int writer, int index, char half) {
  return std::string(1, half) + std::to_string(writer) + "-" + std::to_string(index);
}

class SpillConcurrency : public ::testing::Test {
 protected:
  void open(std::uint64_t put_back_bytes) {
    rocksdb::Options options;
    options.create_if_missing = true;
    options.write_buffer_size = 64 << 10;
    SpillOptions spill;
    spill.rollback = RollbackPolicy::off;
    spill.put_back_bytes = put_back_bytes;
    spill.generation_bytes = 8 << 10;
    spill.poll_ms = 2;
    DB* db = nullptr;
    const rocksdb::Status status = DB::Open(options, spill, directory_.path("db"), &db);
    ASSERT_TRUE(status.ok()) << status.ToString();
    db_.reset(db);
  }

  // Both halves of a pair in one batch. The version only grows.
  void write(int writer) {
    ssd::Random random(static_cast<std::uint64_t>(writer) + 1);
    std::array<int, kKeys> version{};
    for (int i = 0; i < kVersions; ++i) {
      const int index = static_cast<int>(random.next() % kKeys);
      const std::string value = std::to_string(++version[static_cast<std::size_t>(index)]);
      rocksdb::WriteBatch batch;
      EXPECT_TRUE(batch.Put(key(writer, index, 'a'), value).ok());
      EXPECT_TRUE(batch.Put(key(writer, index, 'b'), value).ok());
      rocksdb::WriteOptions options;
      options.sync = random.next() % 64 == 0;
      const rocksdb::Status status = db_->Write(options, &batch);
      EXPECT_TRUE(status.ok()) << status.ToString();
    }
    for (int index = 0; index < kKeys; ++index) last_[writer][index] = version[static_cast<std::size_t>(index)];
  }

  int read(const rocksdb::ReadOptions& options, const std::string& name) {
    std::string value;
    const rocksdb::Status status = db_->Get(options, name, &value);
    EXPECT_TRUE(status.ok() || status.IsNotFound()) << status.ToString();
    return status.ok() ? std::stoi(value) : 0;
  }

  void watch_versions() {
    std::array<std::array<int, kKeys>, kWriters> seen{};
    ssd::Random random(99);
    while (!done_) {
      const int writer = static_cast<int>(random.next() % kWriters);
      const int index = static_cast<int>(random.next() % kKeys);
      const int now = read(rocksdb::ReadOptions(), key(writer, index, 'a'));
      int& before = seen[static_cast<std::size_t>(writer)][static_cast<std::size_t>(index)];
      EXPECT_GE(now, before);
      before = now;
    }
  }

  void watch_pairs() {
    while (!done_) {
      rocksdb::ReadOptions options;
      options.snapshot = db_->GetSnapshot();
      for (int writer = 0; writer < kWriters; ++writer) {
        EXPECT_EQ(read(options, key(writer, 3, 'a')), read(options, key(writer, 3, 'b')));
      }
      std::vector<std::string> halves[2];
      const std::unique_ptr<rocksdb::Iterator> iterator(db_->NewIterator(options));
      for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
        halves[iterator->key()[0] == 'a' ? 0 : 1].push_back(iterator->key().ToString().substr(1) + "=" +
                                                            iterator->value().ToString());
      }
      EXPECT_TRUE(iterator->status().ok()) << iterator->status().ToString();
      EXPECT_EQ(halves[0], halves[1]);
      db_->ReleaseSnapshot(options.snapshot);
    }
  }

  void change_ways() {
    ssd::Random random(7);
    while (!done_) {
      db_->SetDiversion(random.next() % 2 == 0 ? Diversion::always : Diversion::automatic);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (random.next() % 4 == 0) {
        const rocksdb::Status status = db_->Rollback();
        EXPECT_TRUE(status.ok()) << status.ToString();
      }
    }
  }

  void run() {
    std::vector<std::thread> writers;
    std::vector<std::thread> others;
    writers.reserve(kWriters);
    for (int i = 0; i < kWriters; ++i) writers.emplace_back([this, i] { write(i); });
    others.emplace_back([this] { watch_versions(); });
    others.emplace_back([this] { watch_pairs(); });
    others.emplace_back([this] { change_ways(); });
    for (std::thread& one : writers) one.join();
    done_ = true;
    for (std::thread& one : others) one.join();
    for (int writer = 0; writer < kWriters; ++writer) {
      for (int index = 0; index < kKeys; ++index) {
        EXPECT_EQ(read(rocksdb::ReadOptions(), key(writer, index, 'b')), last_[writer][index]);
      }
    }
  }

  TemporaryDirectory directory_{memory_path()};
  std::unique_ptr<DB> db_;
  std::atomic<bool> done_{false};
  int last_[kWriters][kKeys] = {};
};

TEST_F(SpillConcurrency, IngestedBack) {
  open(0);
  run();
  EXPECT_GT(db_->GetSpillStatistics().rollbacks_by_ingest, 0U);
}

TEST_F(SpillConcurrency, PutBack) {
  open(1 << 20);
  run();
  EXPECT_GT(db_->GetSpillStatistics().rollbacks_by_put, 0U);
}

}  // namespace
}  // namespace spillway::clients
