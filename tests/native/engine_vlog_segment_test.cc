// The size of the value log's segments: a drive must have room for at least eight, or the collector cannot free space.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "engine_vlog_fixture.h"

namespace spillway::engine {
namespace {

constexpr std::uint64_t kMiB = 1ULL << 20;

class VlogSegment : public VlogFixture {
 protected:
  EngineSpec with_default_segments() const {
    EngineSpec chosen = spec({});
    chosen.settings.erase("vlog.segment_bytes");
    return chosen;
  }
  void open_with_default_segments(StringMap settings = {}) {
    EngineSpec chosen = with_default_segments();
    for (auto& [key, value] : settings) chosen.settings[key] = value;
    auto opened = open_engine(chosen);
    ASSERT_TRUE(opened) << opened.status().message();
    engine_ = std::move(*opened);
  }
  std::uint64_t largest_segment() const {
    std::uint64_t largest = 0;
    for (const std::string& path : segments()) largest = std::max(largest, std::filesystem::file_size(path));
    return largest;
  }
};

TEST_F(VlogSegment, MoreThanAnEighthOfTheDriveIsRefusedBeforeThereIsADrive) {
  EngineSpec chosen = spec({{"vlog.segment_bytes", std::to_string(8 * kMiB)}});
  chosen.capacity_bytes = 64 * kMiB;
  EXPECT_TRUE(check_engine(chosen));
  chosen.settings["vlog.segment_bytes"] = std::to_string(8 * kMiB + 1);
  const Status status = check_engine(chosen);
  EXPECT_EQ(status.fault(), Fault::bad_input);
  EXPECT_EQ(
      status.message(),
      "engine.vlog.segment_bytes is 8388609, and the drive has room for less than 8 of these; lower it to 8388608, so "
      "that the collector can work");
}

TEST_F(VlogSegment, MoreThanAnEighthOfThePartitionIsRefusedAtOpening) {
  make_drive(16 * kMiB);
  const std::uint64_t most = volume_->space().capacity_bytes / 8;
  EXPECT_EQ(try_open({{"vlog.segment_bytes", std::to_string(most + 1)}}).fault(), Fault::bad_input);
  EXPECT_FALSE(std::filesystem::exists(directory_));
  EXPECT_TRUE(try_open({{"vlog.segment_bytes", std::to_string(most)}}));
}

// The file system of a directory that does not exist yet is the one of its parent.
TEST_F(VlogSegment, OfADirectoryTheFileSystemCounts) {
  const std::uint64_t capacity = std::filesystem::space(temporary_.root()).capacity;
  EngineSpec chosen = spec({{"vlog.segment_bytes", std::to_string(1ULL << 30)}});
  chosen.directory = temporary_.path("not/yet/made");
  EXPECT_EQ(check_engine(chosen).is_ok(), capacity / 8 >= 1ULL << 30);
  EXPECT_FALSE(std::filesystem::exists(temporary_.path("not")));
}

// A twelfth of the drive is live, and twice its capacity is written.
TEST_F(VlogSegment, ASmallDriveDoesNotFillWithTheDefault) {
  make_drive(16 * kMiB);
  open_with_default_segments();
  constexpr std::uint64_t kValueBytes = 4000;
  const std::uint64_t keys = 16 * kMiB / 12 / kValueBytes;
  Model model;
  for (std::uint64_t i = 0; i < 2 * 16 * kMiB / kValueBytes; ++i) {
    const std::string key = key_of(i * 7919 % keys);
    const std::string value = value_of(i, kValueBytes);
    const Status status = engine_->put(key, value);
    ASSERT_TRUE(status) << i << ": " << status.message();
    model[key] = value;
  }
  expect_same(model);
  EXPECT_LE(largest_segment(), 2 * kMiB);
  EXPECT_GT(largest_segment(), 3 * kMiB / 2);
}

TEST_F(VlogSegment, ALargeDriveHasSegmentsOf128MiB) {
  make_drive(2048 * kMiB);
  open_with_default_segments({{"vlog.gc", "false"}});
  const std::string value(4 * kMiB, 'v');
  for (std::uint64_t i = 0; i < 36; ++i) ASSERT_TRUE(engine_->put(key_of(i), value));
  EXPECT_EQ(segments().size(), 2U);
  EXPECT_LE(largest_segment(), 128 * kMiB);
  EXPECT_GT(largest_segment(), 120 * kMiB);
}

}  // namespace
}  // namespace spillway::engine
