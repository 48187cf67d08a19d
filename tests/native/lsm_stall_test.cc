// RocksDB's write stalls.
#include <gtest/gtest.h>

#include "lsm/stall.h"
#include "lsm_simulations.h"

namespace spillway::lsm {
namespace {

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

// As RocksDB's SanitizeOptions: without a soft limit it is the hard one, without both there is none and compactions
// always run side by side, and a soft limit is never above the hard one.
TEST(LsmStall, LimitsOfTheDebtAreSanitizedAsRocksdbDoes) {
  struct Case {
    double soft, hard, delays, stops, speeds_up;  // 0: never
  };
  constexpr double kNever = 1e18;
  for (const Case& one : {Case{100, 200, 100, 200, 25}, Case{0, 200, kNever, 200, 50}, Case{100, 0, 100, kNever, 25},
                          Case{0, 0, kNever, kNever, 0}, Case{400, 200, kNever, 200, 50}}) {
    for (const double pending : {0.0, 24.0, 25.0, 49.0, 50.0, 99.0, 100.0, 199.0, 200.0, 1e9}) {
      SCOPED_TRACE(testing::Message() << one.soft << ' ' << one.hard << ' ' << pending);
      TreeOptions options;
      options.soft_pending_compaction_bytes_limit = one.soft;
      options.hard_pending_compaction_bytes_limit = one.hard;
      StallController stalls(options);
      const StallState& state = stalls.update({0, 0, pending});
      EXPECT_EQ(state.stopped, pending >= one.stops);
      EXPECT_EQ(state.delayed, pending >= one.delays && pending < one.stops);
      if (!state.stopped && !state.delayed) {
        EXPECT_EQ(state.speed_up, pending >= one.speeds_up);
      }
    }
  }
}

// RocksDB's l0_delay_trigger_count of a universal tree is that of all sorted runs.
TEST(LsmStall, AUniversalTreeStallsByItsSortedRuns) {
  Spec spec = small_spec();
  spec.tree.shape = Shape::universal;
  spec.tree.level0_slowdown_writes_trigger = 5;
  spec.tree.level0_stop_writes_trigger = 6;
  spec.sample_interval_s = 0.005;
  device::Drive slow = small_drive();
  slow.config.timing.program_ns = {3'000'000};
  device::DriveModel model(slow, 1);
  Watch watch;
  int at_limit = 0;
  watch.sample = [&](const Sample& sample) {
    std::size_t runs = sample.l0_files;
    for (std::size_t l = 1; l < sample.level_bytes.size(); ++l) runs += sample.level_bytes[l] > 0 ? 1 : 0;
    if (runs < 6 || sample.operations >= spec.load.operations) return;
    ++at_limit;
    EXPECT_TRUE(sample.stopped) << sample.l0_files << " files in L0, " << runs << " runs";
  };
  ASSERT_TRUE(simulate(spec, model, nullptr, watch));
  EXPECT_GT(at_limit, 0);
}

}  // namespace
}  // namespace spillway::lsm
