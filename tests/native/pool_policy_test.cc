// Policies alone, without a page or a device: the eviction order, and that visit_in_order() returns it.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "pool/policy.h"
#include "ssd/structures/random.h"

namespace spillway::pool {
namespace {

using Frames = std::vector<Frame>;

Frames order_of(const Policy& policy) {
  Frames order;
  policy.visit_in_order([&](Frame frame) {
    order.push_back(frame);
    return true;
  });
  return order;
}

std::optional<Frame> evict_any(Policy& policy) {
  return policy.evict([](Frame) { return true; });
}

std::unique_ptr<Policy> filled(std::unique_ptr<Policy> policy, Frame frames) {
  for (Frame frame = 0; frame < frames; ++frame) policy->loaded(frame, Arrival::demanded);
  return policy;
}

TEST(Lru, LeastRecentlyUsedIsEvictedFirst) {
  const auto policy = filled(make_lru(4), 4);
  policy->used(0);
  policy->used(2);
  EXPECT_EQ(order_of(*policy), (Frames{1, 3, 0, 2}));
  EXPECT_EQ(evict_any(*policy), 1U);
  EXPECT_EQ(order_of(*policy), (Frames{3, 0, 2}));
}

TEST(Lru, UnusedPrefetchedPagesAreEvictedFirst) {
  const auto policy = make_lru(3);
  policy->loaded(0, Arrival::demanded);
  policy->loaded(1, Arrival::demanded);
  policy->loaded(2, Arrival::prefetched);
  EXPECT_EQ(order_of(*policy), (Frames{2, 0, 1}));
  policy->used(2);
  EXPECT_EQ(order_of(*policy), (Frames{0, 1, 2}));
}

TEST(ClockSweep, EachUseKeepsAPageForOneMoreRound) {
  const auto policy = filled(make_clock_sweep(4, 5), 4);
  policy->used(0);
  policy->used(0);
  policy->used(1);
  EXPECT_EQ(order_of(*policy), (Frames{2, 3, 1, 0}));
  for (const Frame frame : {2U, 3U, 1U, 0U}) EXPECT_EQ(evict_any(*policy), frame);
  EXPECT_EQ(evict_any(*policy), std::nullopt);
}

TEST(ClockSweep, UsesCountUpToTheMost) {
  const auto policy = filled(make_clock_sweep(2, 3), 2);
  for (int i = 0; i < 100; ++i) policy->used(0);
  policy->used(1);
  policy->used(1);
  // Both counts are 3, so only the hand's position decides.
  EXPECT_EQ(order_of(*policy), (Frames{0, 1}));
}

TEST(ClockSweep, HandContinuesFromItsPosition) {
  const auto policy = filled(make_clock_sweep(4, 5), 4);
  EXPECT_EQ(evict_any(*policy), 0U);  // all counts are 0 by now, and the hand is at 1
  policy->loaded(0, Arrival::demanded);
  policy->used(1);
  EXPECT_EQ(order_of(*policy), (Frames{2, 3, 1, 0}));
}

TEST(ClockSweep, UnusedPrefetchedPagesBeginWithACountOfZero) {
  const auto policy = make_clock_sweep(3, 5);
  policy->loaded(0, Arrival::demanded);
  policy->loaded(1, Arrival::prefetched);
  policy->loaded(2, Arrival::demanded);
  EXPECT_EQ(order_of(*policy), (Frames{1, 0, 2}));
}

class EachPolicy : public testing::TestWithParam<const char*> {
 protected:
  static std::unique_ptr<Policy> make(Frame frames) { return std::move(*make_policy(GetParam(), frames)); }
};

TEST_P(EachPolicy, PinnedFramesStayUntilTheyMayGo) {
  const auto policy = filled(make(3), 3);
  std::set<Frame> pinned = {0, 1};
  const auto is_evictable = [&](Frame frame) { return !pinned.contains(frame); };
  EXPECT_EQ(policy->evict(is_evictable), 2U);
  EXPECT_EQ(policy->evict(is_evictable), std::nullopt);
  pinned = {0};
  EXPECT_EQ(policy->evict(is_evictable), 1U);
  EXPECT_EQ(order_of(*policy), Frames{0});
}

TEST_P(EachPolicy, VisitInOrderEndsOnRequest) {
  const auto policy = filled(make(8), 8);
  int seen = 0;
  policy->visit_in_order([&](Frame) { return ++seen < 3; });
  EXPECT_EQ(seen, 3);
}

// Law: after any history, evictions happen in the order of visit_in_order(), and visit_in_order() changes nothing.
TEST_P(EachPolicy, EvictsInTheOrderOfVisitInOrder) {
  constexpr Frame kFrames = 17;
  ssd::Random random(7);
  const auto policy = filled(make(kFrames), kFrames);
  std::deque<Frame> empty;
  for (int step = 0; step < 5000; ++step) {
    const auto frame = static_cast<Frame>(random.below(kFrames));
    const bool resident = std::find(empty.begin(), empty.end(), frame) == empty.end();
    if (resident && random.uniform() < 0.7) policy->used(frame);
    if (random.uniform() < 0.8 || empty.size() == kFrames) continue;
    const Frames foretold = order_of(*policy);
    ASSERT_EQ(foretold.size(), kFrames - empty.size());
    ASSERT_EQ(order_of(*policy), foretold);
    const std::size_t count = 1 + random.below(foretold.size());
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(evict_any(*policy), foretold[i]);
      empty.push_back(foretold[i]);
    }
    while (empty.size() > random.below(kFrames)) {
      policy->loaded(empty.front(), random.uniform() < 0.5 ? Arrival::demanded : Arrival::prefetched);
      empty.pop_front();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Pool, EachPolicy, testing::Values("lru", "clock-sweep"),
                         [](const auto& each) { return std::string(each.param) == "lru" ? "lru" : "clock_sweep"; });

TEST(Policies, UnknownOneIsRefusedWithTheNearest) {
  const auto made = make_policy("clock-swep", 4);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.status().message(), "policy \"clock-swep\" is not known; did you mean clock-sweep?");
}

}  // namespace
}  // namespace spillway::pool
