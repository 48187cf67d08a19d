// A tree that holds every key before the load: where its files lie, what is counted, and what follows of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "lsm/grain.h"
#include "lsm/preload.h"
#include "lsm_simulations.h"

namespace spillway::lsm {
namespace {

Spec preloaded_spec(double puts) {
  Spec spec = small_spec();
  spec.load.keys = 100'000;
  spec.load.operations = puts;
  spec.load.preload = Preload::in_order;
  spec.load.settle = false;
  return spec;
}

double all_bytes(const Spec& spec) { return spec.load.keys * entry_bytes(spec).file; }

double wa_app(const Figures& figures) {
  return static_cast<double>(figures.drive.host_bytes_written) / figures.user_bytes;
}

struct Shaped {
  const char* name;
  std::function<void(TreeOptions&)> change;
  std::size_t level;  // in which all of it lies
};

// 100 MB over a first level of 4 MiB: 42 and 420 MB are the next targets.
const std::vector<Shaped> kShapes = {
    {"leveled", [](TreeOptions&) {}, 3},
    {"fanout", [](TreeOptions& tree) { tree.fanout = 30; }, 2},
    {"few levels", [](TreeOptions& tree) { tree.levels = 3; }, 2},
    {"wide", [](TreeOptions& tree) { tree.max_bytes_for_level_base = 1e9; }, 1},
    {"dynamic", [](TreeOptions& tree) { tree.level_compaction_dynamic_level_bytes = true; }, 6},
    {"universal", [](TreeOptions& tree) { tree.shape = Shape::universal; }, 6},
    {"single level", [](TreeOptions& tree) { tree.shape = Shape::single_level, tree.levels = 2; }, 1},
};

// All bytes lie in one level, on the drive, and are counted nowhere else.
TEST(LsmPreload, EveryKeyLiesInTheLastLevelThatItNeeds) {
  for (const Shaped& shape : kShapes) {
    for (const KeyOrder order : {KeyOrder::uniform, KeyOrder::zipfian}) {
      SCOPED_TRACE(testing::Message() << shape.name << ' ' << static_cast<int>(order));
      Spec spec = preloaded_spec(1);
      shape.change(spec.tree);
      spec.load.order = order;
      const Figures figures = run(spec);
      for (std::size_t l = 0; l < figures.levels.size(); ++l) {
        EXPECT_NEAR(figures.levels[l].bytes, l == shape.level ? all_bytes(spec) : 0, 0.001 * all_bytes(spec)) << l;
        EXPECT_EQ(figures.levels[l].bytes_written, 0);
      }
      const LevelFigures& last = figures.levels[shape.level];
      EXPECT_NEAR(static_cast<double>(last.files), last.bytes / spec.tree.target_file_size_base, 0.05 * 100);
      EXPECT_NEAR(figures.preloaded_bytes, all_bytes(spec), 0.001 * all_bytes(spec));
      EXPECT_NEAR(figures.live_user_bytes, spec.load.keys * 1016, 1);
      EXPECT_NEAR(static_cast<double>(figures.held_bytes), all_bytes(spec), 0.02 * all_bytes(spec));
      EXPECT_EQ(figures.compactions + figures.trivial_moves + figures.flushes, 0U);
      EXPECT_LE(figures.drive.host_bytes_written, 1U << 20);
      EXPECT_LE(figures.load_seconds, 0.001);
    }
  }
}

// A settled tree has nothing to do, and nothing that it does not have to do is done by a load of few puts.
TEST(LsmPreload, ASettledTreeIsLeftAlone) {
  for (const Shaped& shape : kShapes) {
    Spec spec = preloaded_spec(1);
    shape.change(spec.tree);
    spec.load.settle = true;
    const Figures figures = run(spec);
    EXPECT_EQ(figures.compactions, 0U) << shape.name;
    EXPECT_EQ(figures.flushes, 1U) << shape.name;
  }
}

// What was loaded in order, put after put, and compacted into one level, is the same tree on the same drive.
TEST(LsmPreload, IsWhatALoadInOrderLeaves) {
  Spec loaded = preloaded_spec(100'000);
  loaded.tree.max_bytes_for_level_base = 1e9;
  loaded.tree.level0_file_num_compaction_trigger = 1;
  loaded.tree.trivial_moves = false;
  loaded.load.preload = Preload::none;
  loaded.load.order = KeyOrder::sequential;
  loaded.load.settle = true;
  Spec spec = preloaded_spec(1);
  spec.tree = loaded.tree;
  const Figures one = run(loaded);
  const Figures other = run(spec);
  EXPECT_NEAR(other.levels[1].bytes, one.levels[1].bytes, 0.001 * one.levels[1].bytes);
  EXPECT_EQ(one.levels[0].files + other.levels[0].files, 0U);
  EXPECT_NEAR(static_cast<double>(other.held_bytes), static_cast<double>(one.held_bytes),
              0.02 * static_cast<double>(one.held_bytes));
  EXPECT_NEAR(other.live_user_bytes, one.live_user_bytes, 1);
}

// `wa_app` counts from the load on, and is from its begin what a tree has in which every key was put before: puts on a
// tree that grows write less.
TEST(LsmPreload, PutsWriteAsInATreeThatIsFull) {
  const auto between = [](Spec spec, double from, double until) {
    spec.load.operations = from;
    const Figures first = run(spec);
    spec.load.operations = until;
    const Figures last = run(spec);
    const auto bytes = static_cast<double>(last.drive.host_bytes_written - first.drive.host_bytes_written);
    return bytes / (last.user_bytes - first.user_bytes);
  };
  const Spec preloaded = preloaded_spec(1);
  Spec empty = preloaded;
  empty.load.preload = Preload::none;
  const double full = between(empty, 500'000, 800'000);
  EXPECT_NEAR(between(preloaded, 100'000, 400'000), full, 0.07 * full);
  EXPECT_LT(between(empty, 1, 100'000), 0.85 * full);
  Spec once = preloaded_spec(300'000);
  EXPECT_NEAR(wa_app(run(once)), full, 0.15 * full);
}

// The drive holds the tree: what is there before takes its units, and compactions read what was written.
TEST(LsmPreload, TheDriveHoldsTheTree) {
  for (const double puts : {1.0, 100'000.0}) {
    const Spec spec = preloaded_spec(puts);
    device::DriveModel model(small_drive(), spec.seed);
    auto figures = simulate(spec, model, nullptr, {});
    ASSERT_TRUE(figures);
    const std::uint64_t mapped = model.flash()->mapped_units() * model.mapping_unit_bytes();
    EXPECT_NEAR(static_cast<double>(mapped), static_cast<double>(figures->held_bytes), 3e6);
    EXPECT_EQ(figures->drive.unmapped_reads, 0U);
    EXPECT_EQ(figures->drive.host_bytes_read > 100'000'000U, puts > 1);
  }
}

TEST(LsmPreload, ADriveThatIsTooSmallIsRefused) {
  const Spec spec = preloaded_spec(1);
  device::DriveModel model(small_drive(0.09), spec.seed);
  const auto figures = simulate(spec, model, nullptr, {});
  ASSERT_FALSE(figures);
  EXPECT_EQ(figures.status().fault(), Fault::drive_full);
}

TEST(LsmPreload, IsEndedEarlyByTheWatch) {
  const Spec spec = preloaded_spec(1'000);
  device::DriveModel model(small_drive(), spec.seed);
  Watch watch;
  int asked = 0;
  watch.progress = [&](double operations) {
    EXPECT_EQ(operations, 0);
    return ++asked < 3;
  };
  auto figures = simulate(spec, model, nullptr, watch);
  ASSERT_TRUE(figures);
  EXPECT_FALSE(figures->complete);
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(figures->operations, 0);
}

// A get finds each key in the one file that has it.
TEST(LsmPreload, QueriesReadOneBlockOfASettledTree) {
  Spec spec = preloaded_spec(1);
  spec.queries = {{QuerySpec::Kind::point, 2, 2000, 0}};
  const Figures figures = run(spec);
  ASSERT_EQ(figures.queries.size(), 1U);
  EXPECT_NEAR(figures.queries[0].block_reads / 2000, 1, 0.02);
}

Spec unsettled_spec(double puts) {
  Spec spec = preloaded_spec(puts);
  spec.load.preload = Preload::unsettled;
  return spec;
}

// The load itself is simulated: static targets have full levels above the last one, dynamic ones have not, and each key
// is there once. Nothing of it is counted, and nothing of it is compacted but moved.
TEST(LsmPreload, AnUnsettledTreeIsAsTheLoadLeavesIt) {
  for (const Shaped& shape : kShapes) {
    SCOPED_TRACE(shape.name);
    Spec spec = unsettled_spec(1);
    shape.change(spec.tree);
    const Figures figures = run(spec);
    const double in_memory = memtable_puts(spec) * 2 * entry_bytes(spec).file;  // at most, at this rate
    EXPECT_NEAR(bytes_in_levels(figures), all_bytes(spec), in_memory + 0.01 * all_bytes(spec));
    EXPECT_NEAR(figures.live_user_bytes, spec.load.keys * 1016, 1);
    EXPECT_LE(figures.operations, 1 + 1e-6);
    EXPECT_LE(figures.load_seconds, 0.001);
    EXPECT_LE(figures.flushes + figures.compactions + figures.trivial_moves, 2U);
    double fullest = 0;
    for (const LevelFigures& level : figures.levels) fullest = std::max(fullest, level.bytes);
    const bool is_static = spec.tree.shape == Shape::leveled && shape.level == 3;
    if (is_static) {
      EXPECT_NEAR(figures.levels[2].bytes, 10 * spec.tree.max_bytes_for_level_base, 4e6);
      EXPECT_NEAR(figures.levels[3].bytes, all_bytes(spec) - figures.levels[2].bytes, 0.1 * all_bytes(spec));
    }
    EXPECT_EQ(fullest < 0.8 * all_bytes(spec), is_static || spec.tree.shape == Shape::universal);
  }
}

// As a program finds it that loads in order and goes on: the same puts, one after another, in one simulation.
TEST(LsmPreload, AnUnsettledTreeIsWhatALoadInOrderLeaves) {
  Spec loaded = preloaded_spec(100'000);
  loaded.load.preload = Preload::none;
  loaded.load.order = KeyOrder::sequential;
  const Figures one = run(loaded);
  const Figures other = run(unsettled_spec(1));
  for (std::size_t l = 0; l < one.levels.size(); ++l) EXPECT_NEAR(other.levels[l].bytes, one.levels[l].bytes, 3e6) << l;
}

// The memtable that the load leaves goes on, and holds both: the keys in order, and those that are put then. So a flush
// comes after fewer puts than fill a memtable, and no key is lost.
TEST(LsmPreload, TheMemtableOfALoadInOrderGoesOn) {
  Spec spec = unsettled_spec(100);
  spec.load.keys = 100'000 + 0.9 * memtable_puts(spec) - std::fmod(100'000, memtable_puts(spec));
  spec.load.operations = 0.2 * memtable_puts(spec);
  spec.load.settle = true;
  const Figures figures = run(spec);
  EXPECT_GE(figures.flushes, 2U);
  EXPECT_GE(bytes_in_levels(figures), 0.999 * all_bytes(spec));
  EXPECT_LE(bytes_in_levels(figures), all_bytes(spec) + 1.01 * spec.load.operations * entry_bytes(spec).file);
}

// Compactions of the load go on in the time that is counted, and its rate is not that of the load.
TEST(LsmPreload, TimeAndRateBeginWithTheLoad) {
  Spec spec = unsettled_spec(1e6);
  spec.load.rate_ops_s = 5'000;
  spec.load.duration_s = 2;
  spec.sample_interval_s = 0.5;
  device::DriveModel model(small_drive(), spec.seed);
  Watch watch;
  std::vector<Sample> samples;
  watch.sample = [&](const Sample& sample) { samples.push_back(sample); };
  auto figures = simulate(spec, model, nullptr, watch);
  ASSERT_TRUE(figures);
  EXPECT_NEAR(figures->load_seconds, 2, 1e-6);
  EXPECT_NEAR(figures->operations, 10'000, 100);
  EXPECT_LE(figures->worst_wait_s, 0.1);
  ASSERT_GE(samples.size(), 3U);
  EXPECT_NEAR(samples[0].seconds, 0.5, 1e-6);
  for (const Sample& sample : samples) EXPECT_LE(sample.operations, 5'000 * sample.seconds + 1);
  EXPECT_NEAR(static_cast<double>(samples[0].host_bytes_written), 2'500 * 1016, 4e6);
}

// A duration ends a load in time also where writers are stopped, and leaves it alone where its puts are done before.
TEST(LsmPreload, ADurationEndsALoad) {
  Spec spec = preloaded_spec(1e9);
  spec.load.duration_s = 1.5;
  spec.tree.level0_stop_writes_trigger = spec.tree.level0_slowdown_writes_trigger = 4;
  const Figures stopped = run(spec);
  EXPECT_NEAR(stopped.load_seconds, 1.5, 1e-6);
  EXPECT_GT(stopped.stopped_s[static_cast<std::size_t>(StallCause::l0)], 0.1);
  spec.load.operations = 1'000;
  const Figures done = run(spec);
  EXPECT_LT(done.load_seconds, 0.5);
  EXPECT_NEAR(done.operations, 1'000, 1e-3);
}

TEST(LsmPreload, AnUnsettledLoadIsEndedEarlyByTheWatch) {
  const Spec spec = unsettled_spec(1'000);
  device::DriveModel model(small_drive(), spec.seed);
  Watch watch;
  watch.progress = [](double operations) {
    EXPECT_EQ(operations, 0);
    return false;
  };
  auto figures = simulate(spec, model, nullptr, watch);
  ASSERT_TRUE(figures);
  EXPECT_FALSE(figures->complete);
  EXPECT_EQ(figures->operations, 0);
}

// Sizes by the grain, times too: a coarse simulation of a preloaded tree says what the fine one does.
TEST(LsmPreload, ACoarseOneSaysTheSame) {
  Spec spec = preloaded_spec(200'000);
  spec.tree.write_buffer_size = spec.tree.target_file_size_base = 4 << 20;
  spec.tree.max_bytes_for_level_base = 16 << 20;
  const Figures fine = run(spec);
  const Figures coarse = finer(run(coarser(spec, 2), coarser(small_drive(), 2)), 2);
  EXPECT_NEAR(coarse.preloaded_bytes, fine.preloaded_bytes, 0.01 * fine.preloaded_bytes);
  EXPECT_NEAR(wa_app(coarse), wa_app(fine), 0.1 * wa_app(fine));
}

}  // namespace
}  // namespace spillway::lsm
