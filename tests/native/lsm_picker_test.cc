// Which compaction comes next, held against RocksDB's rules.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "lsm/picker.h"
#include "lsm_trees.h"
#include "ssd/structures/random.h"

namespace spillway::lsm {
namespace {

TEST(LsmPicker, TakesAllOfL0ThatOverlaps) {
  Tree tree(small_options());
  for (int i = 0; i < 4; ++i) tree.add_newest(file(0, 1, 100));
  put_in_level(tree, 1, {file(0, 0.5, 100), file(0.5, 1, 100)});
  const auto compaction = pick_compaction(tree);
  ASSERT_TRUE(compaction);
  EXPECT_EQ(compaction->inputs.size(), 4U);
  EXPECT_EQ(compaction->lower.size(), 2U);
  EXPECT_EQ(compaction->output_level, 1U);
}

TEST(LsmPicker, ChoosesTheFileWithTheLeastOverlap) {
  Tree tree(small_options());
  put_in_level(tree, 1, {file(0, 0.3, 500), file(0.3, 0.6, 500), file(0.6, 1, 500)});
  put_in_level(tree, 2, {file(0, 0.2, 900), file(0.2, 0.35, 900), file(0.35, 0.5, 100), file(0.65, 1, 900)});
  const auto compaction = pick_compaction(tree);
  ASSERT_TRUE(compaction);
  EXPECT_EQ(compaction->inputs.front()->low, 0.6);
  TreeOptions by_size = small_options();
  by_size.compaction_pri = CompactionPri::by_compensated_size;
  Tree other(by_size);
  put_in_level(other, 1, {file(0, 0.3, 500), file(0.3, 0.6, 900), file(0.6, 1, 500)});
  put_in_level(other, 2, {file(0, 0.3, 900), file(0.3, 0.6, 900), file(0.6, 1, 900)});
  EXPECT_EQ(pick_compaction(other)->inputs.front()->low, 0.3);
}

TEST(LsmPicker, MovesWhatOverlapsNothing) {
  Tree tree(small_options());
  for (int i = 0; i < 4; ++i) tree.add_newest(file(0.1 * i, 0.1 * (i + 1), 100));
  const auto compaction = pick_compaction(tree);
  ASSERT_TRUE(compaction);
  EXPECT_TRUE(compaction->trivial_move);
  EXPECT_EQ(compaction->inputs.front()->low, 0);  // the oldest
}

// As RocksDB's TryPickL0TrivialMove: from the oldest file on, as long as each lies beside those before it and nothing
// of the base level is among them.
TEST(LsmPicker, MovesFilesOfL0TogetherIntoALevelThatHasSome) {
  struct Case {
    const char* name;
    Files base;
    Files l0;                   // oldest first
    std::vector<double> moved;  // their first keys, in order; none: no trivial move
  };
  const Files rising = {file(0.4, 0.5, 100), file(0.5, 0.6, 100), file(0.6, 0.7, 100), file(0.7, 0.8, 100)};
  const Files falling(rising.rbegin(), rising.rend());
  const Files outwards = {file(0.5, 0.6, 100), file(0.6, 0.7, 100), file(0.4, 0.5, 100), file(0.8, 0.9, 100)};
  const Files inwards = {file(0.4, 0.5, 100), file(0.6, 0.7, 100), file(0.5, 0.6, 100), file(0.7, 0.8, 100)};
  for (const Case& one : {Case{"an empty level takes one", {}, rising, {0.4}},
                          Case{"beside what is there", {file(0, 0.4, 10)}, rising, {0.4, 0.5, 0.6, 0.7}},
                          Case{"in falling order", {file(0, 0.4, 10)}, falling, {0.4, 0.5, 0.6, 0.7}},
                          Case{"on both sides", {file(0, 0.4, 10)}, outwards, {0.4, 0.5, 0.6, 0.8}},
                          Case{"not between those before", {file(0, 0.4, 10)}, inwards, {0.4, 0.6}},
                          Case{"up to what overlaps", {file(0.65, 0.66, 10)}, rising, {0.4, 0.5}},
                          Case{"not around what is there", {file(0.75, 0.76, 10)}, outwards, {0.4, 0.5, 0.6}},
                          Case{"the oldest overlaps", {file(0.3, 0.45, 10)}, rising, {}}}) {
    SCOPED_TRACE(one.name);
    Tree tree(small_options());
    put_in_level(tree, 1, one.base);
    for (const File& each : one.l0) tree.add_newest(std::make_shared<SortedFile>(*each));
    const auto compaction = pick_compaction(tree);
    ASSERT_TRUE(compaction);
    EXPECT_EQ(compaction->trivial_move, !one.moved.empty());
    if (one.moved.empty()) continue;
    std::vector<double> lows;
    for (const File& each : compaction->inputs) lows.push_back(each->low);
    EXPECT_EQ(lows, one.moved);
    tree.replace(compaction->inputs, compaction->inputs, 1);
    EXPECT_TRUE(std::is_sorted(tree.level(1).begin(), tree.level(1).end(),
                               [](const File& a, const File& b) { return a->high < b->low; }));
    EXPECT_EQ(tree.level(0).size() + tree.level(1).size(), one.l0.size() + one.base.size());
  }
}

// A file that overlaps nothing is rewritten where others of L0 overlap: RocksDB asks that of all of L0.
TEST(LsmPicker, MovesNothingOutOfAnL0ThatOverlapsItself) {
  for (const double high : {0.3, 0.35}) {
    Tree tree(small_options());
    tree.add_newest(file(0, 0.1, 100));
    for (const double low : {0.2, 0.3, 0.5}) tree.add_newest(file(low, low == 0.2 ? high : low + 0.1, 100));
    const auto compaction = pick_compaction(tree);
    ASSERT_TRUE(compaction);
    EXPECT_EQ(compaction->inputs.size(), 1U);
    EXPECT_EQ(compaction->trivial_move, high == 0.3);
  }
}

// As RocksDB's kMaxMultiTrivialMove.
TEST(LsmPicker, MovesAtMostFourNeighboursTogether) {
  const auto moved = [](const Files& below) {
    Tree tree(small_options());
    Files level;
    for (int i = 0; i < 8; ++i) level.push_back(file(i / 8.0, (i + 1) / 8.0, 150));
    put_in_level(tree, 1, level);
    put_in_level(tree, 2, below);
    const auto compaction = pick_compaction(tree);
    return compaction && compaction->trivial_move ? compaction->inputs.size() : 0;
  };
  EXPECT_EQ(moved({}), 4U);
  EXPECT_EQ(moved({file(0.3, 1, 100)}), 2U);  // those that overlap nothing
}

// RocksDB ignores max_compaction_bytes for inputs that add nothing of the output level.
TEST(LsmPicker, TakesMoreInputsWhereTheyAddNone) {
  Tree tree(small_options());
  put_in_level(tree, 1, {file(0, 0.3, 500), file(0.3, 0.6, 900), file(0.6, 1, 500)});
  put_in_level(tree, 2, {file(0, 1, 9000)});
  const auto compaction = pick_compaction(tree);
  ASSERT_TRUE(compaction);
  EXPECT_EQ(compaction->inputs.size(), 3U);
  EXPECT_EQ(compaction->lower.size(), 1U);
}

// Where no file of the output level lies, two compactions could write into the same range.
TEST(LsmPicker, WritesNothingIntoARangeThatIsBeingWritten) {
  Tree tree(small_options());
  put_in_level(tree, 1, {file(0.2, 0.8, 2000)});
  EXPECT_TRUE(pick_compaction(tree));
  tree.begin_writing(2, {0.7, 0.9});
  EXPECT_FALSE(pick_compaction(tree));
  tree.begin_writing(3, {0, 1});  // of another level
  tree.end_writing(2, {0.7, 0.9});
  EXPECT_TRUE(pick_compaction(tree));
  tree.begin_writing(2, {0.8, 0.9});  // it begins where the file ends
  EXPECT_TRUE(pick_compaction(tree));
}

// Nothing is in two compactions at once, and no range of a level is written by two, whatever runs.
TEST(LsmPicker, NeverTakesAFileTwice) {
  ssd::Random random(3);
  for (int round = 0; round < 200; ++round) {
    Tree tree(small_options());
    for (std::uint64_t i = random.below(30); i > 0; --i) tree.add_newest(file(0, 1, 100));
    for (std::size_t l = 1; l < 4; ++l) {
      Files files;
      const std::uint64_t count = random.below(12) + 1;
      const auto bound = [&](std::uint64_t i) { return static_cast<double>(i) / static_cast<double>(count); };
      for (std::uint64_t i = 0; i < count; ++i) {
        files.push_back(file(bound(i), bound(i + 1), 100 + static_cast<double>(random.below(20'000))));
      }
      put_in_level(tree, l, files);
    }
    for (int running = 0; running < 20; ++running) {
      const auto compaction = pick_compaction(tree);
      if (!compaction) break;
      for (const File& one : compaction->all()) ASSERT_FALSE(one->in_compaction);
      tree.begin_compaction(compaction->all());
      if (compaction->output_level == 0) continue;
      const KeyRange range = range_of(compaction->all());
      ASSERT_FALSE(tree.is_being_written(compaction->output_level, range));
      tree.begin_writing(compaction->output_level, range);
    }
  }
}

TEST(LsmPicker, GrandparentsAreOfTheFirstDeeperLevelThatHasSome) {
  Tree tree(small_options());
  Compaction compaction;
  compaction.inputs = {file(0.4, 0.6, 10)};
  compaction.output_level = 1;
  EXPECT_TRUE(grandparents_of(tree, compaction).empty());
  put_in_level(tree, 3, {file(0, 0.3, 10), file(0.3, 0.45, 10), file(0.45, 1, 10)});
  EXPECT_EQ(grandparents_of(tree, compaction).size(), 2U);
  put_in_level(tree, 2, {file(0, 0.3, 10), file(0.8, 0.9, 10)});  // beside it
  EXPECT_EQ(grandparents_of(tree, compaction).size(), 2U);
  compaction.lower = {file(0.2, 0.5, 10)};  // it counts, too
  EXPECT_EQ(grandparents_of(tree, compaction), Files({tree.level(2).front()}));
}

TEST(LsmPicker, MergesNewL0FilesWhileTheBaseLevelIsBusy) {
  Tree tree(small_options());
  put_in_level(tree, 1, {file(0, 1, 2000)});
  tree.begin_compaction(tree.level(1));
  for (int i = 0; i < 8; ++i) tree.add_newest(file(0, 1, 100));
  const auto compaction = pick_compaction(tree);
  ASSERT_TRUE(compaction);
  EXPECT_EQ(compaction->output_level, 0U);
  EXPECT_GE(compaction->inputs.size(), 4U);
}

TEST(LsmPicker, UniversalMergesWholeRunsInTheOrderOfTheirAge) {
  TreeOptions options = small_options();
  options.shape = Shape::universal;
  Tree tree(options);
  put_in_level(tree, 3, {file(0, 0.5, 5000), file(0.5, 1, 5000)});
  for (int i = 0; i < 4; ++i) tree.add_newest(file(0, 1, 100));
  const auto compaction = pick_compaction(tree);
  ASSERT_TRUE(compaction);
  EXPECT_EQ(compaction->inputs.size(), 4U);  // the large run stays
  EXPECT_EQ(compaction->output_level, 2U);
}

// RocksDB's score of a universal tree counts its idle runs: what running compactions take is no reason for another one.
TEST(LsmPicker, UniversalWaitsForEnoughIdleRuns) {
  TreeOptions options = small_options();
  options.shape = Shape::universal;
  for (std::size_t idle = 0; idle < 8; ++idle) {
    Tree tree(options);
    for (int i = 0; i < 4; ++i) {
      tree.add_newest(file(0, 1, 100));
      tree.begin_compaction({tree.level(0).front()});
    }
    for (std::size_t i = 0; i < idle; ++i) tree.add_newest(file(0, 1, 100));
    EXPECT_EQ(pick_compaction(tree).has_value(), idle >= options.level0_file_num_compaction_trigger) << idle;
  }
}

}  // namespace
}  // namespace spillway::lsm
