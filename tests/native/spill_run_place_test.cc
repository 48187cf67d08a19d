// Into which level a run goes, by what RocksDB rewrites for it.
#include <gtest/gtest.h>
#include <rocksdb/comparator.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "spill/rollback/run_place.h"

namespace spillway::spill {
namespace {

constexpr double kMiB = 1 << 20;
constexpr double kNoEnd = std::numeric_limits<double>::infinity();

// Of so many MiB each; targets are 16, 160, 1600, 16000 MiB and none.
std::vector<LevelBytes> levels_of(const std::vector<double>& there) {
  std::vector<LevelBytes> levels;
  double target = 16 * kMiB;
  for (std::size_t level = 0; level < there.size(); ++level) {
    levels.push_back({there[level] * kMiB, level == 0 ? 0 : target});
    if (level > 0) target *= 10;
  }
  levels.back().target = kNoEnd;
  return levels;
}

int level_of(const std::vector<double>& there, double run, int base = 1) {
  return cheapest_level(levels_of(there), base, run * kMiB);
}
double rewritten(const std::vector<double>& there, int level, double run, int base = 1) {
  return bytes_rewritten(levels_of(there), base, level, run * kMiB) / kMiB;
}

TEST(RunPlace, WhatIsRewrittenIsWhatMovesDownWithWhatItOverlaps) {
  EXPECT_DOUBLE_EQ(rewritten({0, 0, 0, 0, 0}, 3, 1000), 0) << "nothing lies in its way, and the level has room";
  EXPECT_DOUBLE_EQ(rewritten({40, 10, 100, 0, 0}, 3, 1000), 150) << "L0 to L2 are compacted into L4";
  EXPECT_DOUBLE_EQ(rewritten({40, 10, 100, 0, 0}, 2, 320), 150 + 160 + 75) << "half of L2 and half of L3 below it";
  EXPECT_DOUBLE_EQ(rewritten({0, 0, 0, 0, 0}, 1, 160), 0) << "RocksDB moves what overlaps nothing";
  EXPECT_DOUBLE_EQ(rewritten({20, 12, 0, 0, 0}, 0, 100), 132) << "L0 with L1; then nothing below overlaps";
  EXPECT_DOUBLE_EQ(rewritten({20, 12, 66, 0, 0}, 0, 128), 160 + 144 + 66 * 0.9) << "all but 16 of 160 in L1";
}

TEST(RunPlace, ALargeRunOnASmallTreeGoesWhereItHasRoom) {
  EXPECT_EQ(level_of({160, 16, 150, 0, 0, 0, 0}, 1350), 3);
  EXPECT_EQ(level_of({0, 0, 0, 0, 0, 0, 0}, 1350), 0) << "RocksDB finds the deepest level by itself";
  EXPECT_EQ(level_of({30, 0, 0, 0, 0, 0, 0}, 100), 2);
  EXPECT_EQ(level_of({4, 0, 0, 0, 0, 0, 0}, 12), 1);
  EXPECT_EQ(level_of({4, 0, 0, 0, 0, 0, 0}, 7), 0) << "L0 is made for small runs";
}

TEST(RunPlace, ASmallRunOnALargeTreeGoesAboveIt) {
  EXPECT_EQ(level_of({30, 16, 160, 1000, 0, 0, 0}, 60), 0) << "more lies in its way than it has";
  EXPECT_EQ(level_of({0, 0, 0, 1000, 0, 0, 0}, 100), 0) << "RocksDB moves it down by itself";
  EXPECT_EQ(level_of({30, 16, 160, 1000, 0, 0, 0}, 1000), 1) << "into L2, with 206 of 1000";
}

TEST(RunPlace, NoMoreIsCompactedBeforeItThanTwiceOfIt) {
  EXPECT_EQ(level_of({220, 0, 0, 0, 0}, 100), 0);
  EXPECT_EQ(level_of({120, 0, 0, 0, 0}, 100), 2);
  EXPECT_EQ(level_of({1100, 0, 0, 0, 0}, 10'000), 0) << "nor than a GiB";
}

// With dynamic levels RocksDB uses the last few.
TEST(RunPlace, LevelsAboveTheFirstThatIsUsedAreNoPlaces) {
  EXPECT_EQ(level_of({40, 0, 0, 0, 500}, 1000, 4), 0) << "the last level holds what it overlaps";
  EXPECT_EQ(level_of({40, 0, 0, 10, 200}, 1000, 3), 3);
  EXPECT_EQ(level_of({40, 0, 0, 0, 0}, 1000, 3), 3) << "what lay above goes into the last level";
}

TEST(RunPlace, OnlyLevelsWithoutOtherRules) {
  rocksdb::ColumnFamilyOptions plain;
  const auto with = [&](const auto& change) {
    rocksdb::ColumnFamilyOptions options = plain;
    rocksdb::DBOptions database;
    change(options, database);
    return has_plain_levels(options, database);
  };
  EXPECT_TRUE(with([](auto&, auto&) {}));
  EXPECT_FALSE(with([](auto& o, auto&) { o.compaction_style = rocksdb::kCompactionStyleUniversal; }));
  EXPECT_FALSE(with([](auto& o, auto&) { o.disable_auto_compactions = true; }));
  EXPECT_FALSE(with([](auto& o, auto&) { o.num_levels = 1; }));
  EXPECT_FALSE(with([](auto& o, auto&) { o.preclude_last_level_data_seconds = 1; }));
  EXPECT_FALSE(with([](auto& o, auto&) { o.cf_paths = {{"a", 1}, {"b", 1}}; }));
  EXPECT_FALSE(with([](auto&, auto& d) { d.db_paths = {{"a", 1}, {"b", 1}}; }));
  EXPECT_FALSE(with([](auto&, auto& d) { d.allow_ingest_behind = true; }));
}

struct File {
  std::string name;
  std::string smallest;
  std::string largest;
  bool being_compacted = false;
  std::size_t size = 1;
};

InTheWay way_of(const std::vector<std::vector<File>>& levels, const KeyRange& range, int level) {
  rocksdb::ColumnFamilyMetaData family;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    std::vector<rocksdb::SstFileMetaData> files;
    for (const File& one : levels[i]) {
      rocksdb::SstFileMetaData& file = files.emplace_back();
      file.relative_filename = one.name;
      file.smallestkey = one.smallest;
      file.largestkey = one.largest;
      file.being_compacted = one.being_compacted;
      file.size = one.size;
    }
    family.levels.emplace_back(static_cast<int>(i), 0, std::move(files));
  }
  RunPlace place;
  place.range = range;
  place.level = level;
  return in_the_way(family, *rocksdb::BytewiseComparator(), place);
}

// "1,2" or "1,2!" if one of what is compacted with them is being compacted.
std::string files_in_the_way(const std::vector<std::vector<File>>& levels, const KeyRange& range, int level) {
  InTheWay way = way_of(levels, range, level);
  std::sort(way.files.begin(), way.files.end());
  std::string text;
  for (const std::string& name : way.files) text += (text.empty() ? "" : ",") + name;
  return text + (way.is_being_compacted ? "!" : "");
}

TEST(RunPlace, InTheWayIsWhatOverlapsDownToTheLevel) {
  const std::vector<std::vector<File>> levels = {
      {{"1", "a", "z"}, {"2", "x", "z"}},
      {{"3", "a", "c"}, {"4", "d", "f", true}},
      {{"5", "b", "e"}},
  };
  EXPECT_EQ(files_in_the_way(levels, {"g", "m"}, 1), "1!") << "with which all of L1 is compacted";
  EXPECT_EQ(files_in_the_way({{}, levels[1]}, {"c", "c"}, 1), "3") << "both ends belong to a range";
  EXPECT_EQ(files_in_the_way(levels, {"c", "d"}, 1), "1,3,4!");
  EXPECT_EQ(files_in_the_way(levels, {"c", "c"}, 2), "1,3,5!");
  EXPECT_EQ(files_in_the_way({{}, {{"3", "a", "c"}}}, {"d", "e"}, 1), "");
}

// As CompactFiles widens its input.
TEST(RunPlace, WhatIsCompactedIsAllThatFilesInTheWayOverlap) {
  const std::vector<std::vector<File>> levels = {
      {{"1", "p", "q", false, 1}, {"2", "a", "k", false, 10}, {"3", "x", "z", false, 100}},
      {{"4", "a", "c", false, 1'000}, {"5", "d", "f", false, 2'000}, {"6", "s", "t", false, 4'000}},
      {{"7", "b", "e", false, 10'000}, {"8", "r", "w", false, 20'000}},
      {{"9", "a", "z", false, 1'000'000}},
  };
  const auto bytes = [&](const KeyRange& range, int level) { return way_of(levels, range, level).compacted_bytes; };
  EXPECT_EQ(bytes({"g", "h"}, 1), 10U + 100 + 7'000 + 30'000) << "2 and the older 3, from a to z";
  EXPECT_EQ(bytes({"g", "h"}, 2), 10U + 100 + 7'000 + 30'000 + 1'000'000);
  EXPECT_EQ(bytes({"y", "y"}, 1), 100U) << "which overlaps nothing below";
  EXPECT_EQ(bytes({"s", "s"}, 1), 4'000U + 20'000);
  EXPECT_EQ(bytes({"n", "o"}, 2), 0U);
  EXPECT_EQ(bytes({"d", "s"}, 1), 111U + 7'000 + 30'000);
}

}  // namespace
}  // namespace spillway::spill
