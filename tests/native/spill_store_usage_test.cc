// How full a store is, with and without what a rollback needs: the sums alone, on a store that only has a size.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "spill/commit/store_usage.h"
#include "spill/live/live_set.h"

namespace spillway::spill {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

constexpr std::uint64_t kCapacity = 1 << 30;

struct StoreOfASize final : Store {
  Status recover(const Each& /*each*/) override { return Status::NotSupported(); }
  Status cut(GenerationId /*generation*/, std::uint64_t /*offset*/) override { return Status::NotSupported(); }
  Status begin(GenerationId /*generation*/) override { return Status::NotSupported(); }
  Status append(std::span<const Slice> /*records*/, std::span<std::uint64_t> /*offsets*/) override {
    return Status::NotSupported();
  }
  Status sync() override { return Status::NotSupported(); }
  std::vector<GenerationId> generations() const override { return {}; }
  Status read(GenerationId /*generation*/, std::uint64_t /*offset*/, std::uint64_t /*from*/, std::uint64_t /*length*/,
              std::string* /*bytes*/) const override {
    return Status::NotSupported();
  }
  Status scan(GenerationId /*generation*/, const Each& /*each*/) const override { return Status::NotSupported(); }
  Status drop(GenerationId /*generation*/) override { return Status::NotSupported(); }
  void release(GenerationId /*generation*/) override {}
  Status read_binding(std::string* /*bytes*/) const override { return Status::NotSupported(); }
  Status write_binding(const std::string& /*bytes*/) override { return Status::NotSupported(); }
  std::uint64_t used_bytes() const override { return used; }
  std::uint64_t capacity_bytes() const override { return kCapacity; }

  std::uint64_t used = 0;
};

class StoreUsageTest : public ::testing::Test {
 protected:
  StoreUsage usage(bool has_own_drive) {
    SpillOptions options;
    if (has_own_drive) options.store = store_;
    return {options, *store_, live_};
  }
  static constexpr std::uint64_t share(double of_capacity) {
    return static_cast<std::uint64_t>(of_capacity * static_cast<double>(kCapacity));
  }

  const std::shared_ptr<StoreOfASize> store_ = std::make_shared<StoreOfASize>();
  const LiveSet live_{nullptr};
};

TEST_F(StoreUsageTest, WhatIsKeptForARunIsNoRoomForWriters) {
  StoreUsage files = usage(/*has_own_drive=*/false);
  store_->used = share(0.5);
  const double before = files.room_now().free;
  EXPECT_TRUE(files.has_room(share(0.1), /*may_use_reserve=*/false)) << "with twice as much for its sorted files";
  files.keep_for_run(share(0.35));
  EXPECT_NEAR(files.room_now().free, before - 0.35, 0.01);
  EXPECT_FALSE(files.has_room(share(0.1), /*may_use_reserve=*/false));
  EXPECT_TRUE(files.has_room(share(0.1), /*may_use_reserve=*/true));
  EXPECT_FALSE(files.has_room(share(0.2), /*may_use_reserve=*/true));
  EXPECT_NEAR(files.share_used(), 0.5, 0.01) << "nothing lies there";
  files.keep_for_run(0);
  EXPECT_DOUBLE_EQ(files.room_now().free, before);
}

TEST_F(StoreUsageTest, SortedFilesNeedNoRoomInAStoreOfItsOwnDrive) {
  StoreUsage own = usage(/*has_own_drive=*/true);
  store_->used = share(0.5);
  const double before = own.room_now().free;
  own.keep_for_run(share(0.25));
  EXPECT_DOUBLE_EQ(own.room_now().free, before);
  EXPECT_TRUE(own.has_room(share(0.3), /*may_use_reserve=*/false));
  EXPECT_EQ(own.room_for_run(0.9), std::numeric_limits<std::uint64_t>::max());
}

TEST_F(StoreUsageTest, ARunHasWhatIsLeftBetweenWritersAndReserve) {
  const StoreUsage files = usage(/*has_own_drive=*/false);
  store_->used = share(0.5);
  EXPECT_NEAR(static_cast<double>(files.room_for_run(0.2)) / kCapacity, 0.2, 0.01);  // and a tenth of reserve
  store_->used = share(0.95);
  EXPECT_EQ(files.room_for_run(0.2), 0U);
  EXPECT_EQ(files.room_for_run(2), 0U);
}

}  // namespace
}  // namespace spillway::spill
