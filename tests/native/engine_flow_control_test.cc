#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "engine/rocksdb/flow_control.h"
#include "engine/rocksdb/flow_window.h"

namespace spillway::engine {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kMiB = 1 << 20;
constexpr double kFlow = 40.0 * kMiB;
constexpr double kUnlimited = std::numeric_limits<double>::infinity();

// --- Windows

TEST(FlowWindow, OfNothingEverythingIsZero) {
  const FlowWindow window(3);
  EXPECT_EQ(window.newest(), 0);
  EXPECT_EQ(window.mean(), 0);
  EXPECT_EQ(window.percentile_90(), 0);
  EXPECT_FALSE(window.is_rising());
}

TEST(FlowWindow, HoldsItsCapacityOfTheNewest) {
  FlowWindow window(3);
  for (int i = 1; i <= 5; ++i) window.add(i, i * kSecond);
  EXPECT_EQ(window.newest(), 5);
  EXPECT_EQ(window.mean(), 4);
}

TEST(FlowWindow, ThePercentileIsTheValueBelowWhichNineTenthsAre) {
  FlowWindow window(30);
  for (int i = 30; i >= 1; --i) window.add(i, (31 - i) * kSecond);
  EXPECT_EQ(window.percentile_90(), 27);  // the 26th of 29 steps
  FlowWindow one(30);
  one.add(7, 0);
  EXPECT_EQ(one.percentile_90(), 7);
}

TEST(FlowWindow, OldValuesAreDroppedButForTwo) {
  FlowWindow window(30);
  window.add(100, 0);
  window.add(10, 10 * kSecond);
  window.add(20, 300 * kSecond);
  EXPECT_EQ(window.mean(), 130.0 / 3);  // 300 s are not too old
  window.add(30, 301 * kSecond);
  EXPECT_EQ(window.mean(), 20);
  window.add(40, 10'000 * kSecond);
  EXPECT_EQ(window.mean(), 35);
}

TEST(FlowWindow, RisesByMoreThanTwoBetweenItsHalves) {
  FlowWindow window(4);
  window.add(5, 0);
  EXPECT_FALSE(window.is_rising());
  window.add(7, kSecond);
  EXPECT_FALSE(window.is_rising());
  window.add(8, 2 * kSecond);  // 5 : 7.5
  EXPECT_TRUE(window.is_rising());
  EXPECT_TRUE(window.is_rising(2 * kSecond));
  EXPECT_FALSE(window.is_rising(2 * kSecond + 1));
}

// --- The rules

// A control that knows a flow of kFlow and has seen each signal below its limit.
class FlowControlTest : public testing::Test {
 protected:
  explicit FlowControlTest(const FlowControlOptions& options = {}) : control_(options) {
    control_.record_flow(kFlow, tick());
    memtables(0);
    l0(0);
    pending(0);
  }

  std::int64_t tick() { return now_ns_ += kSecond; }
  FlowRule memtables(std::uint64_t count) { return control_.judge_memtables({.immutable_memtables = count}, tick()); }
  FlowRule l0(std::uint64_t files) { return control_.judge_l0({.l0_files = files}, tick()); }
  FlowRule pending(std::uint64_t bytes) { return control_.judge_pending({.pending_compaction_bytes = bytes}, tick()); }
  // Until their mean is over the limit of 5; the last rule.
  FlowRule memtables_until_limited() {
    FlowRule rule = FlowRule::keep;
    for (int i = 0; i < 20 && rule == FlowRule::keep; ++i) rule = memtables(6);
    return rule;
  }

  FlowControl control_;
  std::int64_t now_ns_ = 0;
};

TEST_F(FlowControlTest, WithoutPressureNothingIsLimited) {
  EXPECT_EQ(l0(20), FlowRule::keep);  // at the limit is not over it
  EXPECT_EQ(memtables(5), FlowRule::keep);
  EXPECT_EQ(control_.limit_bytes_s(), kUnlimited);
}

TEST_F(FlowControlTest, L0BeginsAtTheRecordedFlowAndSlowsByAFifth) {
  EXPECT_EQ(l0(21), FlowRule::l0_begin);
  EXPECT_EQ(control_.limit_bytes_s(), kFlow);
  EXPECT_EQ(l0(21), FlowRule::l0_slower);
  EXPECT_DOUBLE_EQ(control_.limit_bytes_s(), 0.8 * kFlow);
  EXPECT_EQ(l0(22), FlowRule::l0_slower);
  EXPECT_DOUBLE_EQ(control_.limit_bytes_s(), 0.64 * kFlow);
}

TEST_F(FlowControlTest, L0EndsAndBeginsAgainAtTheLastSpeed) {
  l0(21);
  l0(21);
  l0(21);
  EXPECT_EQ(l0(20), FlowRule::l0_end);
  EXPECT_EQ(control_.limit_bytes_s(), kUnlimited);
  control_.record_flow(4 * kFlow, tick());
  EXPECT_EQ(l0(21), FlowRule::l0_begin);
  EXPECT_DOUBLE_EQ(control_.limit_bytes_s(), 0.8 * kFlow);  // 0.64 / 0.8, and not the new flow
}

TEST_F(FlowControlTest, TheSpeedNeverFallsBelowTheLeast) {
  for (int i = 0; i < 100; ++i) l0(30);
  EXPECT_EQ(control_.limit_bytes_s(), 16.0 * 1024);
}

TEST_F(FlowControlTest, BeyondTheMostThereIsNoLimit) {
  for (int i = 0; i < 30; ++i) control_.record_flow(200.0 * kMiB + 1, tick());
  EXPECT_EQ(l0(21), FlowRule::keep);
  EXPECT_EQ(control_.limit_bytes_s(), kUnlimited);
  for (int i = 0; i < 30; ++i) control_.record_flow(200.0 * kMiB, tick());
  EXPECT_EQ(l0(21), FlowRule::l0_begin);
}

TEST_F(FlowControlTest, SecondsWithoutWritesAreNoRecords) {
  for (int i = 0; i < 30; ++i) control_.record_flow(0, tick());
  l0(21);
  EXPECT_EQ(control_.limit_bytes_s(), kFlow);
}

TEST(FlowControl, WithoutAFlowThereIsNothingToLimitTo) {
  FlowControl control({});
  control.judge_l0({.l0_files = 1}, 1);
  control.judge_memtables({.immutable_memtables = 1}, 1);
  EXPECT_EQ(control.judge_l0({.l0_files = 40}, 2), FlowRule::keep);
  for (int i = 3; i < 30; ++i) {
    EXPECT_EQ(control.judge_memtables({.immutable_memtables = 40}, i), FlowRule::keep);
  }
  EXPECT_EQ(control.limit_bytes_s(), kUnlimited);
}

TEST_F(FlowControlTest, MemtablesBeginWhenTheirMeanIsOverTheLimit) {
  EXPECT_EQ(memtables(6), FlowRule::keep);  // 0 and 6
  EXPECT_EQ(memtables_until_limited(), FlowRule::memtables_begin);
  EXPECT_EQ(control_.limit_bytes_s(), kFlow);
}

TEST_F(FlowControlTest, MemtablesStepByAMegabyte) {
  memtables_until_limited();
  EXPECT_EQ(memtables(7), FlowRule::memtables_slower);
  EXPECT_EQ(control_.limit_bytes_s(), kFlow - kMiB);
  EXPECT_EQ(memtables(9), FlowRule::memtables_slower);  // a step, however many more there are
  EXPECT_EQ(control_.limit_bytes_s(), kFlow - 2 * kMiB);
  EXPECT_EQ(memtables(9), FlowRule::keep);
  EXPECT_EQ(control_.limit_bytes_s(), kFlow - 2 * kMiB);
  EXPECT_EQ(memtables(8), FlowRule::memtables_faster);
  EXPECT_EQ(control_.limit_bytes_s(), kFlow - kMiB);
}

TEST_F(FlowControlTest, MemtablesThatSetTheLimitEndIt) {
  memtables_until_limited();
  memtables(7);
  EXPECT_EQ(memtables(4), FlowRule::memtables_end);  // though their mean is still over the limit
  EXPECT_EQ(control_.limit_bytes_s(), kUnlimited);
}

TEST_F(FlowControlTest, L0DoesNotTouchWhatMemtablesSet) {
  memtables_until_limited();
  EXPECT_EQ(l0(30), FlowRule::keep);
  EXPECT_EQ(l0(0), FlowRule::keep);
  EXPECT_EQ(control_.limit_bytes_s(), kFlow);
  memtables(4);
  EXPECT_EQ(l0(30), FlowRule::l0_begin);
}

TEST_F(FlowControlTest, MemtablesGiveBackWhatTheyTookFromL0sLimit) {
  for (int i = 0; i < 20; ++i) {  // over the limit before there is a limit: the same flush judges L0
    if (i == 5) l0(21);
    memtables(6);
  }
  EXPECT_EQ(control_.limit_bytes_s(), kFlow);
  EXPECT_EQ(memtables(7), FlowRule::memtables_slower);
  EXPECT_EQ(memtables(8), FlowRule::memtables_slower);
  EXPECT_EQ(memtables(7), FlowRule::memtables_faster);
  EXPECT_EQ(control_.limit_bytes_s(), kFlow - kMiB);
  EXPECT_EQ(memtables(4), FlowRule::memtables_repay);
  EXPECT_EQ(control_.limit_bytes_s(), kFlow);
  EXPECT_EQ(memtables(4), FlowRule::keep);  // nothing is owed any more
  EXPECT_EQ(control_.limit_bytes_s(), kFlow);
  EXPECT_EQ(l0(20), FlowRule::l0_end);
}

// With soft = 16 and hard = 256: log2 is 4 and 8.
class FlowControlPendingTest : public FlowControlTest {
 protected:
  FlowControlPendingTest() : FlowControlTest({.soft_pending_bytes = 16, .hard_pending_bytes = 256}) {}
  // The window has 1024 records; so many of one value are its mean.
  void fill(std::uint64_t bytes) {
    for (int i = 0; i < 1024; ++i) control_.judge_pending({.pending_compaction_bytes = bytes}, now_ns_);
  }
};

TEST_F(FlowControlPendingTest, PendingBytesBeginWithAHundredthAtMost) {
  EXPECT_EQ(pending(256), FlowRule::keep);  // 0 and 8, whose mean is at the soft limit
  EXPECT_EQ(control_.pending_share(), 0);
  EXPECT_EQ(pending(256), FlowRule::pending);  // a third of the way
  EXPECT_EQ(control_.pending_share(), 0.01);
  EXPECT_DOUBLE_EQ(control_.limit_bytes_s(), 0.99 * kFlow);
}

TEST_F(FlowControlPendingTest, TheShareIsSmoothedAndGoesToTheMean) {
  FlowRule first = FlowRule::keep;
  double share = 0;
  for (int i = 0; i < 100 && share == 0; ++i) {
    first = pending(64);
    share = control_.pending_share();
  }
  EXPECT_EQ(first, FlowRule::pending);
  EXPECT_LE(share, 0.01);
  EXPECT_DOUBLE_EQ(control_.limit_bytes_s(), kFlow * (1 - share));
  pending(64);
  EXPECT_GT(control_.pending_share(), share);
  EXPECT_LT(control_.pending_share(), 0.5);
  fill(64);
  fill(64);
  EXPECT_NEAR(control_.pending_share(), 0.5, 1e-9);  // log2 64 is half way from 4 to 8
  EXPECT_NEAR(control_.limit_bytes_s(), kFlow / 2, 1);
}

TEST_F(FlowControlPendingTest, BeyondTheHardLimitTheLeastRemains) {
  fill(1 << 20);
  fill(1 << 20);
  EXPECT_EQ(control_.pending_share(), 1);
  EXPECT_EQ(control_.limit_bytes_s(), 16.0 * 1024);
}

TEST_F(FlowControlPendingTest, BelowTheSoftLimitNothingIsLeftOfIt) {
  fill(64);
  fill(1);
  EXPECT_EQ(control_.pending_share(), 0);
  EXPECT_EQ(control_.limit_bytes_s(), kUnlimited);
}

// What writers reach under the share is no new base for it, or they would come to a halt.
TEST_F(FlowControlPendingTest, TheBaseIsTheFlowBeforeTheShare) {
  fill(64);
  for (int i = 0; i < 30; ++i) control_.record_flow(1000, tick());
  fill(64);
  EXPECT_NEAR(control_.limit_bytes_s(), kFlow / 2, 1);
}

TEST_F(FlowControlPendingTest, TheShareSlowsL0sLimitToo) {
  fill(64);
  fill(64);
  l0(21);
  for (int i = 0; i < 3; ++i) l0(21);
  EXPECT_NEAR(control_.limit_bytes_s(), 0.512 * kFlow / 2, 1);
}

// --- After a start

TEST(FlowControl, WhatIsOverItsLimitAtTheStartWaits) {
  FlowControl control({.soft_pending_bytes = 16, .hard_pending_bytes = 256});
  control.record_flow(kFlow, 0);
  const StallSignals high{.immutable_memtables = 8, .l0_files = 30, .pending_compaction_bytes = 300};
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(control.judge_memtables(high, i * kSecond), FlowRule::keep);
    EXPECT_EQ(control.judge_l0(high, i * kSecond), FlowRule::keep);
    EXPECT_EQ(control.judge_pending(high, i * kSecond), FlowRule::keep);
  }
  EXPECT_EQ(control.limit_bytes_s(), kUnlimited);
}

TEST(FlowControl, WhatRisesAfterTheStartCounts) {
  FlowControl control({});
  control.record_flow(kFlow, 0);
  control.judge_l0({.l0_files = 30}, kSecond);
  EXPECT_EQ(control.judge_l0({.l0_files = 33}, 2 * kSecond), FlowRule::l0_begin);
}

// --- Its settings

TEST(FlowControl, RefusesLimitsThatCross) {
  EXPECT_EQ(find_problem(FlowControlOptions{}), "");
  EXPECT_EQ(find_problem(FlowControlOptions{.soft_pending_bytes = 3, .hard_pending_bytes = 3}),
            "engine.flow_control.soft_pending_bytes is 3: choose less than engine.flow_control.hard_pending_bytes = 3");
  EXPECT_EQ(find_problem(FlowControlOptions{.least_bytes_s = 2, .most_bytes_s = 1}),
            "engine.flow_control.least_bytes_s is 2: choose 1 to engine.flow_control.most_bytes_s = 1");
  EXPECT_EQ(find_problem(FlowControlOptions{.least_bytes_s = 2, .most_bytes_s = 2}), "");
}

TEST(FlowControl, EveryRuleHasAName) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kFlowRules; ++i) names.emplace_back(name_of(static_cast<FlowRule>(i)));
  EXPECT_EQ(names,
            (std::vector<std::string>{"keep", "l0_begin", "l0_slower", "l0_end", "memtables_begin", "memtables_slower",
                                      "memtables_faster", "memtables_end", "memtables_repay", "pending"}));
}

}  // namespace
}  // namespace spillway::engine
