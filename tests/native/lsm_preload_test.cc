// A tree that holds every key before the load: where its files lie, what is counted, and what follows of it.
#include <gtest/gtest.h>

#include <algorithm>
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
