#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <vector>

#include "load/worker.h"
#include "load_fakes.h"

namespace spillway::load {
namespace {

using testing::FakeEngine;
using testing::ManualClock;

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// One worker on a store that needs `service_ns` per operation, and 200 ms for operation `slow`.
class LoadWorker : public ::testing::Test {
 protected:
  static constexpr std::int64_t kStallNs = 200 * kMs;

  LoadWorker() {
    engine_.before = [this](std::uint64_t index) {
      clock_.advance(index == slow_ ? kStallNs : service_ns_);
      return index == failing_ ? Status::io_error("scripted") : Status::ok();
    };
    thread_spec_.pattern = Pattern::put_uniform;
    thread_spec_.seed = 1;
  }

  Status run(std::int64_t deadline_ns = kNever) {
    worker_ = std::make_unique<Worker>(WorkerContext{engine_, clock_, pairs_, values_}, thread_spec_);
    begin_ns_ = clock_.now_ns();
    return worker_->run(begin_ns_, deadline_ns, stop_);
  }

  Tally taken() {
    Tally tally;
    worker_->take(tally);
    return tally;
  }

  ManualClock clock_;
  FakeEngine engine_;
  PairSpec pairs_{16, 100, 0.5, 1000};
  ValueBuffer values_{pairs_, 1};
  ThreadSpec thread_spec_;
  std::atomic<bool> stop_{false};
  std::int64_t service_ns_ = 10'000;
  std::uint64_t slow_ = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t failing_ = std::numeric_limits<std::uint64_t>::max();
  std::int64_t begin_ns_ = 0;
  std::unique_ptr<Worker> worker_;
};

std::uint64_t count_above(const Histogram& histogram, std::int64_t ns) {
  // The smallest share of values at or below `ns`, by bisection, because the histogram does not count it.
  double low = 0;
  double high = 1;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (histogram.quantile_ns(middle) <= static_cast<double>(ns) ? low : high) = middle;
  }
  return histogram.count() - static_cast<std::uint64_t>(low * static_cast<double>(histogram.count()) + 0.5);
}

TEST_F(LoadWorker, ClosedLoopSeesAStallOnce) {
  thread_spec_.operations = 1000;
  slow_ = 100;
  ASSERT_TRUE(run());
  const Tally tally = taken();
  EXPECT_EQ(tally.writes(), 1000U);
  EXPECT_EQ(tally.write_latency.max_ns(), static_cast<std::uint64_t>(kStallNs));
  EXPECT_EQ(count_above(tally.write_latency, kMs), 1U);
}

// At 1000 operations a second, a stall of 200 ms delays the operation that it meets and the 199 that are due during it.
// Then the store, which needs 10 us for each, works them off at one per 10 us while one becomes due per 1000 us.
TEST_F(LoadWorker, OpenLoopCountsAStallForEveryDelayedOperation) {
  thread_spec_.operations = 1000;
  thread_spec_.arrivals.emplace().rate_ops_s = 1000;
  slow_ = 100;
  ASSERT_TRUE(run());
  const Tally tally = taken();
  EXPECT_EQ(tally.writes(), 1000U);
  EXPECT_EQ(tally.write_latency.max_ns(), static_cast<std::uint64_t>(kStallNs));
  // The k-th delayed one waits 200 ms - 0.99 k ms: above 1 ms for k = 0 … 201.
  EXPECT_EQ(count_above(tally.write_latency, kMs + kMs / 50), 201U);
  // Half of them wait for more than half the stall.
  EXPECT_NEAR(static_cast<double>(count_above(tally.write_latency, 100 * kMs)), 101, 2);
  // An operation that was not delayed takes the store's time.
  EXPECT_NEAR(tally.write_latency.quantile_ns(0.5), 10'000, 10'000.0 / 64);
  // The rate is kept over the whole phase: the stall delays operations, and does not remove them.
  EXPECT_EQ(clock_.now_ns() - begin_ns_, 999 * kMs + service_ns_);
  EXPECT_EQ(worker_->not_started(), 0U);
  // Only an idle thread can wake up late. It was not idle before the first operation, due at once, nor before the 202
  // that were due before the delayed ones were worked off.
  EXPECT_EQ(tally.start_lag.count(), 1000U - 1 - 202);
  EXPECT_EQ(tally.start_lag.max_ns(), 0U) << "this clock wakes it in time";
}

TEST_F(LoadWorker, OversleepingIsInTheLatencyAndKnownAsSuch) {
  thread_spec_.operations = 10;
  thread_spec_.arrivals.emplace().rate_ops_s = 1000;
  clock_.oversleep(70'000);
  ASSERT_TRUE(run());
  const Tally tally = taken();
  EXPECT_EQ(tally.start_lag.count(), 9U);
  EXPECT_EQ(tally.start_lag.max_ns(), 70'000U);
  EXPECT_EQ(tally.write_latency.max_ns(), 80'000U);
}

TEST_F(LoadWorker, OpenLoopCountsOperationsNotStartedBeforeItsDeadline) {
  thread_spec_.arrivals.emplace().rate_ops_s = 1000;
  slow_ = 100;
  ASSERT_TRUE(run(clock_.now_ns() + 250 * kMs));
  // 100 operations up to the stall, the stalled one, ends at 300 ms, past the deadline: those due at 101 … 249 ms wait.
  EXPECT_EQ(worker_->finished(), 101U);
  EXPECT_EQ(worker_->not_started(), 149U);
}

TEST_F(LoadWorker, ThreadsOfAnOpenLoopTakeTurns) {
  thread_spec_.operations = 1;
  thread_spec_.arrivals.emplace().rate_ops_s = 400;  // of four threads
  thread_spec_.thread = 1;
  thread_spec_.threads = 4;
  ASSERT_TRUE(run());
  EXPECT_EQ(clock_.now_ns() - begin_ns_, 10 * kMs / 4 + service_ns_);
}

// A late arrival waits for its turn. Its latency starts at its arrival.
TEST_F(LoadWorker, ArrivalsOfATraceEndItAndLateOnesWait) {
  thread_spec_.arrivals.emplace().process = ArrivalSpec::Process::trace;
  thread_spec_.arrivals->times_ns =
      std::make_shared<const std::vector<std::int64_t>>(std::vector<std::int64_t>{0, 0, 0, 5 * kMs});
  ASSERT_TRUE(run());
  EXPECT_EQ(worker_->finished(), 4U);
  EXPECT_EQ(clock_.now_ns() - begin_ns_, 5 * kMs + service_ns_);
  EXPECT_EQ(taken().write_latency.max_ns(), 3U * 10'000) << "the third of those that arrived together";
  EXPECT_EQ(worker_->not_started(), 0U);
}

TEST_F(LoadWorker, EndsAtItsDeadlineOrItsCountWhicheverIsFirst) {
  thread_spec_.operations = 1000;
  ASSERT_TRUE(run(clock_.now_ns() + 500 * service_ns_));
  EXPECT_EQ(worker_->finished(), 500U);
  ASSERT_TRUE(run(clock_.now_ns() + 5000 * service_ns_));
  EXPECT_EQ(worker_->finished(), 1000U);
}

TEST_F(LoadWorker, StopsWhenAskedTo) {
  engine_.before = [this](std::uint64_t index) {
    if (index == 9) stop_ = true;
    return Status::ok();
  };
  ASSERT_TRUE(run());
  EXPECT_EQ(worker_->finished(), 10U) << "what has begun is finished and counted";
}

TEST_F(LoadWorker, StopsWhileItSleeps) {
  thread_spec_.arrivals.emplace().rate_ops_s = 0.001;
  thread_spec_.thread = 1;
  thread_spec_.threads = 2;
  stop_ = true;
  ASSERT_TRUE(run());
  EXPECT_EQ(worker_->finished(), 0U);
  EXPECT_EQ(clock_.now_ns(), begin_ns_);
}

TEST_F(LoadWorker, FailedOperationEndsItAndIsNotCounted) {
  failing_ = 5;
  const Status status = run();
  EXPECT_EQ(status.fault(), Fault::io_error);
  EXPECT_EQ(status.message(), "scripted");
  EXPECT_EQ(taken().writes(), 5U);
  EXPECT_EQ(worker_->finished(), 5U);
}

TEST_F(LoadWorker, CountsPairsFoundAndMissed) {
  pairs_.num = 10;
  thread_spec_.pattern = Pattern::put_sequential;
  thread_spec_.operations = 5;
  ASSERT_TRUE(run());
  thread_spec_.pattern = Pattern::get_uniform;
  thread_spec_.operations = 1000;
  ASSERT_TRUE(run());
  const Tally tally = taken();
  EXPECT_EQ(tally.reads(), 1000U);
  EXPECT_EQ(tally.writes(), 0U);
  EXPECT_EQ(tally.pairs_read + tally.not_found, 1000U);
  EXPECT_NEAR(static_cast<double>(tally.pairs_read), 500, 80);  // 5 standard deviations
}

TEST_F(LoadWorker, EachTakeHasOnlyWhatIsNew) {
  thread_spec_.operations = 7;
  ASSERT_TRUE(run());
  EXPECT_EQ(taken().writes(), 7U);
  EXPECT_EQ(taken().writes(), 0U);
}

// The handover between two threads: nothing is lost or counted twice, at whatever time the buffer is taken.
TEST(DoubleBufferedTally, LosesNothing) {
  constexpr std::uint64_t kRecords = 200'000;
  DoubleBufferedTally shared;
  std::atomic<bool> done{false};
  std::thread worker([&] {
    for (std::uint64_t i = 0; i < kRecords; ++i) {
      shared.record([](Tally& tally) { tally.write_latency.record(5); });
    }
    done = true;
  });
  Tally sum;
  while (!done) shared.take(sum);
  worker.join();
  shared.take(sum);
  EXPECT_EQ(sum.writes(), kRecords);
}

}  // namespace
}  // namespace spillway::load
