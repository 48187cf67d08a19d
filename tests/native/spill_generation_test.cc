// Generations and views against ordered maps: every version of every key, by sequence.
#include <gtest/gtest.h>
#include <rocksdb/comparator.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "spill/live/generation.h"

namespace spillway::spill {
namespace {

constexpr std::uint32_t kReverse = 7;  // a family with another order

ColumnFamilies& families() {
  static ColumnFamilies all;
  all.add({.id = kReverse,
           .handle = nullptr,
           .comparator = rocksdb::ReverseBytewiseComparator(),
           .merge_operator = nullptr,
           .limits = {}});
  return all;
}

std::shared_ptr<Generation> generation(GenerationId id, std::function<void(GenerationId)> on_last_use = {}) {
  return std::make_shared<Generation>(id, families(), std::move(on_last_use));
}

// All versions of a key, oldest first.
using Versions = std::map<Sequence, const Entry*>;
using VersionModel = std::map<std::pair<std::uint32_t, std::string>, Versions>;

const Entry* newest(const VersionModel& model, std::uint32_t family, const std::string& key, Sequence up_to) {
  const auto found = model.find({family, key});
  if (found == model.end()) return nullptr;
  const auto after = found->second.upper_bound(up_to);
  return after == found->second.begin() ? nullptr : std::prev(after)->second;
}

class RandomWrites {
 public:
  explicit RandomWrites(std::uint64_t seed) : random_(seed) {}

  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  std::uint32_t family() { return std::array<std::uint32_t, 3>{0, kReverse, 70000}[below(3)]; }
  std::string key() {
    std::string key(below(12), 'k');
    // Some above 127, because bytes compare as unsigned.
    for (char& byte : key) byte = static_cast<char>(below(3) * 127);
    return key;
  }
  void write(Generation& generation, VersionModel& model) {
    const std::uint32_t to = family();
    const std::string at = key();
    const Kind kind = below(4) == 0 ? Kind::remove : Kind::put;
    ++sequence_;
    const Entry* entry = generation.add(to, at, sequence_, kind, {.offset = sequence_ * 10, .from = 17, .length = 5});
    model[{to, at}][sequence_] = entry;
    EXPECT_EQ(entry->key(), at);
    EXPECT_EQ(entry->generation, &generation);
  }
  Sequence sequence() const { return sequence_; }

 private:
  std::mt19937_64 random_;
  Sequence sequence_ = 0;
};

TEST(Generation, FindsEveryVersionOfEveryKey) {
  RandomWrites random(1);
  VersionModel model;
  auto view = std::make_shared<Generations>();
  for (GenerationId id = 1; id <= 3; ++id) {
    view->push_back(generation(id));
    for (int i = 0; i < 3000; ++i) {
      random.write(*view->back(), model);
      const std::uint32_t family = random.family();
      const std::string key = random.key();
      const Sequence up_to = random.below(random.sequence() + 2);
      EXPECT_EQ((View{view, up_to}.find(family, key)), newest(model, family, key, up_to));
    }
  }
  for (const auto& [place, versions] : model) {
    EXPECT_EQ((View{view, random.sequence()}.find(place.first, place.second)), versions.rbegin()->second);
  }
}

TEST(Generation, SortedRunsHoldEveryEntryOnceAndAreFew) {
  RandomWrites random(2);
  VersionModel model;
  const auto one = generation(1);
  for (int i = 0; i < 1500; ++i) {
    random.write(*one, model);
    const auto runs = one->sorted_runs(one->last_sequence());
    EXPECT_LE(runs.size(), 11U);  // log2 of the number of entries
    std::uint64_t held = 0;
    for (const auto& run : runs) {
      held += run->size();
      EXPECT_TRUE(std::is_sorted(run->begin(), run->end(), EntryOrder(families())));
    }
    EXPECT_EQ(held, one->entries());
  }
  const auto before = one->memory_bytes();
  EXPECT_GE(before, 1500 * (sizeof(Entry) + sizeof(void*)));  // a pointer each, in a run
  one->sorted_runs(one->last_sequence());
  EXPECT_EQ(one->memory_bytes(), before);
}

TEST(Generation, OrderIsTheFamiliesOwnAndTheNewestFirst) {
  const auto one = generation(1);
  const Entry* a1 = one->add(0, "a", 1, Kind::put, {});
  const Entry* b2 = one->add(0, "b", 2, Kind::put, {});
  const Entry* a3 = one->add(0, "a", 3, Kind::remove, {});
  const Entry* ra = one->add(kReverse, "a", 4, Kind::put, {});
  const Entry* rb = one->add(kReverse, "b", 5, Kind::put, {});
  const Entry* last = one->add(70000, "", 6, Kind::put, {});
  const auto runs = one->sorted_runs(6);
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(*runs[0], (SortedRun{a3, a1, b2, rb, ra, last}));
}

TEST(Generation, AnOldViewSortsNothingNew) {
  const auto one = generation(1);
  one->add(0, "a", 5, Kind::put, {});
  EXPECT_TRUE(one->sorted_runs(4).empty());
  const auto runs = one->sorted_runs(5);
  one->add(0, "b", 6, Kind::put, {});
  EXPECT_EQ(one->sorted_runs(5), runs);
  EXPECT_EQ(one->find(0, "b", 5), nullptr);
}

TEST(Generation, CountsItselfAndReportsItsLastRelease) {
  GenerationId released = 0;
  auto one = generation(9, [&](GenerationId id) { released = id; });
  one->add(0, "key", 1, Kind::put, {.offset = 0, .from = 0, .length = 100});
  one->add(0, std::string(1 << 21, 'x'), 2, Kind::remove, {.offset = 0, .from = 0, .length = 100});
  one->add(RangeTombstone{.column_family = 0, .begin = "a", .end = "bc", .sequence = 3});
  EXPECT_EQ(one->user_bytes(), 103U + (1 << 21) + 3);
  EXPECT_GE(one->memory_bytes(), one->user_bytes() - 100);
  EXPECT_EQ(one->entries(), 2U);
  EXPECT_EQ(one->last_sequence(), 3U);
  std::vector<Sequence> order;
  one->for_each([&](const Entry& entry) { order.push_back(entry.sequence); });
  EXPECT_EQ(order, (std::vector<Sequence>{1, 2}));
  View view{std::make_shared<Generations>(Generations{one}), 3};
  one->mark_dropped();
  one.reset();
  EXPECT_EQ(released, 0U);
  view.generations->front()->mark_dropped();
  view = {};
  EXPECT_EQ(released, 9U);
}

TEST(Generation, ThatTheStoreStillHasIsNotReleased) {
  bool released = false;
  generation(9, [&](GenerationId) { released = true; }).reset();
  EXPECT_FALSE(released);
}

TEST(Generation, RangeTombstonesCoverByTheFamiliesOrder) {
  const auto first = generation(1);
  const auto second = generation(2);
  EXPECT_FALSE(first->has_range_tombstones());
  first->add(RangeTombstone{.column_family = 0, .begin = "b", .end = "d", .sequence = 10});
  first->add(RangeTombstone{.column_family = kReverse, .begin = "d", .end = "b", .sequence = 11});
  second->add(RangeTombstone{.column_family = 0, .begin = "c", .end = "e", .sequence = 20});
  EXPECT_TRUE(first->has_range_tombstones());
  const auto both = std::make_shared<Generations>(Generations{first, second});
  const auto covered = [&](Sequence up_to, std::uint32_t family, std::string_view key) {
    return View{both, up_to}.covering_tombstone(family, key, families());
  };
  EXPECT_EQ(covered(99, 0, "b"), 10U);
  EXPECT_EQ(covered(99, 0, "c"), 20U);
  EXPECT_EQ(covered(19, 0, "c"), 10U);
  EXPECT_EQ(covered(9, 0, "c"), 0U);
  EXPECT_EQ(covered(99, 0, "e"), 0U);
  EXPECT_EQ(covered(99, kReverse, "b"), 0U);
  EXPECT_EQ(covered(99, kReverse, "d"), 11U);
  EXPECT_EQ(covered(99, 3, "c"), 0U);
  EXPECT_EQ(first->range_tombstones().size(), 2U);
}

// Against a search through all of them. Many ends coincide.
TEST(Generation, TheNewestRangeTombstoneIsFoundAmongMany) {
  RandomWrites random(7);
  const auto one = generation(1);
  for (Sequence sequence = 1; sequence <= 400; ++sequence) {
    one->add(RangeTombstone{
        .column_family = random.family(), .begin = random.key(), .end = random.key(), .sequence = sequence});
  }
  const auto all = one->range_tombstones();
  int covered = 0;
  for (int i = 0; i < 4000; ++i) {
    const std::uint32_t family = random.family();
    const std::string key = random.key();
    const Sequence up_to = i % 2 == 0 ? 400 : random.below(400);
    const rocksdb::Comparator& order = *families().comparator(family);
    Sequence expected = 0;
    for (const RangeTombstone& each : all) {
      const bool covers = order.Compare(each.begin, key) <= 0 && order.Compare(key, each.end) < 0;
      if (covers && each.column_family == family && each.sequence <= up_to) expected = each.sequence;
    }
    ASSERT_EQ(one->covering_tombstone(family, key, up_to), expected) << up_to;
    covered += expected > 0 ? 1 : 0;
  }
  EXPECT_GT(covered, 100);
}

TEST(Generation, NewestRangesAreAtMostTwoForEachDeletion) {
  RandomWrites random(8);
  NewestRanges newest(rocksdb::BytewiseComparator());
  for (Sequence sequence = 1; sequence <= 300; ++sequence) {
    newest.add(random.key(), random.key(), sequence);
    ASSERT_LE(newest.ranges(), 2 * sequence);
  }
  newest.add("", std::string(20, '\xff'), 301);
  EXPECT_EQ(newest.ranges(), 1U);
  EXPECT_EQ(newest.newest("any"), 301U);
}

// For the thread sanitizer, and for the promise that every reader finds what was published.
TEST(Generation, IsReadWhileItIsWritten) {
  const auto one = generation(1);
  constexpr std::uint64_t kWrites = 20000;
  std::atomic<Sequence> visible{0};
  const auto key_of = [](Sequence sequence) { return std::to_string(sequence % 500); };
  const auto read = [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    while (visible.load() < kWrites) {
      const Sequence up_to = visible.load();
      if (up_to < 500) continue;
      const Sequence of = up_to - random() % 500;  // the newest of its key that this reader may see
      const Entry* found = one->find(0, key_of(of), up_to);
      ASSERT_NE(found, nullptr);
      ASSERT_EQ(found->sequence, of);
      std::uint64_t held = 0;
      for (const auto& run : one->sorted_runs(up_to)) held += run->size();
      ASSERT_GE(held, up_to);
      const bool tombstones = one->has_range_tombstones();
      ASSERT_TRUE(!tombstones || one->covering_tombstone(0, "5", ~Sequence{0}) > 0);
    }
  };
  std::vector<std::thread> readers;
  for (std::uint64_t seed = 1; seed <= 2; ++seed) readers.emplace_back(read, seed);
  for (Sequence sequence = 1; sequence <= kWrites; ++sequence) {
    one->add(0, key_of(sequence), sequence, Kind::put, {});
    if (sequence % 4000 == 0)
      one->add(RangeTombstone{.column_family = 0, .begin = "4", .end = "6", .sequence = sequence});
    visible.store(sequence);
  }
  for (std::thread& reader : readers) reader.join();
}

}  // namespace
}  // namespace spillway::spill
