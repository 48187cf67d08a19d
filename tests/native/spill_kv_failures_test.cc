// What a failed command, a killed process and a loss of power leave of records in flight to the drive.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "base/file_bytes.h"
#include "spill/store/kv/kv_append_window.h"
#include "spill_kv_store.h"

namespace spillway::spill {
namespace {

using rocksdb::Status;

// The drive has the first and the third, and not the second. After a loss of power nothing after the first may be
// there, and while the process lives nothing is lost.
TEST_F(KvStoreTest, AFailedStoreIsReportedLaterReadFromMemoryAndRetried) {
  auto store = open();
  recover(*store);
  ASSERT_TRUE(store->begin(1).ok());
  const std::uint64_t one = append(*store, record_of(4000, 1));
  ASSERT_TRUE(store->sync().ok());
  holds_ = true;
  fails_ = device::Opcode::kv_batch_store;
  const std::uint64_t two = append(*store, record_of(16'000, 2));
  const std::uint64_t three = append(*store, record_of(4000, 3));
  holds_ = false;
  EXPECT_TRUE(store->sync().IsIOError());
  EXPECT_TRUE(store->sync().IsIOError());
  EXPECT_TRUE(try_append(*store, "four").IsIOError());
  fails_ = device::Opcode::flush;
  EXPECT_EQ(read(*store, 1, one, 0, 4000), record_of(4000, 1));
  EXPECT_EQ(read(*store, 1, two, 0, 16'000), record_of(16'000, 2));
  EXPECT_EQ(read(*store, 1, three, 0, 4000), record_of(4000, 3));
  EXPECT_TRUE(store->scan(1, [](const StoredRecord&) { return Status::OK(); }).IsIOError());

  fails_ = device::Opcode::kv_batch_store;
  EXPECT_TRUE(store->begin(2).IsIOError());  // otherwise the one before would not be durable
  EXPECT_EQ(read(*store, 1, two, 0, 16'000), record_of(16'000, 2));
  fails_ = device::Opcode::flush;
  ASSERT_TRUE(store->begin(3).ok());
  append(*store, "four");
  ASSERT_TRUE(store->sync().ok());
  const Records all{{1, record_of(4000, 1)}, {1, record_of(16'000, 2)}, {1, record_of(4000, 3)}, {3, "four"}};
  store = nullptr;
  lose_staging();
  EXPECT_TRUE(found() == all);
}

// After a kill, staging has what the drive lacks: records after its last one, and in a gap before that.
TEST_F(KvStoreTest, WhatAKilledProcessHadStagedIsStoredByTheNext) {
  const Records all{{1, "one"}, {1, record_of(600'000, 2)}, {1, "three"}, {1, "four"}};
  for (const int taken : {0, 1, 3}) {  // accepted batch stores
    SCOPED_TRACE(taken);
    std::filesystem::remove(directory_.path("kv"));
    lose_staging();
    auto store = open();
    recover(*store);
    ASSERT_TRUE(store->begin(1).ok());
    skip_ = taken;
    fails_ = device::Opcode::kv_batch_store;
    holds_ = true;
    for (const auto& [generation, record] : all) append(*store, record);
    holds_ = false;
    EXPECT_TRUE(store->sync().IsIOError());
    store = nullptr;
    fails_ = device::Opcode::flush;
    std::uint64_t used = 0;
    for (int times = 0; times < 2; ++times) {
      store = open();
      EXPECT_TRUE(recover(*store) == all);
      EXPECT_TRUE(times == 0 || store->used_bytes() == used);
      used = store->used_bytes();
      store = nullptr;
    }
    lose_staging();  // it is on the drive now
    EXPECT_TRUE(found() == all);
  }
}

TEST_F(KvStoreTest, StagingThatALossOfPowerToreCountsUpToThere) {
  for (const std::size_t torn_at : {std::size_t{4096 + 20}, std::size_t{4096 + 64 + 5000}, std::size_t{0}}) {
    SCOPED_TRACE(torn_at);
    std::filesystem::remove(directory_.path("kv"));
    lose_staging();
    auto store = open();
    recover(*store);
    ASSERT_TRUE(store->begin(1).ok());
    append(*store, "durable");
    ASSERT_TRUE(store->sync().ok());
    holds_ = true;
    for (unsigned i = 0; i < 4; ++i) append(*store, record_of(4000, i));
    fails_ = device::Opcode::kv_batch_store;
    holds_ = false;
    EXPECT_TRUE(store->sync().IsIOError());
    store = nullptr;
    fails_ = device::Opcode::flush;
    std::fstream file(directory_.path("kv.staged"), std::ios::in | std::ios::out | std::ios::binary);
    if (torn_at == 0) {
      file << std::string(4096, '\0');
    } else {  // every slot, because the used one is unknown
      for (std::size_t at = torn_at; at < 4096 + kStaged * kSlot; at += kSlot) {
        file.seekp(static_cast<std::streamoff>(at));
        file.put('\x55');
      }
    }
    file.close();
    EXPECT_EQ(found(), (Records{{1, "durable"}}));
  }
}

// Two of its four records, and all of the next pair, were on the host's drive when the power failed.
TEST_F(KvStoreTest, RecoveryEndsAtAPairThatWasLongerBefore) {
  auto store = open();
  recover(*store);
  ASSERT_TRUE(store->begin(1).ok());
  holds_ = true;
  append(*store, record_of(4000, 1));
  append(*store, record_of(4000, 2));
  const std::string before = file_bytes(directory_.path("kv.staged"));
  for (unsigned i = 3; i <= 6; ++i) append(*store, record_of(4000, i));
  std::string mixed = file_bytes(directory_.path("kv.staged"));
  fails_ = device::Opcode::kv_batch_store;
  holds_ = false;
  EXPECT_TRUE(store->sync().IsIOError());
  store = nullptr;
  fails_ = device::Opcode::flush;
  int older = 0;
  for (std::size_t at = kStagingHead; at < mixed.size(); at += kSlot) {
    if (before.compare(at, 8, std::string(8, '\0')) == 0) continue;
    mixed.replace(at, kSlot, before, at, kSlot);
    ++older;
  }
  ASSERT_EQ(older, 1);
  std::ofstream(directory_.path("kv.staged"), std::ios::binary) << mixed;
  EXPECT_TRUE(found() == (Records{{1, record_of(4000, 1)}, {1, record_of(4000, 2)}}));
}

TEST_F(KvStoreTest, AnAppendAfterAFailureIsRefusedAndRecordsAfterAGapAreDropped) {
  auto store = open();
  recover(*store);
  ASSERT_TRUE(store->begin(1).ok());
  append(*store, "one");
  ASSERT_TRUE(store->sync().ok());
  fails_ = device::Opcode::kv_batch_store;
  skip_ = 1;  // its first part is stored
  append(*store, record_of(600'000, 2));
  EXPECT_TRUE(store->sync().IsIOError());
  EXPECT_TRUE(try_append(*store, "three").IsIOError());
  fails_ = device::Opcode::flush;
  store = nullptr;  // like a kill before the next step
  lose_staging();

  store = open();
  EXPECT_EQ(recover(*store), (Records{{1, "one"}}));
  const std::uint64_t with_the_rest = store->used_bytes();
  ASSERT_TRUE(store->cut(1, ~std::uint64_t{0}).ok());
  EXPECT_LT(store->used_bytes(), with_the_rest - 60'000);
  ASSERT_TRUE(store->begin(2).ok());
  append(*store, "five");
  store = nullptr;
  EXPECT_EQ(found(), (Records{{1, "one"}, {2, "five"}}));
}

// Nor on the drive, if they arrive while it stores earlier ones. It takes that many pairs per command.
TEST_F(KvStoreTest, AGenerationIsStoredAfterAllOfTheOneBefore) {
  constexpr unsigned kCommand = kPairsACommand;
  auto store = open();
  recover(*store);
  ASSERT_TRUE(store->begin(1).ok());
  append(*store, record_of(16'000, 0));
  is_held_ = false;
  holds_ = true;
  store->hand_on();
  while (!is_held_) std::this_thread::yield();
  for (unsigned i = 1; i <= kCommand; ++i) append(*store, record_of(16'000, i));
  ASSERT_TRUE(store->begin(2).ok());
  append(*store, record_of(16'000, 99));
  store->hand_on();
  skip_ = 1;  // the held ones
  most_failures_ = 1;
  fails_ = device::Opcode::kv_batch_store;
  holds_ = false;
  EXPECT_TRUE(store->sync().IsIOError());
  store = nullptr;
  lose_staging();
  EXPECT_EQ(found(), (Records{{1, record_of(16'000, 0)}}));
}

// A generation begins while pairs of the one before are still in staging. A loss of power must not leave a hole.
TEST_F(KvStoreTest, AGenerationThatBeginsWhileTheLastIsInFlightIsLostWithIt) {
  auto store = open();
  recover(*store);
  ASSERT_TRUE(store->begin(1).ok());
  append(*store, "durable");
  ASSERT_TRUE(store->sync().ok());
  holds_ = true;
  append(*store, record_of(4000, 1));
  ASSERT_TRUE(store->begin(2).ok());
  append(*store, record_of(4000, 2));
  const std::string staged = file_bytes(directory_.path("kv.staged"));
  fails_ = device::Opcode::kv_batch_store;
  holds_ = false;
  EXPECT_TRUE(store->sync().IsIOError());
  store = nullptr;
  fails_ = device::Opcode::flush;
  // Each slot is removed in turn, like a page lost with the power. The remains must be a prefix.
  const Records all{{1, "durable"}, {1, record_of(4000, 1)}, {2, record_of(4000, 2)}};
  const std::string drive = file_bytes(directory_.path("kv"));
  std::set<std::size_t> kept{found().size()};
  for (std::size_t at = 4096; at + kSlot <= staged.size(); at += kSlot) {
    if (staged.compare(at, 8, std::string(8, '\0')) == 0) continue;  // the slot was empty
    std::string torn = staged;
    std::fill_n(torn.begin() + static_cast<std::ptrdiff_t>(at), 64, '\0');
    std::ofstream(directory_.path("kv.staged"), std::ios::binary) << torn;
    std::ofstream(directory_.path("kv"), std::ios::binary) << drive;
    const Records left = found();
    ASSERT_LE(left.size(), all.size());
    EXPECT_TRUE(std::equal(left.begin(), left.end(), all.begin())) << at;
    kept.insert(left.size());
  }
  EXPECT_EQ(kept, (std::set<std::size_t>{1, 2, 3}));
}

}  // namespace
}  // namespace spillway::spill
