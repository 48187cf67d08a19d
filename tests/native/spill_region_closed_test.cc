// What a store in files knows about its end: after a close all of it, after a kill what was synced.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "base/file_bytes.h"
#include "flipped_bytes.h"
#include "spill_region_store.h"

namespace spillway::spill {
namespace {

using rocksdb::Status;

// A closed store, which records that all of it is durable.
class ClosedStoreTest : public RegionStoreTest {
 protected:
  ClosedStoreTest() {
    auto store = open();
    recover(*store);
    for (GenerationId generation = 1; generation <= 3; ++generation) {
      EXPECT_TRUE(store->begin(generation).ok());
      for (int i = 0; i < 3; ++i) append(*store, std::string(50, static_cast<char>('a' + i)));
    }
    EXPECT_TRUE(store->close().ok());
    store.reset();
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      const std::string name = entry.path().filename();
      if (name != "LOCK") files_[name] = file_bytes(entry.path());
    }
    all_ = found();
    EXPECT_EQ(files_.size(), 4U);  // including the one that records it
  }
  void restore() const {
    for (const auto& [name, bytes] : files_) write(path(name), bytes);
  }
  // Everything, or an error that names the file.
  void expect_all_or_told(const std::string& name, bool may_be_all) {
    Status status;
    const Records left = recover(*open(), &status);
    if (status.ok()) {
      EXPECT_TRUE(may_be_all);
      EXPECT_EQ(left, all_);
    } else {
      EXPECT_TRUE(status.IsCorruption()) << status.ToString();
      EXPECT_NE(status.ToString().find(path(name)), std::string::npos) << status.ToString();
    }
  }

  std::map<std::string, std::string> files_;
  Records all_;
};

TEST_F(ClosedStoreTest, AnyChangedByteIsReportedOrHasNoEffect) {
  for (const auto& [name, bytes] : files_) {
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      SCOPED_TRACE(name + " at " + std::to_string(at));
      restore();
      flip(path(name), at, static_cast<std::uint8_t>(1U << (at % 8)));
      expect_all_or_told(name, /*may_be_all=*/name == "DURABLE");
    }
  }
}

TEST_F(ClosedStoreTest, AFileThatIsShorterOrEmptyOrMissingOrZeroedIsReported) {
  for (const auto& [name, bytes] : files_) {
    const bool may_be_all = name == "DURABLE";
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      SCOPED_TRACE(name + " of " + std::to_string(size));
      restore();
      write(path(name), bytes.substr(0, size));
      expect_all_or_told(name, may_be_all);
    }
    SCOPED_TRACE(name);
    restore();
    write(path(name), std::string(bytes.size(), '\0'));
    expect_all_or_told(name, may_be_all);
    restore();
    std::filesystem::remove(path(name));
    expect_all_or_told(name, may_be_all);
  }
}

// Changes by a later process replace the earlier record.
TEST_F(ClosedStoreTest, WhatWasCutOrDroppedIsNotMissed) {
  for (const bool closes : {false, true}) {
    for (const bool cuts : {false, true}) {
      SCOPED_TRACE(closes);
      SCOPED_TRACE(cuts);
      std::filesystem::remove_all(directory_);
      std::filesystem::create_directory(directory_);
      restore();
      auto store = open();
      recover(*store);
      ASSERT_TRUE(store->cut(cuts ? 2 : 3, cuts ? last_.second : ~std::uint64_t{0}).ok());
      ASSERT_TRUE(store->drop(1).ok());
      store->release(1);
      ASSERT_TRUE(store->begin(4).ok());
      append(*store, "four");
      if (closes) {
        ASSERT_TRUE(store->close().ok());
      }
      store.reset();
      Records expected(all_.begin() + 3, all_.begin() + (cuts ? 5 : 9));
      expected.emplace_back(4, "four");
      EXPECT_EQ(found(), expected);
    }
  }
}

// Killed after a sync: what was synced is known, even without a later frame.
TEST_F(RegionStoreTest, DamageToTheLastSyncedRecordIsReportedAfterAKill) {
  std::uint64_t synced = 0;
  std::uint64_t loose = 0;
  {
    auto store = open();
    recover(*store);
    ASSERT_TRUE(store->begin(1).ok());
    append(*store, "first");
    synced = append(*store, "synced");
    ASSERT_TRUE(store->sync().ok());
    loose = append(*store, "not synced");
  }
  const std::string log = path("000001.spill");
  const std::string whole = file_bytes(log);
  for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{10}, synced, synced + 20, loose - 1}) {
    SCOPED_TRACE(size);
    write(log, whole.substr(0, size));
    Status status;
    recover(*open(), &status);
    EXPECT_TRUE(status.IsCorruption()) << status.ToString();
    EXPECT_NE(status.ToString().find(log + " is damaged at byte "), std::string::npos) << status.ToString();
  }
  write(log, whole);
  flip(log, synced + kFrameHeaderBytes + 2, 1);
  Status status;
  recover(*open(), &status);
  EXPECT_TRUE(status.IsCorruption()) << status.ToString();
  // After the synced part, a loss of power may have torn it.
  write(log, whole.substr(0, whole.size() - 1));
  EXPECT_EQ(found(), (Records{{1, "first"}, {1, "synced"}}));
  // If the record of the sync is lost with the power, no damage is reported.
  std::filesystem::remove(path("DURABLE"));
  write(log, whole.substr(0, loose - 1));
  EXPECT_EQ(found(), (Records{{1, "first"}}));
}

// The file is rewritten when it has grown.
TEST_F(RegionStoreTest, ManySyncsLeaveASmallFile) {
  auto store = open();
  recover(*store);
  ASSERT_TRUE(store->begin(1).ok());
  for (int i = 0; i < 10000; ++i) {
    append(*store, "r");
    ASSERT_TRUE(store->sync().ok());
  }
  const std::uint64_t end = file_bytes(path("000001.spill")).size();
  store.reset();
  EXPECT_LT(file_bytes(path("DURABLE")).size(), 140'000U);
  std::filesystem::resize_file(path("000001.spill"), end - 1);
  store = open();
  Status status;
  recover(*store, &status);
  EXPECT_TRUE(status.IsCorruption()) << status.ToString();
}

}  // namespace
}  // namespace spillway::spill
