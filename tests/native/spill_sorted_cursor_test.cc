// The cursor over a view's keys, and the ranges that its tombstones cover, against ordered maps.
#include <gtest/gtest.h>
#include <rocksdb/comparator.h>

#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "spill/live/sorted_cursor.h"

namespace spillway::spill {
namespace {

constexpr std::uint32_t kFamily = 3;
constexpr std::uint32_t kReversed = 7;

const ColumnFamilies& cursor_families() {
  static const auto* const all = [] {
    auto* made = new ColumnFamilies;  // NOLINT: it outlives every test
    for (const std::uint32_t id : {kFamily, kReversed}) {
      ColumnFamily family;
      family.id = id;
      family.comparator = id == kReversed ? rocksdb::ReverseBytewiseComparator() : rocksdb::BytewiseComparator();
      made->add(std::move(family));
    }
    return made;
  }();
  return *all;
}

struct ByComparator {
  const rocksdb::Comparator* order;
  bool operator()(const std::string& a, const std::string& b) const { return order->Compare(a, b) < 0; }
};
using Newest = std::map<std::string, Sequence, ByComparator>;  // of each key, up to the view's sequence

struct Filled {
  View view;
  std::map<std::uint32_t, std::map<std::string, std::vector<Sequence>>> versions;

  Newest newest(std::uint32_t family, const rocksdb::Comparator* order) const {
    Newest all{ByComparator{order}};
    const auto found = versions.find(family);
    if (found == versions.end()) return all;
    for (const auto& [key, sequences] : found->second) {
      for (const Sequence one : sequences) {
        if (one <= view.up_to) all[key] = one;
      }
    }
    return all;
  }
};

// Three generations: few keys with very many versions, many with one. The view includes some nine tenths of them.
Filled fill(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Filled filled;
  auto generations = std::make_shared<Generations>();
  Sequence sequence = 0;
  for (GenerationId id = 1; id <= 3; ++id) {
    generations->push_back(std::make_shared<Generation>(id, cursor_families(), std::function<void(GenerationId)>()));
    for (int i = 0; i < 400; ++i) {
      const std::uint32_t family = random() % 4 == 0 ? kReversed : kFamily;
      const std::string key =
          random() % 3 == 0 ? std::string(1, static_cast<char>('a' + random() % 3)) : std::to_string(random() % 1000);
      const Kind kind = random() % 4 == 0 ? Kind::remove : Kind::put;
      ++sequence;
      generations->back()->add(family, key, sequence, kind, {.offset = sequence, .from = 0, .length = 1});
      filled.versions[family][key].push_back(sequence);
    }
  }
  filled.view = {std::move(generations), sequence * 9 / 10};
  return filled;
}

std::vector<std::pair<std::string, Sequence>> rest(SortedCursor& cursor) {
  std::vector<std::pair<std::string, Sequence>> all;
  while (const Entry* entry = cursor.next()) all.emplace_back(entry->key(), entry->sequence);
  return all;
}

TEST(SortedCursor, HasTheNewestVersionOfEachKeyInOrderBothWays) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const Filled filled = fill(seed);
    for (const std::uint32_t family : {kFamily, kReversed}) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", family " << family);
      const rocksdb::Comparator* order = cursor_families().comparator(family);
      const Newest newest = filled.newest(family, order);
      SortedCursor cursor(filled.view, family, order);
      cursor.seek_to_end(Direction::forward);
      EXPECT_EQ(rest(cursor), (std::vector<std::pair<std::string, Sequence>>(newest.begin(), newest.end())));
      EXPECT_EQ(cursor.next(), nullptr);  // and does not move any more
      cursor.seek_to_end(Direction::backward);
      EXPECT_EQ(rest(cursor), (std::vector<std::pair<std::string, Sequence>>(newest.rbegin(), newest.rend())));
      EXPECT_EQ(cursor.next(), nullptr);
    }
  }
}

TEST(SortedCursor, SeeksAnyKeyInclusiveOrNot) {
  const Filled filled = fill(9);
  for (const std::uint32_t family : {kFamily, kReversed}) {
    const rocksdb::Comparator* order = cursor_families().comparator(family);
    const Newest newest = filled.newest(family, order);
    SortedCursor cursor(filled.view, family, order);
    std::vector<std::string> targets = {"", "zzz", "b", "bb"};
    for (const auto& [key, sequence] : newest) targets.push_back(key);
    for (const std::string& target : targets) {
      for (const bool or_equal : {true, false}) {
        SCOPED_TRACE(target);
        cursor.seek(target, Direction::forward, or_equal);
        const auto behind = or_equal ? newest.lower_bound(target) : newest.upper_bound(target);
        const Entry* const forward = cursor.next();
        ASSERT_EQ(forward != nullptr, behind != newest.end());
        if (forward != nullptr) {
          EXPECT_EQ(forward->key(), behind->first);
        }
        cursor.seek(target, Direction::backward, or_equal);
        const auto after = or_equal ? newest.upper_bound(target) : newest.lower_bound(target);
        const Entry* const backward = cursor.next();
        ASSERT_EQ(backward != nullptr, after != newest.begin());
        if (backward != nullptr) {
          EXPECT_EQ(backward->key(), std::prev(after)->first);
        }
      }
    }
  }
}

TEST(SortedCursor, OfAnEmptyViewIsAtItsEnd) {
  const rocksdb::Comparator* order = rocksdb::BytewiseComparator();
  for (const View& view : {View{}, View{fill(1).view.generations, 0}}) {
    SortedCursor cursor(view, kFamily, order);
    EXPECT_EQ(cursor.next(), nullptr);  // before any seek
    cursor.seek_to_end(Direction::forward);
    EXPECT_EQ(cursor.next(), nullptr);
    cursor.seek("a", Direction::backward, true);
    EXPECT_EQ(cursor.next(), nullptr);
  }
}

TEST(RangeCover, KnowsTheNewestTombstoneOverEachKeyAndTheSpanAroundIt) {
  const rocksdb::Comparator* order = rocksdb::BytewiseComparator();
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    auto generations = std::make_shared<Generations>();
    std::vector<RangeTombstone> all;
    const Sequence up_to = 15;
    for (Sequence sequence = 1; sequence <= 20; ++sequence) {
      if (sequence % 7 == 1) {
        generations->push_back(
            std::make_shared<Generation>(sequence, cursor_families(), std::function<void(GenerationId)>()));
      }
      const std::string begin(1, static_cast<char>('a' + random() % 20));
      const std::string end(
          1, static_cast<char>('a' + random() % 20));  // half of the time before its begin, so that it covers nothing
      RangeTombstone one{random() % 5 == 0 ? kReversed : kFamily, begin, end, sequence};
      generations->back()->add(one);
      if (one.column_family == kFamily && sequence <= up_to) all.push_back(one);
    }
    const RangeCover cover(View{generations, up_to}, kFamily, order);
    const auto newest_over = [&](const std::string& key) {
      Sequence newest = 0;
      for (const RangeTombstone& one : all) {
        if (one.begin <= key && key < one.end) newest = std::max(newest, one.sequence);
      }
      return newest;
    };
    bool covers_any = false;
    for (char letter = 'a'; letter <= 'v'; ++letter) {
      const std::string key(1, letter);
      ASSERT_EQ(cover.newest_over(key), newest_over(key)) << key;
      if (newest_over(key) == 0) continue;
      covers_any = true;
      std::string begin = key;
      while (begin > "a" && newest_over(std::string(1, static_cast<char>(begin[0] - 1))) > 0) --begin[0];
      std::string end = key;
      while (newest_over(end) > 0) ++end[0];
      const RangeCover::Span span = cover.span_around(key);
      EXPECT_EQ(span.begin.ToString(), begin);
      EXPECT_EQ(span.end.ToString(), end);
    }
    EXPECT_EQ(cover.empty(), !covers_any);
  }
}

}  // namespace
}  // namespace spillway::spill
