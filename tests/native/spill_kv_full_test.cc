// A full, or nearly full, drive: the store then counts as full, and nothing is lost. Accepted records can be read and
// synced, and reach the drive once there is space. Refused records never come back.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "at_each_step.h"
#include "base/file_bytes.h"
#include "spill_kv_store.h"

namespace spillway::spill {
namespace {

using rocksdb::Status;

// Generations that are dropped in order and released in any order, for example because of snapshots, leave holes in the
// drive's runs. The drive is full before the store's count says so, in the middle of acknowledged records. The store
// then counts as full, and accepted records can be read and synced, and reach the drive once there is space.
TEST_F(KvStoreTest, ADriveThatIsFullOfHolesLosesNothing) {
  struct Taken {
    std::uint64_t offset = 0;
    std::size_t bytes = 0;
    unsigned seed = 0;
  };
  std::uint64_t refused = 0;
  for (unsigned seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(seed);
    std::filesystem::remove(directory_.path("kv"));
    lose_staging();
    std::mt19937_64 random(seed);
    std::map<GenerationId, std::vector<Taken>> live;
    std::map<GenerationId, std::vector<Taken>> held;  // dropped, and still read
    auto store = open();
    recover(*store);
    GenerationId now = 0;
    const auto begin_next = [&] {
      const Status status = store->begin(now + 1);
      ASSERT_TRUE(status.ok() || status.IsNoSpace()) << status.ToString();
      if (status.ok()) live[++now];
    };
    const auto release_one = [&] {
      if (held.empty()) return;
      const auto one = std::next(held.begin(), static_cast<std::ptrdiff_t>(random() % held.size()));
      store->release(one->first);
      held.erase(one);
    };
    const auto drop_oldest = [&] {
      if (live.size() < 2) return;
      const Status status = store->drop(live.begin()->first);
      ASSERT_TRUE(status.ok()) << status.ToString();
      held.insert(live.extract(live.begin()));
    };
    const auto expect_read = [&](const auto& of) {
      if (of.empty()) return;
      const auto& [generation, all] = *std::next(of.begin(), static_cast<std::ptrdiff_t>(random() % of.size()));
      if (all.empty()) return;
      const Taken& one = all[random() % all.size()];
      ASSERT_TRUE(read(*store, generation, one.offset, 0, one.bytes) == record_of(one.bytes, one.seed));
    };
    begin_next();
    for (unsigned step = 0; step < 12'000 && !HasFailure(); ++step) {
      const std::uint64_t what = random() % 100;
      if (what == 0) begin_next();
      if (what == 1) {
        ASSERT_TRUE(store->sync().ok());
      }
      if (what == 2) release_one();
      if (what < 10) expect_read(live);
      if (what < 6) expect_read(held);
      const Taken one{0, 100 + random() % 9000, step};
      std::uint64_t offset = 0;
      const Status status = try_append(*store, record_of(one.bytes, one.seed), &offset);
      if (status.ok()) {
        live[now].push_back({offset, one.bytes, one.seed});
        continue;
      }
      ASSERT_TRUE(status.IsNoSpace()) << status.ToString();
      ++refused;
      drop_oldest();
      release_one();
      if (live.size() < 2) begin_next();
    }
    ASSERT_TRUE(store->sync().ok());
    for (const auto& [generation, all] : live) {  // as a rollback reads them
      auto next = all.begin();
      const Status scanned = store->scan(generation, [&, &all = all](const StoredRecord& record) {
        EXPECT_TRUE(next != all.end() && record.offset == next->offset);
        ++next;
        return Status::OK();
      });
      EXPECT_TRUE(scanned.ok() && next == all.end()) << scanned.ToString();
    }
    while (!held.empty()) release_one();
    ASSERT_TRUE(store->close().ok());
    store = nullptr;
    Records expected;
    for (const auto& [generation, all] : live) {
      for (const Taken& one : all) expected.emplace_back(generation, record_of(one.bytes, one.seed));
    }
    EXPECT_EQ(drive_->model().audit().value_or(""), "");
    EXPECT_TRUE(found() == expected);
  }
  EXPECT_GT(refused, 0U);
}

TEST_F(KvStoreTest, WhatAFullDriveRefusesIsDurableInStagingAfterASync) {
  auto store = open();
  recover(*store);
  ASSERT_TRUE(store->begin(1).ok());
  full_for_ = device::Opcode::kv_batch_store;
  append(*store, "one");
  ASSERT_TRUE(store->sync().ok());
  store = nullptr;
  full_for_ = device::Opcode::flush;
  lose_unsynced_staging();

  // It is there once, even if the power fails again.
  store = open();
  EXPECT_EQ(recover(*store), (Records{{1, "one"}}));
  ASSERT_TRUE(store->cut(1, 0).ok());
  store = nullptr;
  lose_unsynced_staging();
  EXPECT_EQ(found(), Records());
}

TEST_F(KvStoreTest, WhatIsDroppedOnAFullDriveIsGoneForGood) {
  auto store = open();
  recover(*store);
  for (const GenerationId generation : {1U, 2U, 3U}) {
    ASSERT_TRUE(store->begin(generation).ok());
    append(*store, std::to_string(generation));
  }
  ASSERT_TRUE(store->sync().ok());
  full_for_ = device::Opcode::kv_store;
  for (const GenerationId generation : {1U, 2U}) ASSERT_TRUE(store->drop(generation).ok());
  store = nullptr;  // like a kill before it was released
  full_for_ = device::Opcode::flush;
  lose_unsynced_staging();
  EXPECT_EQ(found(), (Records{{3, "3"}}));
}

// Records that a full drive did not take are durable in staging. Damage to them is reported like any other.
TEST_F(KvStoreTest, DamageInStagingAfterACloseIsReported) {
  auto store = open();
  recover(*store);
  ASSERT_TRUE(store->begin(1).ok());
  full_for_ = device::Opcode::kv_batch_store;
  append(*store, std::string(1000, 'a'));
  ASSERT_TRUE(store->sync().ok());
  ASSERT_TRUE(store->close().ok());
  full_for_ = device::Opcode::flush;
  store.reset();
  {
    const std::string all = file_bytes(directory_.path("kv.staged"));
    std::fstream file(directory_.path("kv.staged"), std::ios::in | std::ios::out | std::ios::binary);
    const std::size_t at = all.find(std::string(100, 'a'));
    ASSERT_NE(at, std::string::npos);
    file.clear();
    file.seekp(static_cast<std::streamoff>(at));
    file.put('b');
  }
  Records records;
  const Status status = open()->recover([&](const StoredRecord& record) {
    records.emplace_back(record.generation, record.bytes.ToString());
    return Status::OK();
  });
  EXPECT_TRUE(status.IsCorruption()) << status.ToString() << ", " << records.size() << " records";
}

// Nearly full, and larger than all of staging: refused records never come back, however the process ends.
TEST_F(KvStoreTest, WhatWasRefusedNeverComesBack) {
  auto store = open();
  recover(*store);
  ASSERT_TRUE(store->begin(1).ok());
  Records all;
  const std::uint64_t cautious = store->capacity_bytes() - std::uint64_t{4} * 256 * 1024;
  while (store->used_bytes() + 110'000 < cautious) {
    append(*store, record_of(100'000, 1));
    all.emplace_back(1, record_of(100'000, 1));
  }
  ASSERT_TRUE(store->sync().ok());
  fails_ = device::Opcode::kv_batch_store;
  skip_ = 3;
  EXPECT_TRUE(try_append(*store, record_of(800'000, 2)).IsIOError());
  fails_ = device::Opcode::flush;
  store = nullptr;
  EXPECT_TRUE(found() == all);

  store = open();
  recover(*store);
  ASSERT_TRUE(store->cut(1, ~std::uint64_t{0}).ok());
  ASSERT_TRUE(store->drop(1).ok());
  store->release(1);
  ASSERT_TRUE(store->begin(2).ok());
  append(*store, "two");
  ASSERT_TRUE(store->sync().ok());
  skip_ = 3;
  fails_ = device::Opcode::kv_batch_store;
  EXPECT_TRUE(try_append(*store, record_of(3'000'000, 3)).IsIOError());
  fails_ = device::Opcode::flush;
  ASSERT_TRUE(store->begin(3).ok());
  store = nullptr;
  EXPECT_TRUE(found() == (Records{{2, "two"}}));
}

// Space that becomes free while a refused append is undone must not be used for it.
TEST_F(KvStoreTest, RefusedRecordsAreNotSubmittedAgainDuringARelease) {
  auto store = open();
  recover(*store);
  ASSERT_TRUE(store->begin(1).ok());
  append(*store, "old");
  ASSERT_TRUE(store->begin(2).ok());
  append(*store, "before");
  ASSERT_TRUE(store->sync().ok());
  ASSERT_TRUE(store->drop(1).ok());
  full_for_ = device::Opcode::kv_batch_store;
  std::thread release;
  {
    const AtStep refused("spill.kv.append.refused", [&] {
      holds_ = true;  // records submitted now arrive late
      full_for_ = device::Opcode::flush;
      release = std::thread([&] { store->release(1); });
      for (int i = 0; i < 300 && !is_held_; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
    EXPECT_TRUE(try_append(*store, record_of(3'000'000, 3)).IsNoSpace()) << "it is longer than all staging";
    ASSERT_TRUE(refused.was_reached());
  }
  holds_ = false;
  release.join();
  append(*store, "after");
  ASSERT_TRUE(store->sync().ok());
  store = nullptr;
  EXPECT_EQ(found(), (Records{{2, "before"}, {2, "after"}}));
}

}  // namespace
}  // namespace spillway::spill
