// Whole simulations: laws that hold for every tree, RocksDB's stalls, and what the drive has counted.
#include <gtest/gtest.h>

#include <cmath>

#include "lsm/grain.h"
#include "lsm/simulation.h"
#include "lsm/stall.h"
#include "lsm_simulations.h"

namespace spillway::lsm {
namespace {

double stalled_s(const Figures& figures) {
  double sum = 0;
  for (std::size_t c = 0; c < kStallCauses; ++c) sum += figures.delayed_s[c] + figures.stopped_s[c];
  return sum;
}

// Every law, for every shape, distribution and number of threads.
TEST(LsmSimulation, BytesAddUp) {
  for (const Shape shape : {Shape::leveled, Shape::universal, Shape::single_level}) {
    for (const KeyOrder order : {KeyOrder::unique_random, KeyOrder::sequential, KeyOrder::uniform, KeyOrder::zipfian}) {
      for (const std::uint32_t threads : {1U, 4U}) {
        Spec spec = small_spec();
        spec.tree.shape = shape;
        if (shape == Shape::single_level) spec.tree.level0_file_num_compaction_trigger = 1;
        if (shape == Shape::single_level) spec.tree.levels = 2;
        spec.tree.compaction_threads = spec.tree.max_subcompactions = threads;
        spec.load.order = order;
        spec.load.operations = 60'000;
        const Figures figures = run(spec);
        SCOPED_TRACE(testing::Message() << static_cast<int>(shape) << ' ' << static_cast<int>(order) << ' ' << threads);
        EXPECT_NEAR(figures.operations, 60'000, 1);
        // The drive was told what the tree wrote, rounded up to pages.
        const double tree = figures.wal_bytes + figures.flush_bytes + figures.compaction_bytes_written;
        EXPECT_GE(static_cast<double>(figures.drive.host_bytes_written), 0.999 * tree);
        EXPECT_LE(static_cast<double>(figures.drive.host_bytes_written), 1.02 * tree + 1e6);
        // What lies in the levels is what was written and not read again.
        double in_levels = 0;
        for (const LevelFigures& level : figures.levels) in_levels += level.bytes;
        if (order == KeyOrder::unique_random || order == KeyOrder::sequential) {
          EXPECT_NEAR(in_levels, 60'000 * entry_bytes(spec).file, 0.001 * in_levels);
        } else {
          EXPECT_GE(in_levels, 0.98 * figures.live_user_bytes);
        }
        EXPECT_LE(static_cast<double>(figures.held_bytes), 1.05 * in_levels + 4e6);
        EXPECT_GE(figures.peak_held_bytes, figures.held_bytes);
        const bool moves_only = order == KeyOrder::sequential && shape == Shape::leveled;
        EXPECT_TRUE(!moves_only || figures.compactions == 0);
      }
    }
  }
}

// A table is made durable before the next one begins, then opened, and each change of the tree is recorded durably.
TEST(LsmSimulation, EveryFileAndEveryChangeIsMadeDurable) {
  Spec spec = small_spec();
  spec.load.order = KeyOrder::unique_random;
  spec.tree.wal = false;
  const Figures figures = run(spec);
  const auto records = figures.flushes + figures.compactions + figures.trivial_moves;
  const double bytes = figures.flush_bytes + figures.compaction_bytes_written;
  EXPECT_GT(figures.trivial_moves, 0U);
  EXPECT_EQ(figures.drive.host_flushes, records + figures.files_written);
  EXPECT_GE(static_cast<double>(figures.files_written), bytes / (2.1 * spec.tree.target_file_size_base));
  const double read = static_cast<double>(figures.drive.host_bytes_read) - figures.compaction_bytes_read;
  EXPECT_GE(read, static_cast<double>(figures.files_written) * 4096);
  EXPECT_LE(read, 0.1 * bytes);
}

// Written bytes of the log wait in memory, and the writer waits for the drive only when they are too many.
TEST(LsmSimulation, ALogThatFitsMemoryDoesNotHoldTheWriterUp) {
  Spec spec = small_spec();
  spec.tree.write_buffer_size = 1e9;
  spec.load.operations = 50'000;
  device::Drive slow = small_drive();
  slow.config.timing.program_ns = {40'000'000};
  const double alone = spec.load.operations * spec.host.put_ns / 1e9;
  EXPECT_NEAR(run(spec, slow).load_seconds, alone, 0.01 * alone);
  spec.host.log_dirty_bytes = 0;
  EXPECT_GT(run(spec, slow).load_seconds, 2 * alone);
}

TEST(LsmSimulation, PutsCostTheirBytes) {
  Spec spec = small_spec();
  spec.tree.write_buffer_size = 1e9;
  spec.load.operations = 10'000;
  spec.host.put_byte_ns = 3;
  EXPECT_NEAR(run(spec).load_seconds, 10'000 * (spec.host.put_ns + 3 * 1016) / 1e9, 1e-3);
}

// Of RocksDB's arena: eight blocks of an eighth each, and it is full when less than a quarter of a block is left.
TEST(LsmSimulation, AMemtableIsFullBeforeItsBufferIs) {
  Spec spec = small_spec();
  EXPECT_NEAR(memtable_puts(spec) * entry_bytes(spec).memtable, (1 - 1.0 / 32) * spec.tree.write_buffer_size, 1);
  spec.tree.write_buffer_size = 64 << 20;  // blocks of 1 MiB
  EXPECT_NEAR(memtable_puts(spec) * entry_bytes(spec).memtable, 63.75 * 1048576, 1);
}

TEST(LsmSimulation, TheSameSeedGivesTheSameFigures) {
  const Figures a = run(small_spec());
  const Figures b = run(small_spec());
  EXPECT_EQ(a.drive.host_bytes_written, b.drive.host_bytes_written);
  EXPECT_EQ(a.drive.nand_bytes_programmed_total(), b.drive.nand_bytes_programmed_total());
  EXPECT_EQ(a.load_seconds, b.load_seconds);
  Spec other = small_spec();
  other.seed = 2;
  EXPECT_NE(run(other).drive.host_bytes_written, a.drive.host_bytes_written);
}

TEST(LsmSimulation, ALargerFanoutWritesMore) {
  Spec spec = small_spec();
  spec.load.order = KeyOrder::unique_random;
  spec.tree.fanout = 4;
  const double small = run(spec).compaction_bytes_written;
  spec.tree.fanout = 16;
  EXPECT_GT(run(spec).compaction_bytes_written, small);
}

TEST(LsmSimulation, TieringWritesLessThanLeveling) {
  Spec spec = small_spec();
  const Figures leveled = run(spec);
  spec.tree.shape = Shape::universal;
  const Figures universal = run(spec);
  EXPECT_LT(universal.compaction_bytes_written, leveled.compaction_bytes_written);
  EXPECT_GT(universal.peak_held_bytes, leveled.peak_held_bytes);
}

// Subcompactions divide the input by its size, not by the files of the level below: a compaction is faster with them
// though the level below is empty or the tree is universal, and the tree holds the same.
TEST(LsmSimulation, SubcompactionsSplitWhateverIsLargeEnough) {
  for (const Shape shape : {Shape::leveled, Shape::universal}) {
    Spec spec = small_spec();
    spec.tree.shape = shape;
    spec.load.order = KeyOrder::unique_random;
    spec.load.keys = 32'000;
    spec.load.operations = 4.02 * memtable_puts(spec);
    spec.tree.level0_file_num_compaction_trigger = 4;
    spec.host.merge_entry_ns = 200'000;
    spec.host.cores = 64;
    const Figures one = run(spec);
    spec.tree.max_subcompactions = 4;
    const Figures four = run(spec);
    EXPECT_EQ(one.compactions, 1U);
    EXPECT_EQ(four.compactions, 1U);
    EXPECT_NEAR(bytes_in_levels(four), bytes_in_levels(one), 1);
    EXPECT_LT(four.load_seconds + four.settle_seconds, 0.6 * (one.load_seconds + one.settle_seconds));
  }
}

TEST(LsmSimulation, ASlowerDriveStallsWritersLonger) {
  Spec spec = small_spec();
  spec.tree.soft_pending_compaction_bytes_limit = 64 << 20;
  spec.tree.hard_pending_compaction_bytes_limit = 256 << 20;
  device::Drive slow = small_drive();
  slow.config.timing.program_ns = {6'000'000};
  const Figures on_fast = run(spec);
  const Figures on_slow = run(spec, slow);
  EXPECT_GT(on_slow.load_seconds, 1.2 * on_fast.load_seconds);
  EXPECT_GT(stalled_s(on_slow), stalled_s(on_fast));
  EXPECT_LE(stalled_s(on_slow), on_slow.load_seconds + 1e-6);
}

// A tree that stops writers and has nothing to compact ends with an error, whether its course is recorded or not.
TEST(LsmSimulation, ADeadlockIsAnErrorWithAndWithoutSamples) {
  for (const double interval_s : {0.0, 0.01}) {
    Spec spec = small_spec();
    spec.sample_interval_s = interval_s;
    spec.tree.level0_stop_writes_trigger = spec.tree.level0_slowdown_writes_trigger = 2;
    spec.tree.max_bytes_for_level_base = 1e12;
    spec.tree.level0_file_num_compaction_trigger = 10;
    device::DriveModel model(small_drive(), 1);
    Watch watch;
    std::size_t samples = 0;
    watch.sample = [&](const Sample& /*sample*/) { ASSERT_LT(++samples, 100'000U); };
    watch.progress = [&](double /*operations*/) { return samples < 100'000; };
    auto figures = simulate(spec, model, nullptr, watch);
    ASSERT_FALSE(figures) << interval_s;
    EXPECT_EQ(figures.status().fault(), Fault::stopped);
  }
}

TEST(LsmSimulation, AnOpenLoopKeepsItsRate) {
  Spec spec = small_spec();
  spec.load.operations = 20'000;
  spec.load.rate_ops_s = 5000;
  const Figures figures = run(spec);
  EXPECT_NEAR(figures.load_seconds, 4.0, 0.1);
}

TEST(LsmSimulation, SaysSoIfTheDriveIsTooSmall) {
  Spec spec = small_spec();
  spec.load.order = KeyOrder::unique_random;
  device::DriveModel model(small_drive(0.125), 1);
  auto figures = simulate(spec, model, nullptr, {});
  ASSERT_FALSE(figures);
  EXPECT_EQ(figures.status().fault(), Fault::drive_full);
}

TEST(LsmSimulation, EndsEarlyWhenAsked) {
  device::DriveModel model(small_drive(), 1);
  Watch watch;
  watch.progress = [](double operations) { return operations < 1000; };
  auto figures = simulate(small_spec(), model, nullptr, watch);
  ASSERT_TRUE(figures);
  EXPECT_FALSE(figures->complete);
  EXPECT_LT(figures->operations, 200'000);
}

}  // namespace
}  // namespace spillway::lsm
