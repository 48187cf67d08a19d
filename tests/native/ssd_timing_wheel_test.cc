#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

#include "ssd/structures/random.h"
#include "ssd/structures/timing_wheel.h"

namespace spillway::ssd {
namespace {

constexpr std::int64_t kLongest = 3'800'000;
constexpr std::uint32_t kPayloads = 300;

// Adds and takes events at random, compared with a sorted map.
void compare_with_sorted_map(std::uint64_t seed, std::int64_t furthest, std::uint32_t pending_at_most) {
  Random random(mix(seed));
  TimingWheel wheel(kLongest);
  std::multimap<std::int64_t, std::uint32_t> sorted;  // equal keys keep the order of insertion
  std::vector<std::uint32_t> unused;
  for (std::uint32_t payload = 0; payload < kPayloads; ++payload) unused.push_back(payload);
  std::int64_t now = 0;
  for (int step = 0; step < 20'000; ++step) {
    if (sorted.empty() || (sorted.size() < pending_at_most && random.below(2) == 0)) {
      const std::size_t which = random.below(unused.size());
      std::swap(unused[which], unused.back());
      // Coarse times, so that some are equal.
      const std::int64_t time =
          now + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(furthest))) / 512 * 512;
      wheel.push(now, time, unused.back());
      sorted.emplace(time, unused.back());
      unused.pop_back();
    } else {
      ASSERT_EQ(wheel.next_time(), sorted.begin()->first);
      now = sorted.begin()->first;
      ASSERT_EQ(wheel.next(), sorted.begin()->second);
      ASSERT_EQ(wheel.take(), sorted.begin()->second);
      unused.push_back(sorted.begin()->second);
      sorted.erase(sorted.begin());
      // Sometimes nothing happens for a long time.
      if (sorted.empty() && random.below(4) == 0) now += 1'000'000'000;
    }
  }
}

TEST(TimingWheel, TakesEventsInOrderOfTimeAndThenOfAddition) { compare_with_sorted_map(1, kLongest, 100); }

TEST(TimingWheel, TakesManyEventsOfOneBucketInOrder) { compare_with_sorted_map(2, 4096, kPayloads); }

TEST(TimingWheel, TakesEventsBeyondTheRingInOrder) { compare_with_sorted_map(3, 20 * kLongest, 100); }

TEST(TimingWheel, TakesFewEventsInOrder) { compare_with_sorted_map(4, 3 * kLongest, 2); }

TEST(TimingWheel, IsEmptyWhenAllIsTaken) {
  TimingWheel wheel(kLongest);
  EXPECT_EQ(wheel.next_time(), TimingWheel::kNever);
  wheel.push(5, 7, 0);
  EXPECT_EQ(wheel.next_time(), 7);
  EXPECT_EQ(wheel.take(), 0U);
  EXPECT_EQ(wheel.next_time(), TimingWheel::kNever);
}

}  // namespace
}  // namespace spillway::ssd
