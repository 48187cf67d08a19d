// Whole simulations: laws that hold for every tree, RocksDB's stalls, and what the drive has counted.
#include <gtest/gtest.h>

#include <cmath>

#include "device/preset/preset.h"
#include "lsm/agenda.h"
#include "lsm/grain.h"
#include "lsm/simulation.h"
#include "lsm/stall.h"

namespace spillway::lsm {
namespace {

device::Drive small_drive(double gib = 4) {
  device::Drive drive;
  drive.config.capacity.capacity_bytes = static_cast<std::uint64_t>(gib * 1073741824);
  drive.config.capacity.spare_factor = 0.1;
  drive.config.timing.program_ns = {400'000};
  drive.config.write_cache.bytes = 16 << 20;
  return drive;
}

Spec small_spec() {
  Spec spec;
  spec.tree.write_buffer_size = spec.tree.target_file_size_base = 1 << 20;
  spec.tree.max_bytes_for_level_base = 4 << 20;
  spec.load.value_bytes = 1000;
  spec.load.keys = spec.load.operations = 200'000;
  spec.load.order = KeyOrder::uniform;
  return spec;
}

Figures run(const Spec& spec, const device::Drive& drive = small_drive()) {
  device::DriveModel model(drive, spec.seed);
  auto figures = simulate(spec, model, nullptr, {});
  EXPECT_TRUE(figures) << figures.status().message();
  return figures ? *figures : Figures();
}

double stalled_s(const Figures& figures) {
  double sum = 0;
  for (std::size_t c = 0; c < kStallCauses; ++c) sum += figures.delayed_s[c] + figures.stopped_s[c];
  return sum;
}

double bytes_in_levels(const Figures& figures) {
  double sum = 0;
  for (const LevelFigures& level : figures.levels) sum += level.bytes;
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

TEST(LsmProcessor, ThreadsThatWaitAreAPartOfTheLoad) {
  Processor processor(1);
  processor.enter();
  EXPECT_EQ(processor.slowdown(), 1);
  processor.enter(0.5);
  EXPECT_EQ(processor.slowdown(), 1.5);
  processor.leave();
  EXPECT_EQ(processor.slowdown(), 1);
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

TEST(LsmStall, FollowsRocksdbsConditions) {
  TreeOptions options;
  StallController stalls(options);
  EXPECT_FALSE(stalls.update({0, 4, 0}).delayed);
  EXPECT_FALSE(stalls.state().speed_up);
  EXPECT_TRUE(stalls.update({0, 8, 0}).speed_up);  // min(2 x trigger, trigger + a quarter of the way to slowdown)
  EXPECT_TRUE(stalls.update({0, 20, 1e9}).delayed);
  EXPECT_EQ(stalls.state().rate_bytes_s, options.delayed_write_rate);
  EXPECT_EQ(stalls.update({0, 21, 2e9}).rate_bytes_s, 0.8 * options.delayed_write_rate);
  EXPECT_EQ(stalls.update({0, 20, 1e9}).rate_bytes_s, options.delayed_write_rate);
  EXPECT_TRUE(stalls.update({0, 36, 1e9}).stopped);
  EXPECT_EQ(stalls.state().cause, StallCause::l0);
  EXPECT_TRUE(stalls.update({2, 0, 0}).stopped);
  EXPECT_EQ(stalls.state().cause, StallCause::memtable);
  EXPECT_TRUE(stalls.update({0, 0, options.hard_pending_compaction_bytes_limit}).stopped);
  options.slowdown = false;
  StallController no_slowdown(options);
  EXPECT_FALSE(no_slowdown.update({0, 35, 100.0 * 1073741824}).delayed);
  EXPECT_TRUE(no_slowdown.update({0, 36, 0}).stopped);
}

}  // namespace
}  // namespace spillway::lsm
