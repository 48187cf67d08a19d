// The log and the spill store of simulations: pairs and stores of any size.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "lsm/writer.h"
#include "lsm_simulations.h"

namespace spillway::lsm {
namespace {

TEST(LsmSimulation, ASpillStoreTakesTheWritesOfStalls) {
  Spec spec = small_spec();
  device::Drive slow = small_drive();
  slow.config.timing.program_ns = {3'000'000};
  const Figures without = run(spec, slow);
  spec.spill.capacity_bytes = 64 << 20;
  const Figures with = run(spec, slow);
  EXPECT_GT(with.spilled_operations, 0);
  EXPECT_LT(with.load_seconds, without.load_seconds);
  // All of it came back.
  EXPECT_GT(with.rollback_bytes_written, 0);
  EXPECT_NEAR(with.operations, spec.load.operations, 1);
}

// What comes back is one more sorted run. A universal tree has those in every level.
TEST(LsmSpill, ComesBackWhereSortedRunsAreFew) {
  TreeOptions options;
  options.level0_file_num_compaction_trigger = 4;
  const auto made = [] { return std::make_shared<SortedFile>(); };
  for (const Shape shape : {Shape::leveled, Shape::universal}) {
    options.shape = shape;
    Tree tree(options);
    tree.replace({}, {made()}, 5);
    tree.replace({}, {made()}, 6);
    for (std::size_t l0 = 0; l0 < 8; ++l0) {
      const std::size_t runs = shape == Shape::universal ? l0 + 2 : l0;
      EXPECT_EQ(has_room_for_rollback(tree, {}), runs <= 4) << l0;
      StallState delayed;
      delayed.delayed = true;
      StallState stopped;
      stopped.stopped = true;
      EXPECT_FALSE(has_room_for_rollback(tree, delayed) || has_room_for_rollback(tree, stopped));
      tree.add_newest(made());
    }
  }
}

// However the load ends: while writes are diverted, between two generations, with a log write in flight.
TEST(LsmSimulation, WhatWasSpilledComesBackWhereverTheLoadEnds) {
  device::Drive slow = small_drive();
  slow.config.timing.program_ns = {3'000'000};
  Spec spec = small_spec();
  spec.tree.level0_slowdown_writes_trigger = spec.tree.level0_file_num_compaction_trigger;
  spec.load.order = KeyOrder::unique_random;
  bool ended_diverting = false;
  for (int part = 1; part <= 40; ++part) {
    spec.load.operations = 2'500.0 * part + 137;
    spec.spill.capacity_bytes = part % 2 == 0 ? 16 << 20 : 256 << 20;
    const Figures figures = run(spec, slow);
    SCOPED_TRACE(part);
    double in_levels = 0;
    for (const LevelFigures& level : figures.levels) in_levels += level.bytes;
    EXPECT_NEAR(in_levels, spec.load.operations * entry_bytes(spec).file, 0.001 * in_levels + 2000);
    ended_diverting = ended_diverting || figures.spilled_operations > 0;
  }
  EXPECT_TRUE(ended_diverting);
}

// Pairs that are larger than a request of a log, or than a memtable: all are put, logged and found in the levels.
TEST(LsmSimulation, LargePairsAreLoggedAsSmallOnesAre) {
  device::Drive slow = small_drive();
  slow.config.timing.program_ns = {3'000'000};
  for (const double mib : {0.9, 1.0, 4.0, 64.0}) {
    for (const double spill_mib : {0.0, 2.0, 8.0}) {
      SCOPED_TRACE(testing::Message() << mib << " MiB, a spill store of " << spill_mib << " pairs");
      Spec spec = small_spec();
      spec.load.order = KeyOrder::unique_random;
      spec.load.value_bytes = mib * 1048576;
      spec.load.keys = spec.load.operations = std::ceil(1024 / std::max(mib, 1.0));
      spec.tree.level0_slowdown_writes_trigger = spec.tree.level0_file_num_compaction_trigger;
      spec.spill.capacity_bytes = spill_mib * std::max(2.0, 2 * mib) * 1048576;
      const Figures figures = run(spec, slow);
      EXPECT_NEAR(figures.operations, spec.load.operations, 1e-3);
      const double all = spec.load.operations * entry_bytes(spec).file;
      EXPECT_NEAR(bytes_in_levels(figures), all, 0.01 * all);
      const double logged = (spec.load.operations - figures.spilled_operations) * entry_bytes(spec).log;
      EXPECT_NEAR(figures.wal_bytes, logged, 0.01 * all + 2 * 1048576);
      EXPECT_EQ(figures.spilled_operations > 0, spill_mib > 0);
      EXPECT_NEAR(figures.spilled_bytes, figures.spilled_operations * entry_bytes(spec).log, 0.01 * all);
    }
  }
}

// However small the spill store and its generations are, and however coarse the grain: it takes writes, and all of them
// come back.
TEST(LsmSimulation, ASmallSpillStoreTakesWritesAndGivesThemBack) {
  device::Drive slow = small_drive();
  slow.config.timing.program_ns = {3'000'000};
  for (const std::uint32_t grain : {1U, 8U, 64U}) {
    for (const double capacity_mib : {2.0, 3.0, 8.0, 64.0}) {
      for (const double generation_mib : {0.0, 0.0625, 0.9, 1.5}) {
        SCOPED_TRACE(testing::Message() << grain << ' ' << capacity_mib << ' ' << generation_mib);
        Spec spec = small_spec();
        spec.grain = grain;
        spec.tree.level0_slowdown_writes_trigger = spec.tree.level0_file_num_compaction_trigger;
        spec.load.order = KeyOrder::unique_random;
        spec.load.operations = 40'000;
        spec.spill.capacity_bytes = capacity_mib * 1048576 / grain;
        spec.spill.generation_bytes = generation_mib * 1048576 / grain;
        const Figures figures = run(spec, slow);
        EXPECT_GT(figures.spilled_operations, 0);
        EXPECT_GT(figures.rollbacks, 0U);
        const double all = spec.load.operations * entry_bytes(spec).file;
        EXPECT_NEAR(bytes_in_levels(figures), all, 0.001 * all);
        EXPECT_NEAR(figures.rollback_bytes_written, figures.spilled_operations * entry_bytes(spec).file, 0.01 * all);
        const double logged = figures.spilled_operations * entry_bytes(spec).log;
        EXPECT_GE(figures.spilled_bytes, 0.999 * logged - 4096);
      }
    }
  }
}

}  // namespace
}  // namespace spillway::lsm
