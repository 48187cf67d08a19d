// Samples, stalls and events of a scripted engine, at scripted times.
#include <gtest/gtest.h>

#include <vector>

#include "load/recorder.h"
#include "load_fakes.h"

namespace spillway::load {
namespace {

constexpr std::int64_t kMs = 1'000'000;

class RecorderTest : public ::testing::Test {
 protected:
  engine::Stall stall(std::int64_t begin_ns, std::int64_t end_ns) const {
    return {begin_ + begin_ns, begin_ + end_ns, engine::StallState::stopped, engine::RocksdbCause::memtable};
  }

  testing::ManualClock clock_;
  testing::FakeEngine engine_;
  const std::int64_t begin_ = clock_.now_ns();
  std::uint64_t space_ = 0;
  Recorder recorder_{{engine_, nullptr, [this] { return space_; }}, clock_};
};

TEST_F(RecorderTest, SamplesFollowOneAnotherWithoutAGap) {
  Tally tally;
  clock_.advance(3 * kMs);
  space_ = 17;
  const Sample first = recorder_.sample(tally);
  clock_.advance(5 * kMs);
  space_ = 4;
  const Sample second = recorder_.sample(tally);
  EXPECT_EQ(first.begin_ns, 0);
  EXPECT_EQ(first.end_ns, 3 * kMs);
  EXPECT_EQ(second.begin_ns, first.end_ns);
  EXPECT_EQ(second.end_ns, 8 * kMs);
  EXPECT_EQ(first.space_bytes, 17U);
  EXPECT_EQ(second.space_bytes, 4U);
  EXPECT_EQ(first.tally, &tally);
  EXPECT_FALSE(first.drive) << "there is no drive";
}

TEST_F(RecorderTest, AStallIsSplitAmongTheSamplesThatItSpans) {
  engine_.script = [this] { return std::vector{stall(2 * kMs, 7 * kMs)}; };
  Tally tally;
  clock_.advance(3 * kMs);
  const StallTime first = recorder_.sample(tally).stall_time;
  clock_.advance(5 * kMs);
  const StallTime second = recorder_.sample(tally).stall_time;
  EXPECT_EQ(first.of(engine::RocksdbCause::memtable), 1 * kMs);
  EXPECT_EQ(second.of(engine::RocksdbCause::memtable), 4 * kMs);
  EXPECT_EQ(first.begun, 1U);
  EXPECT_EQ(second.begun, 0U);
}

TEST_F(RecorderTest, EachStallIsReturnedOnceAndOneInProgressOnlyWhenAllAreAskedFor) {
  engine_.script = [this] { return std::vector{stall(0, 1 * kMs), stall(2 * kMs, clock_.now_ns() - begin_ + kMs)}; };
  clock_.advance(3 * kMs);
  const std::vector<engine::Stall> ended = recorder_.new_stalls(false);
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].begin_ns, 0) << "since the run's start";
  EXPECT_EQ(ended[0].end_ns, 1 * kMs);
  EXPECT_TRUE(recorder_.new_stalls(false).empty());
  const std::vector<engine::Stall> rest = recorder_.new_stalls(true);
  ASSERT_EQ(rest.size(), 1U);
  EXPECT_EQ(rest[0].begin_ns, 2 * kMs);
  EXPECT_TRUE(recorder_.new_stalls(true).empty());
}

TEST_F(RecorderTest, EventsCountFromTheRunsStart) {
  engine_.events = {{.at_ns = begin_ + 2 * kMs, .name = "adoc.jobs", .figures = {}, .message = {}}};
  const std::vector<engine::Event> events = recorder_.new_events();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].at_ns, 2 * kMs);
  EXPECT_TRUE(recorder_.new_events().empty());
}

}  // namespace
}  // namespace spillway::load
