// Generations as one run, in parts, against an ordered map with the same operations.
#include <gtest/gtest.h>
#include <rocksdb/comparator.h>

#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "spill/live/sorted_size.h"
#include "spill/rollback/merged_run.h"

namespace spillway::spill {
namespace {

// What a key is: the sequence of its newest version, and whether that is a put.
using Newest = std::map<std::string, std::pair<Sequence, Kind>>;

class MergedRunTest : public ::testing::Test {
 protected:
  MergedRunTest() {
    in_commit_queue.assume_held();
    for (std::uint32_t id = 0; id < 3; ++id) {
      ColumnFamily family;
      family.id = id;
      family.comparator = id == 1 ? rocksdb::ReverseBytewiseComparator() : rocksdb::BytewiseComparator();
      families_.add(std::move(family));
    }
    begin();
  }

  void begin() { generations_.push_back(std::make_shared<Generation>(generations_.size() + 1, families_, nullptr)); }
  void put(std::uint32_t family, const std::string& key, std::uint32_t bytes = 100) {
    in_commit_queue.assume_held();
    generations_.back()->add(family, key, ++sequence_, Kind::put, {0, 0, bytes});
    models_[family][key] = {sequence_, Kind::put};
  }
  void remove(std::uint32_t family, const std::string& key) {
    in_commit_queue.assume_held();
    generations_.back()->add(family, key, ++sequence_, Kind::remove, {});
    models_[family][key] = {sequence_, Kind::remove};
  }
  // `first` and `last` in the order of the family.
  void remove_range(std::uint32_t family, const std::string& first, const std::string& last) {
    in_commit_queue.assume_held();
    generations_.back()->add(RangeTombstone{family, first, last, ++sequence_});
    const auto* order = families_.comparator(family);
    std::erase_if(models_[family], [&](const auto& one) {
      return order->Compare(first, one.first) <= 0 && order->Compare(one.first, last) < 0;
    });
    ranges_[family].push_back({first, last});
  }
  MergedRun run() const { return {generations_, sequence_, families_, is_superseded_}; }

  // Takes all parts, and holds them against the model. Returns their number.
  int expect_parts(std::uint64_t most_bytes) {
    MergedRun run = this->run();
    std::map<std::uint32_t, Newest> seen;
    std::map<std::uint32_t, std::vector<KeyRange>> deleted;
    std::map<std::uint32_t, std::string> last;
    int parts = 0;
    while (!run.is_empty() && parts < 100'000) {
      const auto some = run.next(most_bytes);
      EXPECT_FALSE(some.empty());
      std::uint64_t bytes = 0;
      for (const RunPart& part : some) {
        const auto* order = families_.comparator(part.column_family);
        bytes += kSortedFileBytes;
        const auto follows = [&](const std::string& key) {
          const auto found = last.find(part.column_family);
          return found == last.end() || order->Compare(found->second, key) < 0;
        };
        std::string end;
        for (const Entry* entry : part.entries) {
          const std::string key(entry->key());
          EXPECT_TRUE(follows(key));
          seen[part.column_family][key] = {entry->sequence, entry->kind};
          bytes += most_sorted_bytes_of_entry(key.size(), entry->value.length);
          last[part.column_family] = key;
        }
        for (const KeyRange& range : part.deleted) {
          EXPECT_LT(order->Compare(range.begin, range.end), 0);
          deleted[part.column_family].push_back(range);
        }
      }
      if (ranges_.empty() && (some.size() > 1 || some.front().entries.size() > 1)) {
        EXPECT_LE(bytes, most_bytes);
      }
      run.advance(most_bytes);
      ++parts;
    }
    EXPECT_EQ(run.bytes_left(), 0U);
    for (const auto& [family, model] : models_) EXPECT_EQ(seen[family], model) << family;
    expect_covered(deleted);
    return parts;
  }
  // Each key that a range tombstone covers is covered by the parts' ranges, and no other.
  void expect_covered(const std::map<std::uint32_t, std::vector<KeyRange>>& deleted) const {
    for (std::uint32_t family = 0; family < 2; ++family) {
      const auto* order = families_.comparator(family);
      const auto in = [&](const std::map<std::uint32_t, std::vector<KeyRange>>& all, const std::string& key) {
        const auto found = all.find(family);
        if (found == all.end()) return false;
        return std::any_of(found->second.begin(), found->second.end(), [&](const KeyRange& range) {
          return order->Compare(range.begin, key) <= 0 && order->Compare(key, range.end) < 0;
        });
      };
      for (int i = 0; i < 400; ++i) {
        const std::string key = key_of(static_cast<unsigned>(i));
        EXPECT_EQ(in(deleted, key), in(ranges_, key)) << family << key;
        EXPECT_EQ(in(deleted, key + "x"), in(ranges_, key + "x")) << family << key;
      }
    }
  }
  static std::string key_of(std::uint64_t number) { return "key" + std::to_string(1000 + number); }

  ColumnFamilies families_;
  Generations generations_;
  Sequence sequence_ = 0;
  std::map<std::uint32_t, Newest> models_;
  std::map<std::uint32_t, std::vector<KeyRange>> ranges_;
  IsSuperseded is_superseded_ = [](const Entry&) { return false; };
};

TEST_F(MergedRunTest, APartIsSplitInOrderIntoFilesOfAboutSoManyBytes) {
  for (int i = 0; i < 100; ++i) put(0, key_of(static_cast<std::uint64_t>(i)), 1000);
  const MergedRun run = this->run();
  const RunPart whole = run.next(1 << 20).front();
  for (const std::uint64_t bytes : {1ULL, 1500ULL, 10'000ULL, 1ULL << 30}) {
    std::vector<const Entry*> joined;
    const auto parts = split(whole, bytes);
    for (const RunPart& part : parts) {
      EXPECT_FALSE(part.entries.empty());
      EXPECT_EQ(part.column_family, whole.column_family);
      joined.insert(joined.end(), part.entries.begin(), part.entries.end());
    }
    EXPECT_TRUE(std::ranges::equal(joined, whole.entries)) << bytes;
    EXPECT_EQ(parts.size(), bytes == 1 ? 100 : bytes == 1500 ? 50 : bytes == 10'000 ? 10 : 1) << bytes;
  }
}

TEST_F(MergedRunTest, ItsRangeIsThatOfWhatIsLeftIfItIsOfOneFamilyAndHasNoRangeTombstones) {
  put(0, key_of(3));
  put(0, key_of(7));
  MergedRun run = this->run();
  ASSERT_TRUE(run.plain_range());
  EXPECT_EQ(run.plain_range()->column_family, 0U);
  EXPECT_EQ(run.plain_range()->range.begin, key_of(3));
  EXPECT_EQ(run.plain_range()->range.end, key_of(7));
  run.advance(1);
  EXPECT_EQ(run.plain_range()->range.begin, key_of(7));
  run.advance(1);
  EXPECT_FALSE(run.plain_range());
  remove_range(0, key_of(4), key_of(5));
  EXPECT_FALSE(this->run().plain_range());
  begin();
  generations_.erase(generations_.begin());
  put(0, key_of(1));
  put(1, key_of(1));
  EXPECT_FALSE(this->run().plain_range());
}

TEST_F(MergedRunTest, AnythingInAnyNumberOfParts) {
  std::mt19937_64 random(1);
  for (const bool with_ranges : {false, true}) {
    for (int i = 0; i < 6000; ++i) {
      const auto family = static_cast<std::uint32_t>(random() % 2);
      const std::uint64_t number = random() % 400;
      if (with_ranges && random() % 200 == 0) {
        const std::string low = key_of(number);
        const std::string high = key_of(number + random() % 40);
        family == 0 ? remove_range(family, low, high) : remove_range(family, high, low);
      } else if (random() % 5 == 0) {
        remove(family, key_of(number));
      } else {
        put(family, key_of(number), static_cast<std::uint32_t>(random() % 3000));
      }
      if (random() % 700 == 0) begin();
      if (random() % 900 == 0) (void)generations_.back()->sorted_runs(sequence_);
    }
    for (const std::uint64_t most : {1ULL, 20'000ULL, 40'000ULL, 300'000ULL, 1ULL << 40}) expect_parts(most);
  }
}

TEST_F(MergedRunTest, PartsAreAboutAsManyAsAskedFor) {
  for (std::uint64_t i = 0; i < 1000; ++i) put(0, key_of(i), 4096);
  begin();
  for (std::uint64_t i = 0; i < 1000; i += 2) put(0, key_of(i), 4096);
  const std::uint64_t all = run().bytes_left();
  EXPECT_LT(all, 1100 * 4200ULL) << "a key once";
  EXPECT_EQ(expect_parts(all), 1);
  const int ten = expect_parts(all / 10 + kSortedFileBytes);
  EXPECT_GE(ten, 10);
  EXPECT_LE(ten, 11);
}

TEST_F(MergedRunTest, LeavesOutWhatANewerGenerationHas) {
  put(0, "a");
  put(0, "b");
  is_superseded_ = [](const Entry& entry) { return entry.key() == "b"; };
  models_[0].erase("b");
  expect_parts(1 << 20);
  is_superseded_ = [](const Entry&) { return true; };
  EXPECT_TRUE(run().is_empty());
  EXPECT_EQ(run().bytes_left(), 0U);
}

TEST_F(MergedRunTest, ATombstoneHidesWhatIsOlderInAnyGeneration) {
  put(0, "a");
  put(0, "c");
  begin();
  remove_range(0, "a", "d");
  begin();
  put(0, "b");
  EXPECT_EQ(expect_parts(1 << 20), 1);
}

TEST_F(MergedRunTest, WhatIsTooLargeForAPartIsOneByItself) {
  put(0, "a", 10);
  put(0, "b", 100 << 20);
  put(0, "c", 10);
  put(1, "a", 100 << 20);
  EXPECT_EQ(expect_parts(1 << 20), 4);
}

TEST_F(MergedRunTest, ADroppedFamilyIsLeftOut) {
  put(0, "a");
  put(2, "a");
  families_.take_handle(2).wait();
  families_.drop(2);
  models_.erase(2);
  expect_parts(1 << 20);
}

// What was not brought back because of a failure is there again.
TEST_F(MergedRunTest, APartStaysUntilItIsTakenOff) {
  for (std::uint64_t i = 0; i < 100; ++i) put(0, key_of(i), 4096);
  MergedRun run = this->run();
  const std::uint64_t most = run.bytes_left() / 4;
  const auto first = run.next(most);
  EXPECT_EQ(run.next(most).front().entries.data(), first.front().entries.data());
  run.advance(most);
  EXPECT_EQ(run.next(most).front().entries.data(), first.front().entries.data() + first.front().entries.size());
}

}  // namespace
}  // namespace spillway::spill
