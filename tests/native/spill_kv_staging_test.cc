// Staging: which slots are valid after a process was killed.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/file_bytes.h"
#include "spill/store/kv/kv_staging.h"
#include "temporary_directory.h"

namespace spillway::spill {
namespace {

using rocksdb::Status;

constexpr std::uint32_t kStagedPairBytes = 1000;
constexpr std::uint32_t kSlots = 4;

class KvStagingTest : public ::testing::Test {
 protected:
  std::unique_ptr<KvStaging> open() {
    std::unique_ptr<KvStaging> staging;
    const Status status = KvStaging::open(path_, kStagedPairBytes, kSlots, &staging);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return staging;
  }
  // Opens, and clears the slots, as recovery does.
  std::unique_ptr<KvStaging> open_empty() {
    auto staging = open();
    EXPECT_TRUE(staging->clear().ok());
    return staging;
  }

  // Adds a framed record at `at` of the slot's pair. Returns the pair's new length.
  static std::uint32_t add(KvStaging& staging, std::uint32_t slot, Position pair, std::uint32_t at,
                           const std::string& record) {
    const RecordFrame frame = frame_of({pair.generation, pair.offset + at}, record);
    std::memcpy(staging.bytes(slot) + at, &frame, sizeof frame);
    std::memcpy(staging.bytes(slot) + at + sizeof frame, record.data(), record.size());
    const auto end = static_cast<std::uint32_t>(at + framed_bytes(record.size()));
    staging.grow(slot, end);
    return end;
  }
  struct Kept {
    Position position;
    Position follows;
    std::string bytes;
  };
  std::vector<Kept> kept() {
    std::vector<Kept> all;
    const auto staging = open();
    for (const KvStaging::Left& one : staging->left())
      all.push_back({one.position, one.follows, std::string(one.bytes)});
    return all;
  }

  TemporaryDirectory directory_;
  const std::string path_ = directory_.path("staged");
};

TEST_F(KvStagingTest, WhatHasGrownIsLeftInTheOrderOfItsPositions) {
  {
    auto staging = open_empty();
    EXPECT_TRUE(staging->left().empty());
    staging->begin(2, {8, 0}, {7, 1016}, false);
    add(*staging, 2, {8, 0}, 0, "later generation");
    staging->begin(0, {7, 1000}, {7, 900}, false);
    const std::uint32_t at = add(*staging, 0, {7, 1000}, 0, "one");
    add(*staging, 0, {7, 1000}, at, "two");
    staging->begin(1, {9, 0}, {8, 30}, false);  // without any record
  }
  const auto all = kept();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].position, (Position{7, 1000}));
  EXPECT_EQ(all[0].follows, (Position{7, 900}));
  EXPECT_EQ(all[0].bytes.size(), 2 * framed_bytes(3));
  EXPECT_EQ(all[0].bytes.substr(sizeof(RecordFrame), 3), "one");
  EXPECT_EQ(all[1].position, (Position{8, 0}));
}

TEST_F(KvStagingTest, WhatWasWrittenAndDidNotGrowIsNotThere) {
  {
    auto staging = open_empty();
    staging->begin(0, {7, 0}, {}, false);
    const std::uint32_t at = add(*staging, 0, {7, 0}, 0, "one");
    std::memcpy(staging->bytes(0) + at, "two, unfinished", 15);
  }
  const auto all = kept();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].bytes.size(), framed_bytes(3));
}

TEST_F(KvStagingTest, ASlotThatBeginsAgainHasNothingOfWhatItHad) {
  {
    auto staging = open_empty();
    staging->begin(0, {7, 0}, {}, false);
    add(*staging, 0, {7, 0}, 0, "old");
    staging->begin(0, {7, 1000}, {7, 11}, false);
  }
  EXPECT_TRUE(kept().empty());
}

TEST_F(KvStagingTest, ClearEmptiesTheSlotsAndKeepsTheRecordOfTheDrive) {
  {
    auto staging = open_empty();
    staging->durable().replace({{7, 5}});
    staging->begin(0, {7, 0}, {}, false);
    add(*staging, 0, {7, 0}, 0, "one");
  }
  EXPECT_EQ(kept().size(), 1U);
  open_empty();
  EXPECT_TRUE(kept().empty());
  EXPECT_EQ(open()->durable().read(), (KvDurable::Last{{7, 5}}));
}

// The slot of a pair with a piece of one record is filled at once. Its bytes contain frames only if it is the first
// piece.
TEST_F(KvStagingTest, APieceOfARecordIsCheckedCompletely) {
  const std::string piece(kStagedPairBytes, 'p');
  {
    auto staging = open_empty();
    staging->begin(3, {7, 1001}, {7, 0}, true);
    std::memcpy(staging->bytes(3), piece.data(), piece.size());
    staging->grow(3, kStagedPairBytes);
  }
  const auto all = kept();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].bytes, piece);
}

// If any byte of a slot changes, the slot is invalid, or unchanged: no checksum covers the unused rest of the pair.
TEST_F(KvStagingTest, ASlotWithAChangedByteIsInvalid) {
  {
    auto staging = open_empty();
    staging->begin(0, {7, 0}, {}, false);
    add(*staging, 0, {7, 0}, 0, std::string(40, 'r'));
  }
  const std::string whole = file_bytes(path_);
  const std::string bytes = kept().at(0).bytes;
  const std::size_t slot = whole.find(std::string(40, 'r')) - sizeof(RecordFrame) - 64;
  std::size_t noticed = 0;
  for (std::size_t at = slot; at < slot + 64 + bytes.size(); ++at) {
    SCOPED_TRACE(at - slot);
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    std::ofstream(path_, std::ios::binary) << changed;
    const auto all = kept();
    noticed += all.empty() ? 1 : 0;
    if (!all.empty()) {
      EXPECT_EQ(all[0].bytes, bytes);
      EXPECT_EQ(all[0].position, (Position{7, 0}));
    }
  }
  EXPECT_EQ(noticed, 48 + bytes.size());  // six words of the slot's head count
}

TEST_F(KvStagingTest, AnIncompleteFileIsEmptyAndAForeignOneIsRefused) {
  open();  // like a kill before it was cleared
  EXPECT_TRUE(kept().empty());
  open_empty();
  std::unique_ptr<KvStaging> staging;
  EXPECT_TRUE(KvStaging::open(path_, kStagedPairBytes, kSlots + 1, &staging).IsInvalidArgument());
  EXPECT_TRUE(KvStaging::open(path_, kStagedPairBytes + 64, kSlots, &staging).IsInvalidArgument());
  EXPECT_EQ(staging, nullptr);
  const std::string others(std::filesystem::file_size(path_), 'x');
  std::ofstream(path_, std::ios::binary) << others;
  EXPECT_TRUE(KvStaging::open(path_, kStagedPairBytes, kSlots, &staging).IsInvalidArgument());
  EXPECT_TRUE(KvStaging::open(directory_.path("no/such"), kStagedPairBytes, kSlots, &staging).IsIOError());
}

TEST_F(KvStagingTest, WithoutAPathItIsInMemory) {
  std::unique_ptr<KvStaging> staging;
  ASSERT_TRUE(KvStaging::open("", kStagedPairBytes, kSlots, &staging).ok());
  ASSERT_TRUE(staging->clear().ok());
  staging->begin(0, {7, 0}, {}, false);
  add(*staging, 0, {7, 0}, 0, "one");
  EXPECT_EQ(staging->left().size(), 1U);
  EXPECT_TRUE(staging->sync().ok());
  EXPECT_TRUE(staging->sync_head().ok());
  EXPECT_EQ(staging->slots(), kSlots);
}

}  // namespace
}  // namespace spillway::spill
