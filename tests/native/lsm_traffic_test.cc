// How a tree's traffic moves with its parameters: M13, M28, M29. Laws where there are some, else directions.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "lsm_simulations.h"

namespace spillway::lsm {
namespace {

Spec unique_spec() {
  Spec spec = small_spec();
  spec.load.order = KeyOrder::unique_random;
  return spec;
}

double in_all_s(const Figures& figures) { return figures.load_seconds + figures.settle_seconds; }

double rewritten(const Figures& figures) { return figures.compaction_bytes_written / figures.flush_bytes; }

std::size_t deepest(const Figures& figures) {
  std::size_t level = 0;
  for (std::size_t l = 0; l < figures.levels.size(); ++l) level = figures.levels[l].files > 0 ? l : level;
  return level;
}

// M29: files of 64 MB, blocks of 4 KB, F = 10, one compaction thread; M28's L1 is about as large as L0.
TEST(LsmTraffic, DefaultsAreThoseOfTheLedger) {
  const TreeOptions options;
  EXPECT_EQ(options.fanout, 10);
  EXPECT_EQ(options.target_file_size_base, 64 << 20);
  EXPECT_EQ(options.block_size, 4096);
  EXPECT_EQ(options.compaction_threads, 1U);
  EXPECT_EQ(options.shape, Shape::leveled);
  EXPECT_EQ(options.compaction_pri, CompactionPri::min_overlapping_ratio);
  EXPECT_EQ(options.max_bytes_for_level_base, options.level0_file_num_compaction_trigger * options.write_buffer_size);
}

// M28: a level's size is the trigger. M13: it holds C T F^(i-1), and there is no deeper one before it was full.
TEST(LsmTraffic, LevelsAreAsLargeAndAsManyAsTheFanoutSays) {
  for (const double fanout : {3.0, 4.0, 8.0, 16.0}) {
    SCOPED_TRACE(fanout);
    Spec spec = unique_spec();
    spec.tree.fanout = fanout;
    const Figures figures = run(spec);
    EXPECT_LT(figures.levels[0].files, spec.tree.level0_file_num_compaction_trigger);
    const std::size_t last = deepest(figures);
    const auto target = [&](std::size_t level) {
      return spec.tree.max_bytes_for_level_base * std::pow(fanout, static_cast<double>(level) - 1);
    };
    for (std::size_t l = 1; l <= last; ++l) EXPECT_LT(figures.levels[l].bytes, target(l)) << l;
    EXPECT_GT(last, 1U);
    EXPECT_GT(bytes_in_levels(figures), target(last - 1));
  }
}

// M28: the more files L0 gathers, the fewer times L1 is rewritten for them. L1's own size stays.
TEST(LsmTraffic, ALargerL0RewritesL1Less) {
  double before = 1e300;
  for (const std::uint32_t trigger : {2U, 4U, 8U, 16U}) {
    Spec spec = unique_spec();
    spec.tree.level0_file_num_compaction_trigger = trigger;
    spec.tree.max_bytes_for_level_base = 16 << 20;  // L0 is compacted by its bytes, too
    const Figures figures = run(spec);
    const double into_l1 = figures.levels[1].bytes_written / figures.flush_bytes;
    EXPECT_GT(into_l1, 1) << trigger;
    EXPECT_LT(into_l1, before) << trigger;
    before = into_l1;
  }
}

// M28 picks the file with the least overlap: less is rewritten for it than for the largest one.
TEST(LsmTraffic, TheLeastOverlapRewritesTheLeast) {
  for (const double fanout : {4.0, 10.0}) {
    Spec spec = unique_spec();
    spec.tree.fanout = fanout;
    const double least = rewritten(run(spec));
    spec.tree.compaction_pri = CompactionPri::by_compensated_size;
    EXPECT_LT(least, rewritten(run(spec))) << fanout;
  }
}

// M28: disjoint compactions run at once. They are sooner done, and rewrite what one after another would.
TEST(LsmTraffic, CompactionsAtOnceTakeLessTime) {
  Spec spec = unique_spec();
  spec.host.merge_entry_ns = 20'000;
  spec.host.cores = 64;
  const Figures one = run(spec);
  spec.tree.compaction_threads = 4;
  const Figures four = run(spec);
  EXPECT_LT(in_all_s(four), 0.8 * in_all_s(one));
  EXPECT_NEAR(rewritten(four) / rewritten(one), 1, 0.25);
}

// M28: a compaction into L1 is divided by files. More subcompactions than there are files' worth of input are none.
TEST(LsmTraffic, SubcompactionsAreNoMoreThanFiles) {
  Spec spec = unique_spec();
  spec.load.operations = 4.02 * memtable_puts(spec);
  spec.host.merge_entry_ns = 200'000;
  spec.host.cores = 64;
  std::vector<double> seconds;
  for (const std::uint32_t most : {1U, 2U, 8U, 64U}) {
    spec.tree.max_subcompactions = most;
    seconds.push_back(in_all_s(run(spec)));
  }
  EXPECT_LT(seconds[1], seconds[0]);
  EXPECT_LT(seconds[2], seconds[1]);
  EXPECT_EQ(seconds[3], seconds[2]);
}

// M28: the newest version of a key wins. What is left is at most each key once in the last level, and what the levels
// above may hold; and less is rewritten than of keys that differ.
TEST(LsmTraffic, OldVersionsAreDropped) {
  Spec spec = small_spec();
  spec.load.keys = 20'000;
  const Figures figures = run(spec);
  double above = spec.tree.level0_file_num_compaction_trigger * spec.tree.write_buffer_size;
  double target = spec.tree.max_bytes_for_level_base;
  for (std::size_t l = 1; l < deepest(figures); ++l) {
    above += target;
    target *= spec.tree.fanout;
  }
  const double once = spec.load.keys * entry_bytes(spec).file;
  EXPECT_LE(bytes_in_levels(figures), once + above);
  EXPECT_GE(bytes_in_levels(figures), 0.99 * once);
  EXPECT_LT(rewritten(figures), rewritten(run(unique_spec())));
}

// Eight runs in L0, the newest of which has half as many pairs as each other one.
Spec eight_runs(KeyOrder order) {
  Spec spec = small_spec();
  spec.load.order = order;
  spec.load.keys = spec.load.operations = 7.5 * memtable_puts(spec);
  spec.load.rate_ops_s = 10'000;  // each memtable is flushed before the next one is full
  spec.tree.level0_file_num_compaction_trigger = 100;
  spec.tree.max_bytes_for_level_base = 1e12;  // nor by its bytes
  spec.tree.level0_slowdown_writes_trigger = spec.tree.level0_stop_writes_trigger = 200;
  return spec;
}

// Reads of a query whose key lies in each run with the probability of its share: runs are read from the newest on.
constexpr double kRunsBefore = (0.5 * 0 + 1 + 2 + 3 + 4 + 5 + 6 + 7) / 7.5;

// M29: of a run that covers the key one block is read, whatever the block's size; a filter spares those without it.
TEST(LsmTraffic, APointQueryReadsABlockOfEachRunThatCoversItsKey) {
  constexpr std::uint64_t kQueries = 20'000;
  for (const double block : {4096.0, 16384.0}) {
    for (const double bits : {0.0, 5.0, 10.0}) {
      SCOPED_TRACE(testing::Message() << block << ' ' << bits);
      Spec spec = eight_runs(KeyOrder::unique_random);
      spec.tree.block_size = block;
      spec.tree.bits_per_key = bits;
      spec.queries = {{QuerySpec::Kind::point, 1, kQueries, 0}};
      const Figures figures = run(spec);
      ASSERT_EQ(figures.levels[0].files, 8U);
      const double false_positive = bits > 0 ? std::pow(0.6185, bits) : 1;
      const double expected = 1 + false_positive * kRunsBefore;
      EXPECT_NEAR(figures.queries[0].block_reads / kQueries, expected, 0.02 * expected);
    }
  }
}

// M29's fence pointers: a run without the key's range costs nothing, however many there are.
TEST(LsmTraffic, ARunThatDoesNotCoverTheKeyIsNotRead) {
  Spec spec = eight_runs(KeyOrder::sequential);
  spec.queries = {{QuerySpec::Kind::point, 1, 5000, 0}};
  const Figures figures = run(spec);
  EXPECT_EQ(figures.levels[0].files, 8U);
  EXPECT_EQ(figures.queries[0].block_reads, 5000);
}

// M29: a scan reads the blocks of its pairs, so it reads fewer of larger ones. M13: at least one of each run.
TEST(LsmTraffic, AScanReadsFewerBlocksTheLargerTheyAre) {
  double before = 1e300;
  for (const double block : {1024.0, 4096.0, 16384.0, 65536.0}) {
    Spec spec = eight_runs(KeyOrder::unique_random);
    spec.tree.block_size = block;
    spec.queries = {{QuerySpec::Kind::scan, 1, 2000, 32}};
    const double reads = run(spec).queries[0].block_reads / 2000;
    EXPECT_GE(reads, 8 - 1e-9) << block;
    EXPECT_LT(reads, before) << block;
    before = reads;
  }
}

}  // namespace
}  // namespace spillway::lsm
