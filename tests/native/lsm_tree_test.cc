// The tree's bookkeeping, the keys of a load, and what merges hold.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "lsm/merge.h"
#include "lsm/tree.h"
#include "lsm_trees.h"

namespace spillway::lsm {
namespace {

LoadSpec load_of(KeyOrder order, double keys) {
  LoadSpec load;
  load.order = order;
  load.keys = keys;
  load.operations = keys;
  return load;
}

double entries_of(const Files& files) {
  double sum = 0;
  for (const File& one : files) sum += total(one->entries);
  return sum;
}

TEST(LsmKeySpace, CountsDistinctKeysAsExpected) {
  const KeySpace uniform(load_of(KeyOrder::uniform, 1000));
  EXPECT_NEAR(total(uniform.distinct(1000)), 1000 * (1 - std::exp(-1.0)), 1e-6);
  EXPECT_NEAR(total(uniform.distinct(1)), 1, 1e-3);
  const KeySpace once(load_of(KeyOrder::unique_random, 1000));
  EXPECT_EQ(total(once.distinct(700)), 700);
}

// Against draws of YCSB's distribution, one by one.
TEST(LsmKeySpace, ZipfianClassesHoldWhatDrawsHold) {
  const std::size_t keys = 20'000;
  LoadSpec load = load_of(KeyOrder::zipfian, static_cast<double>(keys));
  const KeySpace space(load);
  std::vector<double> until(keys);
  double sum = 0;
  for (std::size_t i = 0; i < keys; ++i) until[i] = sum += std::pow(static_cast<double>(i + 1), -load.zipfian_constant);
  ssd::Random random(7);
  for (const int puts : {100, 5'000, 100'000}) {
    std::vector<bool> seen(keys);
    for (int i = 0; i < puts; ++i) {
      const double at = random.uniform() * sum;
      seen[static_cast<std::size_t>(std::upper_bound(until.begin(), until.end(), at) - until.begin())] = true;
    }
    const auto distinct = static_cast<double>(std::count(seen.begin(), seen.end(), true));
    EXPECT_NEAR(total(space.distinct(puts)), distinct, 0.04 * distinct) << puts;
  }
}

// Draws ranks of Zipf's law one by one: exactly the first of them, the others by the law's integral.
class Ranks {
 public:
  Ranks(double ranks, double theta) : last_(std::pow(ranks + 0.5, 1 - theta)), theta_(theta) {
    for (int rank = 1; rank <= kFirst; ++rank) until_.push_back(sum_ += std::pow(rank, -theta));
    beyond_ = (last_ - first_beyond()) / (1 - theta);
  }
  std::uint64_t draw(ssd::Random& random) const {
    const double at = random.uniform() * (sum_ + beyond_);
    if (at < sum_) {
      return 1 + static_cast<std::uint64_t>(std::upper_bound(until_.begin(), until_.end(), at) - until_.begin());
    }
    const double power = first_beyond() + (at - sum_) * (1 - theta_);
    return static_cast<std::uint64_t>(std::llround(std::pow(power, 1 / (1 - theta_))));
  }

 private:
  static constexpr int kFirst = 10'000;
  double first_beyond() const { return std::pow(kFirst + 0.5, 1 - theta_); }

  double last_;
  double theta_;
  double sum_ = 0;
  double beyond_ = 0;
  std::vector<double> until_;
};

// Against draws of 10^10 ranks that a hash puts on the keys, one by one: how many keys so many puts write, and how many
// of them the popular ones are.
TEST(LsmKeySpace, RanksBeyondTheKeysFallOnAllOfThem) {
  const std::size_t keys = 20'000;
  for (const double theta : {0.6, 0.99}) {
    for (const double ranks : {20'000.0, 100'000.0, 1e10}) {
      LoadSpec load = load_of(KeyOrder::zipfian, static_cast<double>(keys));
      load.zipfian_constant = theta;
      load.zipfian_ranks = ranks;
      const KeySpace space(load);
      const Ranks drawn(ranks, theta);
      ssd::Random random(7);
      for (const int puts : {300, 5'000, 50'000, 400'000}) {
        std::vector<bool> seen(keys);
        for (int i = 0; i < puts; ++i) seen[ssd::mix(drawn.draw(random)) % keys] = true;
        const auto distinct = static_cast<double>(std::count(seen.begin(), seen.end(), true));
        EXPECT_NEAR(total(space.distinct(puts)), distinct, 0.04 * distinct) << theta << ' ' << ranks << ' ' << puts;
      }
      EXPECT_NEAR(total(space.all(1)), static_cast<double>(keys), 1e-6);
      EXPECT_NEAR(total(space.distinct(1e-6)), 1e-6, 1e-9) << "all puts are of some key";
    }
  }
}

// What docs/LSM.md says of both.
TEST(LsmKeySpace, YcsbsRanksWriteMoreKeysThanAsManyRanksAsKeys) {
  LoadSpec load = load_of(KeyOrder::zipfian, 124'000);
  const double few = total(KeySpace(load).distinct(124'000));
  load.zipfian_ranks = 1e10;
  EXPECT_NEAR(few, 31'100, 300);
  EXPECT_NEAR(total(KeySpace(load).distinct(124'000)), 60'000, 600);
}

TEST(LsmMerge, KeepsEveryEntryOfKeysThatAreWrittenOnce) {
  const KeySpace keys(load_of(KeyOrder::unique_random, 10'000));
  ssd::Random random(1);
  MergeSpec spec;
  spec.inputs = {file(0, 1, 400), file(0, 1, 300), file(0.1, 0.4, 150), file(0.4, 0.7, 50)};
  spec.target_file_bytes = 100 * kEntry;
  spec.most_overlap_bytes = 1e9;
  spec.entry_bytes = kEntry;
  const Files outputs = merge(keys, spec, random);
  EXPECT_NEAR(entries_of(outputs), 900, 1e-6);
  for (std::size_t i = 1; i < outputs.size(); ++i) EXPECT_LE(outputs[i - 1]->high, outputs[i]->low + 1e-12);
  EXPECT_NEAR(static_cast<double>(outputs.size()), 9, 2);
}

TEST(LsmMerge, DropsOverwrittenEntries) {
  const KeySpace keys(load_of(KeyOrder::uniform, 1000));
  ssd::Random random(1);
  MergeSpec spec;
  spec.inputs = {file(0, 1, 500), file(0, 1, 500)};
  spec.entry_bytes = kEntry;
  const Files outputs = merge(keys, spec, random);
  ASSERT_EQ(outputs.size(), 1U);
  EXPECT_NEAR(entries_of(outputs), 1000 * (1 - 0.25), 1e-6);
  // Never more than there are keys, however many sets are merged.
  spec.inputs.assign(50, file(0, 1, 900));
  EXPECT_LE(entries_of(merge(keys, spec, random)), 1000 + 1e-6);
}

TEST(LsmMerge, EndsFilesWhereGrandparentsEnd) {
  const KeySpace keys(load_of(KeyOrder::unique_random, 100'000));
  ssd::Random random(1);
  MergeSpec spec;
  spec.inputs = {file(0, 1, 1000)};
  for (int i = 0; i < 50; ++i) spec.grandparents.push_back(file(i / 50.0, (i + 1) / 50.0, 100));
  spec.target_file_bytes = 100 * kEntry;
  spec.most_overlap_bytes = 1e9;
  spec.entry_bytes = kEntry;
  spec.align_to_grandparents = true;
  for (const File& output : merge(keys, spec, random)) {
    const double at = output->high * 50;
    EXPECT_NEAR(at, std::round(at), 1e-6);
    EXPECT_LE(output->bytes, 2 * spec.target_file_bytes + 10 * kEntry);
  }
}

// RocksDB's threshold counts the boundaries that are passed just now: an end and a beginning make it 60 %.
TEST(LsmMerge, EndsAFileEarlyFromSixTenthsOfItsTargetOn) {
  const KeySpace keys(load_of(KeyOrder::unique_random, 100'000));
  const auto first_end = [&](double boundary) {
    ssd::Random random(1);
    MergeSpec spec;
    spec.inputs = {file(0, 1, 1000)};
    spec.grandparents = {file(0, boundary, 10), file(boundary, 1, 10)};
    spec.target_file_bytes = 1000 * kEntry;
    spec.most_overlap_bytes = 1e9;
    spec.entry_bytes = kEntry;
    spec.align_to_grandparents = true;
    return merge(keys, spec, random).front()->high;
  };
  EXPECT_NEAR(first_end(0.62), 0.62, 1e-9);
  EXPECT_GT(first_end(0.58), 0.62);
}

// A file is cut before it would overlap more of the level below than a compaction may take, that level's next file
// included.
TEST(LsmMerge, CutsBeforeAFileBelowThatWouldBeTooMuch) {
  const KeySpace keys(load_of(KeyOrder::unique_random, 100'000));
  ssd::Random random(1);
  MergeSpec spec;
  spec.inputs = {file(0, 1, 100)};
  spec.grandparents = {file(0, 0.2, 300), file(0.2, 0.4, 300), file(0.4, 1, 600)};
  spec.target_file_bytes = 1e9;
  spec.most_overlap_bytes = 700 * kEntry;
  spec.entry_bytes = kEntry;
  EXPECT_NEAR(merge(keys, spec, random).front()->high, 0.4, 1e-9);
}

// Cuts divide what the inputs hold, wherever it lies, into ranges of one size and a smaller last one; never into more
// than are allowed.
TEST(LsmMerge, CutsDivideTheInputsEvenly) {
  const Files inputs = {file(0, 1, 400), file(0, 0.1, 400), file(0.5, 0.6, 150), file(0.9, 1, 50)};
  const auto held = [&](double low, double high) {
    double sum = 0;
    for (const File& one : inputs) {
      const double overlap = std::min(high, one->high) - std::max(low, one->low);
      sum += std::max(0.0, overlap) / (one->high - one->low) * one->bytes;
    }
    return sum;
  };
  for (const double range : {1000.0, 500.0, 400.0, 250.0, 90.0}) {
    for (const std::size_t most : {1U, 2U, 3U, 8U}) {
      SCOPED_TRACE(testing::Message() << range << ' ' << most);
      std::vector<double> cuts = cuts_of(inputs, range * kEntry, most);
      EXPECT_EQ(cuts.size() + 1, std::min<std::size_t>(most, static_cast<std::size_t>(std::ceil(1000 / range))));
      double low = 0;
      for (const double cut : cuts) {
        EXPECT_NEAR(held(low, cut), range * kEntry, 1e-6 * kEntry);
        low = cut;
      }
    }
  }
}

// No file lies on both sides of a cut, and nothing is lost by it.
TEST(LsmMerge, FilesEndAtCuts) {
  const KeySpace keys(load_of(KeyOrder::unique_random, 100'000));
  ssd::Random random(1);
  MergeSpec spec;
  spec.inputs = {file(0, 1, 700), file(0, 1, 300)};
  spec.target_file_bytes = 150 * kEntry;
  spec.most_overlap_bytes = 1e9;
  spec.entry_bytes = kEntry;
  spec.cuts = {0.25, 0.6};
  const Files outputs = merge(keys, spec, random);
  EXPECT_NEAR(entries_of(outputs), 1000, 1e-6);
  for (const double cut : spec.cuts) {
    EXPECT_TRUE(std::none_of(outputs.begin(), outputs.end(),
                             [cut](const File& one) { return one->low < cut && one->high > cut; }));
  }
}

// As RocksDB's estimate: L0 counts from its number of files or its bytes on.
TEST(LsmTree, ALargeL0IsPendingWithFewFiles) {
  Tree tree(small_options());
  tree.add_newest(file(0, 1, 600));
  EXPECT_EQ(tree.pending_compaction_bytes(), 0);
  tree.add_newest(file(0, 1, 400));
  EXPECT_EQ(tree.pending_compaction_bytes(), 1000 * kEntry);
}

// With dynamic targets, a level is less urgent the more will come down to it (RocksDB 7.8).
TEST(LsmTree, WhatComesDownMakesADynamicLevelWait) {
  TreeOptions options = small_options();
  options.level_compaction_dynamic_level_bytes = true;
  options.fanout = 4;
  Tree tree(options);
  put_in_level(tree, 3, {file(0, 1, 14'000)});
  put_in_level(tree, 2, {file(0, 1, 5000)});
  const std::size_t base = tree.base_level();
  ASSERT_LE(base, 2U);
  const double alone = tree.score(2);
  EXPECT_GT(alone, 10);  // from 1 on, scores are ten times as large
  for (int i = 0; i < 4; ++i) tree.add_newest(file(0, 1, 2000));
  EXPECT_LT(tree.score(2), alone);
  EXPECT_GT(tree.score(0), 10);
}

TEST(LsmTree, FindsWhatOverlaps) {
  Tree tree(small_options());
  put_in_level(tree, 1, {file(0, 0.2, 10), file(0.2, 0.4, 10), file(0.5, 0.9, 10)});
  EXPECT_EQ(tree.overlapping(1, {0.2, 0.5}).size(), 1U);  // ends are not part of a range
  EXPECT_EQ(tree.overlapping(1, {0.1, 0.6}).size(), 3U);
  EXPECT_EQ(tree.overlapping(1, {0.4, 0.5}).size(), 0U);
  EXPECT_EQ(tree.overlapping_bytes(1, {0.1, 0.3}), 20 * kEntry);
}

TEST(LsmTree, PendingBytesAreZeroWithinTheTargets) {
  Tree tree(small_options());
  put_in_level(tree, 1, {file(0, 1, 900)});
  EXPECT_EQ(tree.pending_compaction_bytes(), 0);
  put_in_level(tree, 2, {file(0, 1, 5000)});
  tree.replace(Files(tree.level(1)), {file(0, 1, 1200)}, 1);
  EXPECT_NEAR(tree.pending_compaction_bytes(), 200 * kEntry * (5000.0 / 1200 + 1), 1);
}

TEST(LsmTree, OfAUniversalTreeEverySortedRunStalls) {
  TreeOptions options = small_options();
  for (const Shape shape : {Shape::leveled, Shape::universal}) {
    options.shape = shape;
    Tree tree(options);
    for (int i = 0; i < 3; ++i) tree.add_newest(file(0, 1, 100));
    put_in_level(tree, 2, {file(0, 0.5, 100), file(0.5, 1, 100)});
    put_in_level(tree, 3, {file(0, 1, 100)});
    EXPECT_EQ(tree.stall_runs(), shape == Shape::universal ? 5U : 3U);
  }
}

// What a level holds, and what its score counts, whatever compactions begin and end in it.
TEST(LsmTree, CountsWhatIsIdleInEachLevel) {
  ssd::Random random(5);
  Tree tree(small_options());
  put_in_level(tree, 1, {file(0, 0.25, 300), file(0.25, 0.5, 500), file(0.5, 0.75, 100), file(0.75, 1, 900)});
  put_in_level(tree, 2, {file(0, 0.5, 1000), file(0.5, 1, 3000)});
  std::vector<Files> running;
  for (int step = 0; step < 300; ++step) {
    const std::size_t level = 1 + random.below(2);
    const auto at = static_cast<std::ptrdiff_t>(random.below(tree.level(level).size()));
    const File chosen = tree.level(level)[static_cast<std::size_t>(at)];
    if (!chosen->in_compaction) {
      running.push_back({chosen});
      tree.begin_compaction(running.back());
    } else {
      const auto own = std::find_if(running.begin(), running.end(), [&](const Files& one) { return one[0] == chosen; });
      tree.end_compaction(*own);
      const double middle = (chosen->low + chosen->high) / 2;
      const auto entries = static_cast<double>(random.below(900) + 1);
      tree.replace(*own, {file(chosen->low, middle, entries), file(middle, chosen->high, 10)}, level);
      running.erase(own);
    }
    for (std::size_t l = 1; l < 3; ++l) {
      double idle = 0;
      for (const File& one : tree.level(l)) idle += one->in_compaction ? 0 : one->bytes;
      ASSERT_NEAR(tree.score(l), idle / tree.target_bytes(l), 1e-9) << step << ' ' << l;
      ASSERT_NEAR(tree.bytes(l), bytes_of(tree.level(l)), 1e-6);
    }
  }
}

TEST(LsmTree, L0OutputsTakeThePlaceOfTheirInputs) {
  Tree tree(small_options());
  const File oldest = file(0, 1, 1);
  const File middle = file(0, 1, 2);
  tree.add_newest(oldest);
  tree.add_newest(middle);
  tree.add_newest(file(0, 1, 3));
  const File merged = file(0, 1, 5);
  tree.replace({middle}, {merged}, 0);
  ASSERT_EQ(tree.level(0).size(), 3U);
  EXPECT_EQ(tree.level(0)[1], merged);
  EXPECT_EQ(tree.level(0)[2], oldest);
}

}  // namespace
}  // namespace spillway::lsm
