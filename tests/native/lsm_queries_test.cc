// Queries of a tree at rest.
#include <gtest/gtest.h>

#include "lsm_simulations.h"

namespace spillway::lsm {
namespace {

TEST(LsmQueries, OneRunTakesOneRead) {
  Spec spec = small_spec();
  spec.tree.shape = Shape::single_level;
  spec.tree.level0_file_num_compaction_trigger = 1;
  spec.tree.levels = 2;
  spec.load.order = KeyOrder::unique_random;
  spec.load.operations = spec.load.keys = 30'000;
  spec.queries = {
      {QuerySpec::Kind::point, 1, 2000, 0}, {QuerySpec::Kind::point, 8, 2000, 0}, {QuerySpec::Kind::scan, 1, 200, 128}};
  const Figures figures = run(spec);
  ASSERT_EQ(figures.queries.size(), 3U);
  EXPECT_NEAR(figures.queries[0].block_reads / 2000, 1, 1e-9);
  EXPECT_LT(figures.queries[1].seconds, figures.queries[0].seconds);
  EXPECT_GT(figures.queries[2].block_reads / 200, 4);
}

TEST(LsmQueries, AFilterSavesReads) {
  Spec spec = small_spec();
  spec.queries = {{QuerySpec::Kind::point, 1, 3000, 0}};
  const double without = run(spec).queries[0].block_reads;
  spec.tree.bits_per_key = 10;
  const double with = run(spec).queries[0].block_reads;
  EXPECT_LT(with, without);
  EXPECT_GE(with, 3000);
}

// A scan of any length takes a few bytes of a thread, and reads the same blocks as before one after another.
TEST(LsmQueries, ALongScanReadsItsRunsToTheEnd) {
  Spec spec = small_spec();
  spec.load.operations = spec.load.keys = 30'000;
  spec.queries = {{QuerySpec::Kind::scan, 1, 1, 1e6}};
  const Figures figures = run(spec);
  // The first three blocks of a run apart, a read is of 256 KiB as soon as it has been doubled five times.
  const double reads = 1e6 * entry_bytes(spec).file / (256 * 1024);
  EXPECT_NEAR(figures.queries[0].block_reads, reads, 0.1 * reads);
}

// A user who ends the program while queries run gets the load's figures, and those of the queries that were done.
TEST(LsmQueries, EndEarlyWhenAsked) {
  Spec spec = small_spec();
  spec.load.operations = spec.load.keys = 30'000;
  for (const QuerySpec::Kind kind : {QuerySpec::Kind::point, QuerySpec::Kind::scan}) {
    spec.queries = {{kind, 2, 100, 10}, {kind, 2, std::uint64_t{1} << 40, 1000}, {kind, 2, 100, 10}};
    device::DriveModel model(small_drive(), 1);
    Watch watch;
    int asked_after_load = 0;
    watch.progress = [&](double operations) { return operations < 30'000 || ++asked_after_load < 20; };
    auto figures = simulate(spec, model, nullptr, watch);
    ASSERT_TRUE(figures);
    EXPECT_FALSE(figures->complete);
    EXPECT_NEAR(figures->operations, 30'000, 1);
    EXPECT_GT(figures->load_seconds, 0);
    EXPECT_GT(figures->levels[0].bytes_written, 0);
    ASSERT_LE(figures->queries.size(), 1U);
  }
}

}  // namespace
}  // namespace spillway::lsm
