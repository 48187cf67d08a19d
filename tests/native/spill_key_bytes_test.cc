// How much memory a live key takes: the statistic index_bytes, key by key while the index grows and shrinks.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "spill/live/generation.h"
#include "spill/live/key_index.h"

namespace spillway::spill {
namespace {

constexpr std::uint64_t kLeastKeys = 10'000;
constexpr std::uint64_t kMostKeys = 1'000'000;  // of 16 bytes; of others a quarter of it

// Bytes of a key of up to 16 bytes, and what is allowed of a longer one: its bytes and the unused part of a block.
std::uint64_t bound(std::size_t key_bytes) { return key_bytes <= 16 ? 100 : 100 + (key_bytes - 16) * 9 / 8; }

class KeyBytes : public testing::TestWithParam<std::size_t> {
 protected:
  void insert() { write(sequence_ + 1); }
  // The next version of that key.
  void write(std::uint64_t key_number) {
    std::string key(GetParam(), 'k');
    const auto number = static_cast<std::uint32_t>(key_number) * 2654435761U;  // no two the same
    for (std::size_t i = 0; i < 4; ++i) key[i] = static_cast<char>(number >> (8 * i));
    index_.write(
        {.column_family = 0, .key = key, .sequence = ++sequence_, .value = {.offset = 0, .from = 0, .length = 1}},
        *generations_.back(), /*may_replace=*/true);
  }
  void add_generation() {
    const GenerationId id = ++last_id_;
    generations_.push_back(std::make_shared<Generation>(id, families_, std::function<void(GenerationId)>()));
  }
  // As LiveSet::memory_bytes() sums it up.
  std::uint64_t memory() const {
    std::uint64_t bytes = index_.memory_bytes();
    for (const auto& one : generations_) bytes += one->memory_bytes();
    return bytes;
  }
  void sort() const {
    for (const auto& one : generations_) (void)one->sorted_runs(sequence_);
  }
  bool is_within_bound() const { return memory() <= index_.size() * bound(GetParam()); }

  ColumnFamilies families_;
  KeyIndex index_;
  std::deque<std::shared_ptr<Generation>> generations_;
  Sequence sequence_ = 0;
  GenerationId last_id_ = 0;
};

// After each key, so also right after a table or a block was made. What a reader sorts counts as well.
TEST_P(KeyBytes, StayWithinTheBoundWhileTheIndexGrows) {
  add_generation();
  std::uint64_t next_sort = kLeastKeys;
  const std::uint64_t most = GetParam() == 16 ? kMostKeys : kMostKeys / 4;
  while (index_.size() < most) {
    insert();
    if (index_.size() < kLeastKeys) continue;
    if (index_.size() == next_sort) {
      sort();
      next_sort += next_sort / 5;
    }
    ASSERT_TRUE(is_within_bound()) << memory() << " bytes of " << index_.size() << " keys";
  }
}

// No view holds the older versions.
TEST_P(KeyBytes, StayWithinTheBoundWhereKeysAreOverwritten) {
  add_generation();
  const std::uint64_t most = kMostKeys / 4;
  for (std::uint64_t key = 1; key <= most; ++key) {
    write(key);
    write(key);
    write((key + 1) / 2);  // one of before
    if (key % 50'000 == 0) sort();
    if (key < kLeastKeys) continue;
    ASSERT_TRUE(is_within_bound()) << memory() << " bytes of " << index_.size() << " keys";
  }
  EXPECT_EQ(index_.size(), most);
  EXPECT_EQ(generations_.back()->entries(), 3 * most);
}

TEST_P(KeyBytes, StayWithinTheBoundWhileGenerationsComeAndGo) {
  const auto fill = [this](int generations, std::uint64_t keys) {
    for (int i = 0; i < generations; ++i) {
      add_generation();
      for (std::uint64_t key = 0; key < keys; ++key) {
        insert();
        if (index_.size() < kLeastKeys) continue;
        ASSERT_TRUE(is_within_bound()) << memory() << " bytes of " << index_.size() << " keys";
      }
      sort();
    }
  };
  for (int round = 0; round < 2; ++round) {
    fill(8, 2'500);
    fill(4, 25'000);
    while (index_.size() > kLeastKeys) {
      const auto gone = generations_.front();
      generations_.pop_front();
      index_.remove(*gone);
      if (index_.size() < kLeastKeys) break;
      ASSERT_TRUE(is_within_bound()) << memory() << " bytes of " << index_.size() << " keys are left";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OfLengths, KeyBytes, testing::Values(4, 8, 16, 24, 32, 100));

}  // namespace
}  // namespace spillway::spill
