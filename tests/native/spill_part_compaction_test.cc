// Which files of which levels are compacted together with what was ingested into L0.
#include <gtest/gtest.h>
#include <rocksdb/comparator.h>

#include <algorithm>
#include <string>
#include <vector>

#include "spill/rollback/part_compaction.h"

namespace spillway::spill {
namespace {

struct File {
  std::string name;
  std::string smallest;
  std::string largest;
  std::uint64_t bytes;
  bool being_compacted = false;
};

rocksdb::ColumnFamilyMetaData family_of(const std::vector<std::vector<File>>& levels) {
  rocksdb::ColumnFamilyMetaData family;
  for (std::size_t level = 0; level < levels.size(); ++level) {
    std::vector<rocksdb::SstFileMetaData> files;
    std::uint64_t bytes = 0;
    for (const File& one : levels[level]) {
      rocksdb::SstFileMetaData file;
      file.relative_filename = one.name;
      file.smallestkey = one.smallest;
      file.largestkey = one.largest;
      file.size = one.bytes;
      file.being_compacted = one.being_compacted;
      files.push_back(file);
      bytes += one.bytes;
    }
    family.levels.emplace_back(static_cast<int>(level), bytes, std::move(files));
  }
  return family;
}

// "1,2>3": inputs in order, and the level; "-": none.
std::string chosen(const std::vector<std::vector<File>>& levels, const LevelLimits& limits = {}) {
  const auto compaction = compaction_of_l0(family_of(levels), *rocksdb::BytewiseComparator(), limits);
  if (!compaction) return "-";
  std::vector<std::string> names = compaction->inputs;
  std::sort(names.begin(), names.end());
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + name;
  return text + ">" + std::to_string(compaction->output_level);
}

TEST(PartCompaction, GoesDownAsFarAsTheRatioAllows) {
  const std::vector<std::vector<File>> levels = {{{"1", "d", "f", 100}},
                                                 {{"2", "a", "e", 50}},
                                                 {{"3", "a", "d", 100}, {"4", "e", "g", 150}},
                                                 {{"5", "a", "z", 900}}};
  EXPECT_EQ(chosen(levels), "1,2,3,4>2") << "50 + 250 of 100, but not 900 more";
  EXPECT_EQ(chosen(levels, {.most_ratio = 2}), "1,2>1");
  EXPECT_EQ(chosen(levels, {.most_ratio = 12}), "1,2,3,4,5>3");
  EXPECT_EQ(chosen(levels, {.most_ratio = 0.4}), "-");
  EXPECT_EQ(chosen(levels, {.deepest_level = 1}), "1,2>1");
}

// A file of a level widens the range for the levels below it.
TEST(PartCompaction, TakesWhatOverlapsAndNothingElse) {
  const std::vector<std::vector<File>> levels = {
      {{"1", "d", "f", 100}},
      {{"2", "c", "e", 10}, {"3", "g", "k", 10}},
      {{"4", "a", "c", 10}, {"5", "d", "e", 10}, {"6", "f", "f", 10}, {"7", "g", "z", 10}}};
  EXPECT_EQ(chosen(levels), "1,2,4,5,6>2");
}

TEST(PartCompaction, ALevelThatIsEmptyIsPassedBy) {
  EXPECT_EQ(chosen({{{"1", "a", "z", 100}}, {}, {{"2", "a", "z", 100}}, {}}), "1,2>2");
  EXPECT_EQ(chosen({{{"1", "a", "z", 100}, {"2", "a", "z", 100}}, {}, {}}), "1,2>1") << "two that overlap";
  EXPECT_EQ(chosen({{{"1", "a", "z", 100}}, {}, {}, {{"2", "a", "z", 100}}}, {.base_level = 3}), "1,2>3");
}

TEST(PartCompaction, WhatRocksdbMovesWithoutRewritingIsLeftToIt) {
  EXPECT_EQ(chosen({{}, {{"1", "a", "z", 1}}}), "-");
  EXPECT_EQ(chosen({{{"1", "a", "c", 100}}, {{"2", "d", "z", 1}}}), "-");
}

TEST(PartCompaction, WhatIsBeingCompactedIsLeftAlone) {
  EXPECT_EQ(chosen({{{"1", "a", "c", 100, true}}, {{"2", "a", "z", 1}}}), "-");
  EXPECT_EQ(chosen({{{"1", "a", "c", 100}, {"0", "x", "z", 1, true}}, {{"2", "a", "z", 1}}}), "-")
      << "RocksDB compacts a file of L0 with all that are older";
  EXPECT_EQ(chosen({{{"1", "a", "c", 100}}, {{"2", "a", "z", 1, true}}}), "-");
  EXPECT_EQ(chosen({{{"1", "a", "c", 100}}, {{"2", "a", "z", 1}}, {{"3", "a", "z", 1, true}}}), "1,2>1");
  EXPECT_EQ(chosen({{{"1", "a", "c", 100}}, {{"2", "a", "z", 1}, {"3", "zz", "zz", 1, true}}}), "1,2>1");
}

TEST(PartCompaction, OnlyLevelsWithoutOtherRules) {
  rocksdb::ColumnFamilyOptions plain;
  const rocksdb::DBOptions database;
  EXPECT_TRUE(has_plain_levels(plain, database));
  const auto with = [&](const auto& change) {
    rocksdb::ColumnFamilyOptions options = plain;
    change(options);
    return has_plain_levels(options, database);
  };
  EXPECT_FALSE(with([](auto& o) { o.compaction_style = rocksdb::kCompactionStyleUniversal; }));
  EXPECT_FALSE(with([](auto& o) { o.disable_auto_compactions = true; }));
  EXPECT_FALSE(with([](auto& o) { o.num_levels = 1; }));
  EXPECT_FALSE(with([](auto& o) { o.preclude_last_level_data_seconds = 1; }));
  EXPECT_FALSE(with([](auto& o) { o.cf_paths = {{"a", 1}, {"b", 1}}; }));
}

}  // namespace
}  // namespace spillway::spill
