// A coarse grain is the same experiment.
#include <gtest/gtest.h>

#include "lsm/grain.h"
#include "lsm/key_space.h"
#include "lsm_simulations.h"

namespace spillway::lsm {
namespace {

// A coarse grain is the same experiment: ratios and rates stay.
TEST(LsmGrain, KeepsRatiosAndRates) {
  Spec spec = small_spec();
  spec.tree.write_buffer_size = spec.tree.target_file_size_base = 8 << 20;
  spec.tree.max_bytes_for_level_base = 32 << 20;
  spec.load.keys = spec.load.operations = 800'000;
  device::Drive drive = small_drive(8);
  drive.config.geometry.page_bytes = 16384;
  drive.config.geometry.pages_per_block = 256;
  const Figures fine = run(spec, drive);
  const Figures coarse = finer(run(coarser(spec, 8), coarser(drive, 8)), 8);
  const auto ratio = [](double a, double b) { return a / b; };
  EXPECT_NEAR(ratio(coarse.operations, fine.operations), 1, 1e-6);
  EXPECT_NEAR(ratio(coarse.compaction_bytes_written, fine.compaction_bytes_written), 1, 0.1);
  EXPECT_NEAR(ratio(coarse.load_seconds, fine.load_seconds), 1, 0.15);
}

// The coarsest grain that is chosen leaves the spill store its requests, and a memtable a whole pair.
TEST(LsmGrain, IsChosenForTheSpillStoreAndForLargePairs) {
  Spec spec = small_spec();
  spec.tree.write_buffer_size = spec.tree.target_file_size_base = 1024.0 * 1048576;
  spec.load.keys = spec.load.operations = 1e9;
  device::Drive drive = small_drive(4096);
  drive.config.geometry.pages_per_block = 4096;
  const std::uint32_t free = choose_grain(spec, drive);
  EXPECT_GT(free, 64U);
  spec.spill.capacity_bytes = 64 << 20;
  EXPECT_EQ(choose_grain(spec, drive), 32U);
  spec.spill.capacity_bytes = 0;
  spec.load.value_bytes = 64 << 20;
  EXPECT_EQ(choose_grain(spec, drive), 8U);
}

// A zipfian load has no scale: a coarse one has the classes of the original, each with fewer keys. So a part of the
// puts hold the same part of distinct keys, and the tree writes what it writes at grain 1.
TEST(LsmGrain, KeepsTheDistinctKeysOfAZipfianLoad) {
  LoadSpec load;
  load.order = KeyOrder::zipfian;
  load.keys = 1e8;
  for (const double ranks : {0.0, 1e10}) {
    load.zipfian_ranks = ranks;
    const KeySpace fine(load);
    for (const std::uint32_t grain : {8U, 64U, 1024U}) {
      LoadSpec coarse = load;
      coarse.keys /= grain;
      const KeySpace keys(coarse, grain);
      for (const double puts : {1e5, 6e5, 1e8}) {
        const double expected = total(fine.distinct(puts)) / grain;
        EXPECT_NEAR(total(keys.distinct(puts / grain)), expected, 1e-9 * expected) << grain << ' ' << puts;
      }
    }
  }
}

// A duration is divided as all times are: rates stay.
TEST(LsmGrain, DividesTheDuration) {
  Spec spec = small_spec();
  spec.load.operations = 1e9;
  spec.load.duration_s = 4;
  spec.load.rate_ops_s = 20'000;
  spec.load.settle = false;
  spec.tree.write_buffer_size = spec.tree.target_file_size_base = 4 << 20;
  const Figures coarse = finer(run(coarser(spec, 4), coarser(small_drive(), 4)), 4);
  EXPECT_NEAR(coarse.load_seconds, 4, 0.01);
  EXPECT_NEAR(coarse.operations, 80'000, 800);
}

TEST(LsmGrain, KeepsTheShapeUnderAZipfianLoad) {
  Spec spec = small_spec();
  spec.tree.write_buffer_size = spec.tree.target_file_size_base = 64 << 20;
  spec.tree.max_bytes_for_level_base = 256 << 20;
  spec.load.order = KeyOrder::zipfian;
  spec.load.keys = spec.load.operations = 4e6;
  device::Drive drive = small_drive(32);
  drive.config.geometry.page_bytes = 16384;
  drive.config.geometry.pages_per_block = 1024;
  const Figures fine = run(spec, drive);
  for (const std::uint32_t grain : {8U, 64U}) {
    const Figures coarse = finer(run(coarser(spec, grain), coarser(drive, grain)), grain);
    EXPECT_NEAR(coarse.live_user_bytes / fine.live_user_bytes, 1, 1e-6) << grain;
    EXPECT_NEAR(coarse.flush_bytes / fine.flush_bytes, 1, 0.02) << grain;
    EXPECT_NEAR(bytes_in_levels(coarse) / bytes_in_levels(fine), 1, 0.1) << grain;
  }
}

}  // namespace
}  // namespace spillway::lsm
