#include <gtest/gtest.h>
#include <rocksdb/db.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/factory/factory.h"
#include "engine/rocksdb/flow_control_runner.h"
#include "engine/rocksdb/policy.h"
#include "engine/rocksdb/token_bucket.h"
#include "engine/rocksdb/write_limiter.h"
#include "engine/writer_stalls.h"
#include "spill/compat/db_out.h"
#include "temporary_directory.h"

namespace spillway::engine {
namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::uint64_t kMiB = 1 << 20;

// --- The bucket

TEST(TokenBucket, UnlimitedTakesEverything) {
  TokenBucket bucket;
  EXPECT_TRUE(bucket.try_take(std::uint64_t{1} << 60, 0));
}

TEST(TokenBucket, IsRefilledEachMillisecond) {
  TokenBucket bucket;
  bucket.set_rate(1'000'000, 5 * kMs);  // 1000 bytes a refill
  EXPECT_FALSE(bucket.try_take(1, 6 * kMs - 1));
  EXPECT_TRUE(bucket.try_take(1000, 6 * kMs));
  EXPECT_FALSE(bucket.try_take(1, 7 * kMs - 1));
  EXPECT_TRUE(bucket.try_take(999, 7 * kMs));
  EXPECT_TRUE(bucket.try_take(1, 7 * kMs));
  EXPECT_FALSE(bucket.try_take(1, 7 * kMs));
}

TEST(TokenBucket, ALargeWriteIsADebt) {
  TokenBucket bucket;
  bucket.set_rate(1'000'000, 0);
  EXPECT_TRUE(bucket.try_take(4000, kMs));
  EXPECT_FALSE(bucket.try_take(1, 4 * kMs));
  EXPECT_TRUE(bucket.try_take(1, 5 * kMs));
}

TEST(TokenBucket, HoldsTenRefills) {
  TokenBucket bucket;
  bucket.set_rate(1'000'000, 0);
  EXPECT_TRUE(bucket.try_take(9999, 1000 * kMs));
  EXPECT_TRUE(bucket.try_take(1, 1000 * kMs));
  EXPECT_FALSE(bucket.try_take(1, 1000 * kMs));
}

TEST(TokenBucket, ANewRateCountsFromNowOn) {
  TokenBucket bucket;
  bucket.set_rate(1'000'000, 0);
  EXPECT_TRUE(bucket.try_take(5000, kMs));  // 4000 owed
  bucket.set_rate(4'000'000, 2 * kMs);      // 3000
  EXPECT_TRUE(bucket.try_take(1, 3 * kMs));
  bucket.set_rate(TokenBucket::kUnlimited, 3 * kMs);
  EXPECT_TRUE(bucket.try_take(1 << 30, 3 * kMs));
  bucket.set_rate(1'000'000, 100 * kMs);  // nothing is owed of that
  EXPECT_FALSE(bucket.try_take(1, 100 * kMs));
  EXPECT_TRUE(bucket.try_take(1, 101 * kMs));
}

// --- The limiter, in time that passes when somebody sleeps

class FakeClock final : public LimiterClock {
 public:
  std::int64_t now_ns() override { return now_ns_; }
  void sleep_until(std::int64_t time_ns) override {
    ++sleeps;
    longest_sleep_ns = std::max(longest_sleep_ns, time_ns - now_ns_);
    now_ns_ = time_ns;
  }

  std::int64_t sleeps = 0;
  std::int64_t longest_sleep_ns = 0;

 private:
  std::int64_t now_ns_ = 0;
};

TEST(WriteLimiter, WithoutALimitNobodyWaits) {
  FakeClock clock;
  WriteLimiter limiter(clock);
  for (int i = 0; i < 1000; ++i) limiter.admit(kMiB);
  EXPECT_EQ(clock.sleeps, 0);
  EXPECT_EQ(limiter.waits().count, 0U);
  EXPECT_EQ(limiter.take_admitted_bytes(), 1000 * kMiB);
  EXPECT_EQ(limiter.take_admitted_bytes(), 0U);
}

TEST(WriteLimiter, KeepsToItsLimitInSmallSteps) {
  FakeClock clock;
  WriteLimiter limiter(clock);
  limiter.set_limit(1'000'000);
  for (int i = 0; i < 100; ++i) limiter.admit(4000);  // 0.4 s of bytes; the last one's debt is not waited for
  EXPECT_EQ(clock.now_ns(), 397 * kMs);
  EXPECT_EQ(clock.longest_sleep_ns, kMs);
  const WriteLimiter::Waits waits = limiter.waits();
  EXPECT_EQ(waits.count, 100U);
  EXPECT_EQ(waits.ns, 397 * kMs);
  EXPECT_EQ(waits.longest_ns, 4 * kMs);
  EXPECT_EQ(limiter.take_admitted_bytes(), 400'000U);
}

// --- Threads, in time that passes when the test says so

class ManualClock final : public LimiterClock {
 public:
  std::int64_t now_ns() override { return now_ns_; }
  void sleep_until(std::int64_t time_ns) override {
    while (now_ns_ < time_ns) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  void advance(std::int64_t ns) { now_ns_ += ns; }

 private:
  std::atomic<std::int64_t> now_ns_{0};
};

// Writers of 4000 bytes at 1000 a millisecond, started one after the other behind a write that has just passed.
class WriteLimiterThreadsTest : public testing::Test {
 protected:
  static constexpr int kThreads = 4;

  void SetUp() override {
    limiter_.set_limit(1'000'000);
    clock_.advance(kMs);
    limiter_.admit(4000);
    for (int thread = 0; thread < kThreads; ++thread) {
      threads_.emplace_back([this, thread] {
        limiter_.admit(4000);
        const std::lock_guard lock(mutex_);
        order_.push_back(thread);
      });
      while (limiter_.waits().waiting < static_cast<std::uint64_t>(thread + 1)) std::this_thread::yield();
    }
  }
  void join() {
    for (std::thread& thread : threads_) thread.join();
  }
  std::vector<int> order() {
    const std::lock_guard lock(mutex_);
    return order_;
  }

  ManualClock clock_;
  WriteLimiter limiter_{clock_};
  std::mutex mutex_;
  std::vector<int> order_;
  std::vector<std::thread> threads_;
};

TEST_F(WriteLimiterThreadsTest, TheFirstToComeIsTheFirstToWrite) {
  std::vector<int> wanted;
  for (int thread = 0; thread < kThreads; ++thread) {
    EXPECT_EQ(order(), wanted);
    clock_.advance(4 * kMs);  // for one of them
    while (order().size() < static_cast<std::size_t>(thread + 1)) std::this_thread::yield();
    wanted.push_back(thread);
    EXPECT_EQ(order(), wanted);
  }
  join();
  const WriteLimiter::Waits waits = limiter_.waits();
  EXPECT_EQ(waits.count, 4U);
  EXPECT_EQ(waits.waiting, 0U);
  EXPECT_EQ(waits.longest_ns, 16 * kMs);
}

TEST_F(WriteLimiterThreadsTest, ALimitThatIsLiftedLetsThemGoWithinAMillisecond) {
  limiter_.set_limit(TokenBucket::kUnlimited);
  clock_.advance(kMs);
  join();
  EXPECT_EQ(limiter_.waits().longest_ns, kMs);
}

TEST_F(WriteLimiterThreadsTest, ALowerLimitHoldsForThoseThatWait) {
  limiter_.set_limit(1000);  // what is owed now takes three seconds
  clock_.advance(1000 * kMs);
  EXPECT_EQ(limiter_.waits().waiting, 4U);
  limiter_.set_limit(1'000'000);
  while (limiter_.waits().waiting > 0) {
    clock_.advance(kMs);
    std::this_thread::yield();
  }
  join();
}

TEST_F(WriteLimiterThreadsTest, StopLetsThemGoAndNobodyWaitsAnyMore) {
  limiter_.stop();
  clock_.advance(kMs);
  join();
  limiter_.set_limit(1);  // stays without effect
  limiter_.admit(1'000'000);
  limiter_.admit(1'000'000);
  EXPECT_EQ(limiter_.waits().count, 4U);
  EXPECT_EQ(limiter_.limit_bytes_s(), TokenBucket::kUnlimited);
}

// --- On a store

TEST(Policy, FlowControlPutsRocksdbsStallsOutOfReach) {
  const TemporaryDirectory temporary;
  rocksdb::Options options;
  options.create_if_missing = true;
  options.write_buffer_size = kMiB;
  auto policy = make_policy({.directory = {}, .options = {}, .settings = {{"policy", "flow-control"}}});
  ASSERT_TRUE(policy);
  rocksdb::DB* opened = nullptr;
  ASSERT_TRUE((*policy)->open(options, temporary.path("db"), &opened).ok());
  const std::unique_ptr<rocksdb::DB> db(opened);
  const rocksdb::Options own = db->GetOptions();
  EXPECT_GE(own.level0_slowdown_writes_trigger, 1 << 30);
  EXPECT_GE(own.level0_stop_writes_trigger, 1 << 30);
  EXPECT_EQ(own.soft_pending_compaction_bytes_limit, 0U);
  EXPECT_EQ(own.hard_pending_compaction_bytes_limit, 0U);
  EXPECT_EQ(own.max_write_buffer_number, 40);
  (*policy)->stop();
}

// A runner whose store has more files in L0 than it allows, and which has seen a flow.
class FlowControlRunnerTest : public testing::Test {
 protected:
  void SetUp() override {
    rocksdb::Options options;
    options.create_if_missing = true;
    options.disable_auto_compactions = true;
    options.listeners.push_back(runner_);
    rocksdb::DB* opened = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open(options, temporary_.path("db"), spill::DbOut(&opened)).ok());
    db_.reset(opened);
    runner_->start(opened);
  }
  void TearDown() override { runner_->stop(); }

  void flush_one() {
    runner_->before_write(1000);
    ASSERT_TRUE(db_->Put({}, "key", "value").ok());
    ASSERT_TRUE(db_->Flush({}).ok());
  }

  TemporaryDirectory temporary_;
  std::shared_ptr<FlowControlRunner> runner_ =
      std::make_shared<FlowControlRunner>(FlowControlOptions{.l0_files = 2}, std::chrono::milliseconds(1));
  std::unique_ptr<rocksdb::DB> db_;
};

TEST_F(FlowControlRunnerTest, LimitsWritesWhileL0IsFullAndNoLonger) {
  constexpr int kMostFlushes = 1000;  // the third is over the limit, and a flow is known after a tick
  for (int i = 0; i < kMostFlushes && runner_->limit_bytes_s() == 0; ++i) flush_one();
  EXPECT_GT(runner_->limit_bytes_s(), 0U);
  EXPECT_EQ(runner_->counters().at("flow_control.l0_begin"), 1U);
  const auto events = runner_->take_events();
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.front().name, "flow_control");
  EXPECT_EQ(events.front().message, "l0_begin");
  EXPECT_EQ(events.front().figures.front().first, "limit_mb_s");
  EXPECT_GT(events.front().figures.front().second, 0);

  ASSERT_TRUE(db_->CompactRange({}, nullptr, nullptr).ok());
  while (runner_->counters().at("flow_control.l0_end") == 0) std::this_thread::yield();
  EXPECT_EQ(runner_->limit_bytes_s(), 0U);
}

TEST_F(FlowControlRunnerTest, StopEndsAWaitAndTheLimit) {
  constexpr int kMostFlushes = 1000;
  for (int i = 0; i < kMostFlushes && runner_->limit_bytes_s() == 0; ++i) flush_one();
  ASSERT_GT(runner_->limit_bytes_s(), 0U);
  runner_->before_write(std::uint64_t{1} << 50);  // a debt of years
  std::thread writer([&] { runner_->before_write(1); });
  runner_->stop();
  writer.join();
  runner_->before_write(1);
  EXPECT_EQ(runner_->limit_bytes_s(), 0U);
}

// The load takes a put's time around the engine's call, so that what the limiter takes has to lie within it.
TEST(FlowControlEngine, AWaitIsAPartOfTheWrite) {
  const TemporaryDirectory temporary;
  const std::string directory = temporary.path("db");
  auto engine = open_engine(
      {.directory = directory,
       .options = {{"disable_auto_compactions", "true"}},
       .settings = {
           {"policy", "flow-control"}, {"flow_control.l0_files", "1"}, {"flow_control.least_bytes_s", "100000"}}});
  ASSERT_TRUE(engine) << engine.status().message();
  const std::string value(1000, 'v');
  std::int64_t in_writes_ns = 0;
  std::uint64_t waits = 0;
  constexpr int kWritesAFlush = 20;
  constexpr int kMostFlushes = 20'000;  // a flow is known after a second
  for (int i = 0; i < kMostFlushes && waits < 3; ++i) {
    for (int write = 0; write < kWritesAFlush; ++write) {
      const std::int64_t began_ns = steady_now_ns();
      if (write % 2 == 0) {
        ASSERT_TRUE((*engine)->put("key", value));
      } else {
        const Write batch[] = {{.key = "key", .value = value}, {.key = "other", .value = value}};
        ASSERT_TRUE((*engine)->write(batch));
      }
      in_writes_ns += steady_now_ns() - began_ns;
    }
    ASSERT_TRUE((*engine)->flush());
    waits = (*engine)->statistics().at("flow_control.waits");
  }
  EXPECT_GE(waits, 3U);
  const auto statistics = (*engine)->statistics();
  EXPECT_GT(statistics.at("flow_control.wait_us"), 0U);
  EXPECT_GE(in_writes_ns / 1000, static_cast<std::int64_t>(statistics.at("flow_control.wait_us")));
  EXPECT_GT((*engine)->observe().gauge("write_limit_bytes_s"), 0U);
  EXPECT_FALSE((*engine)->take_events().empty());
  EXPECT_TRUE((*engine)->close());
}

}  // namespace
}  // namespace spillway::engine
