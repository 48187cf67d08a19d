// Arrivals of an open loop: each process against its known properties, alone and over several threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "load/arrivals.h"

namespace spillway::load {
namespace {

using Process = ArrivalSpec::Process;
constexpr std::int64_t kBegin = 5'000'000'000;
constexpr double kSecond = 1e9;

std::vector<double> seconds_until(const ArrivalSpec& spec, double end_s, std::uint32_t threads = 1,
                                  std::uint64_t seed = 1) {
  std::vector<double> all;
  for (std::uint32_t thread = 0; thread < threads; ++thread) {
    const auto arrivals = make_arrivals(spec, kBegin, thread, threads, seed + thread);
    std::int64_t last = kBegin;
    for (std::int64_t next = arrivals->next_ns(); next != Arrivals::kNever; next = arrivals->next_ns()) {
      EXPECT_GE(next, last) << "none before the one ahead of it";
      last = next;
      const double time_s = static_cast<double>(next - kBegin) / kSecond;
      if (time_s >= end_s) break;
      all.push_back(time_s);
    }
  }
  std::ranges::sort(all);
  return all;
}

ArrivalSpec of_rate(Process process, double rate) {
  ArrivalSpec spec;
  spec.process = process;
  spec.rate_ops_s = rate;
  return spec;
}

ArrivalSpec bursts(double rate, double burst_s, double gap_s, double gap_rate = 0) {
  ArrivalSpec spec = of_rate(Process::bursts, rate);
  spec.burst_s = burst_s;
  spec.gap_s = gap_s;
  spec.gap_rate_ops_s = gap_rate;
  return spec;
}

ArrivalSpec trace(std::vector<std::int64_t> times_ns) {
  ArrivalSpec spec = of_rate(Process::trace, 0);
  spec.times_ns = std::make_shared<const std::vector<std::int64_t>>(std::move(times_ns));
  return spec;
}

TEST(LoadArrivals, AConstantRateHasEqualGapsHoweverManyThreadsTakeTurns) {
  for (const std::uint32_t threads : {1U, 3U, 8U}) {
    const auto times = seconds_until(of_rate(Process::constant, 1000), 1.0, threads);
    ASSERT_EQ(times.size(), 1000U);
    for (std::size_t i = 0; i < times.size(); ++i) EXPECT_NEAR(times[i], static_cast<double>(i) / 1000, 1e-8);
  }
}

// Gaps of a Poisson process are exponential: mean and standard deviation are 1 / rate, and 1 / e of them are longer.
TEST(LoadArrivals, APoissonProcessHasExponentialGapsHoweverManyThreadsMakeIt) {
  for (const std::uint32_t threads : {1U, 7U}) {
    const auto times = seconds_until(of_rate(Process::poisson, 1000), 100.0, threads);
    const double count = static_cast<double>(times.size());
    EXPECT_NEAR(count, 100'000, 4 * std::sqrt(100'000)) << "four standard deviations";
    double sum_of_squares = 0;
    double longer = 0;
    for (std::size_t i = 1; i < times.size(); ++i) {
      const double gap = (times[i] - times[i - 1]) * 1000;
      sum_of_squares += gap * gap;
      longer += gap > 1 ? 1 : 0;
    }
    EXPECT_NEAR(sum_of_squares / count, 2, 0.06) << "four standard errors: sqrt(20 / 100000) each";
    EXPECT_NEAR(longer / count, std::exp(-1), 0.0062) << "the same: sqrt(0.2325 / 100000)";
  }
}

TEST(LoadArrivals, ThreadsOfAPoissonProcessDoNotArriveTogether) {
  const auto times = seconds_until(of_rate(Process::poisson, 1000), 10.0, 4);
  EXPECT_EQ(std::ranges::adjacent_find(times), times.end());
}

TEST(LoadArrivals, BurstsHaveTheirRateTheirLengthAndTheirGap) {
  for (const std::uint32_t threads : {1U, 4U}) {
    const auto times = seconds_until(bursts(1000, 0.5, 1.5), 8.0, threads);
    ASSERT_EQ(times.size(), 4U * 500);
    for (const double time_s : times) EXPECT_LT(std::fmod(time_s + 1e-9, 2.0), 0.5);
  }
  const auto with_base = seconds_until(bursts(1000, 0.5, 1.5, 10), 8.0);
  EXPECT_EQ(with_base.size(), 4U * (500 + 15));
}

// Three threads share a burst of one operation: two of them have no operation in it, and still end.
TEST(LoadArrivals, AThreadWithoutAnArrivalHasNone) {
  const auto times = seconds_until(bursts(1, 1, 1), 20.0, 3);
  EXPECT_EQ(times.size(), 10U);
}

TEST(LoadArrivals, ATraceIsSharedInTurnAndEnds) {
  const ArrivalSpec spec = trace({0, 0, 7, 1'000'000'000, 1'000'000'001});
  EXPECT_EQ(seconds_until(spec, 10.0, 2), (std::vector<double>{0, 0, 7e-9, 1.0, 1.000000001}));
  const auto second = make_arrivals(spec, kBegin, 1, 2, 1);
  EXPECT_EQ(second->next_ns(), kBegin);
  EXPECT_EQ(second->next_ns(), kBegin + 1'000'000'000);
  EXPECT_EQ(second->next_ns(), Arrivals::kNever);
}

// However many arrivals were returned before: those and the rest are all that come before the end.
TEST(LoadArrivals, TheRestIsWhatWasNotGiven) {
  std::vector<std::int64_t> times_ns;
  for (std::int64_t i = 0; i < 1000; ++i) times_ns.push_back(i * i * 10'000);
  for (const ArrivalSpec& spec :
       {of_rate(Process::constant, 100), bursts(300, 0.5, 0.7), bursts(300, 0.5, 0.7, 50), trace(times_ns)}) {
    for (const std::uint32_t threads : {1U, 3U}) {
      for (const double end_s : {0.0, 0.3003, 0.5003, 1.0003, 1.7003, 6.0503}) {
        const auto all = seconds_until(spec, end_s, threads).size();
        for (const int given : {0, 1, 5}) {
          std::uint64_t counted = 0;
          for (std::uint32_t thread = 0; thread < threads; ++thread) {
            const auto arrivals = make_arrivals(spec, kBegin, thread, threads, 1);
            const auto end_ns = kBegin + static_cast<std::int64_t>(end_s * kSecond);
            for (int i = 0; i < given; ++i) counted += arrivals->next_ns() < end_ns ? 1 : 0;
            counted += arrivals->rest_before(end_ns);
          }
          EXPECT_EQ(counted, all) << static_cast<int>(spec.process) << " " << threads << " " << end_s << " " << given;
        }
      }
    }
  }
}

TEST(LoadArrivals, TheRestOfAPoissonProcessIsDrawn) {
  double sum = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const auto arrivals = make_arrivals(of_rate(Process::poisson, 50), kBegin, 0, 1, seed);
    arrivals->next_ns();
    sum += 1 + static_cast<double>(arrivals->rest_before(kBegin + 2'000'000'000));
  }
  EXPECT_NEAR(sum / 400, 100, 4 * std::sqrt(100.0 / 400) + 0.1);
  const auto none = make_arrivals(of_rate(Process::poisson, 1), kBegin, 0, 1, 1);
  EXPECT_EQ(none->rest_before(kBegin - 1), 0U);
}

TEST(LoadArrivals, AnExtremelyLowRateArrivesAfterEveryPhase) {
  for (const Process process : {Process::constant, Process::poisson}) {
    for (const double rate : {std::numeric_limits<double>::denorm_min(), 1e-300, 1e-12}) {
      for (const std::uint32_t thread : {0U, 1U}) {
        const ArrivalSpec spec = of_rate(process, rate);
        ASSERT_EQ(find_problem(spec), "");
        const auto arrivals = make_arrivals(spec, kBegin, thread, 2, 1);
        const bool begins = process == Process::constant && thread == 0;
        if (begins) {
          EXPECT_EQ(arrivals->next_ns(), kBegin);
        }
        for (int more = 0; more < 3; ++more) {
          const std::int64_t next = arrivals->next_ns();
          EXPECT_GT(next, kBegin + std::int64_t{9'000'000'000'000'000'000});
          EXPECT_LT(next, Arrivals::kNever) << "the phase goes on until its end";
        }
        EXPECT_EQ(arrivals->rest_before(kBegin + 1'000'000'000), 0U);
      }
    }
  }
}

TEST(LoadArrivals, ImpossibleArrivalsAreRefused) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  ArrivalSpec constant_of_file = of_rate(Process::constant, 1);
  constant_of_file.times_ns = trace({1}).times_ns;
  ArrivalSpec trace_of_rate = trace({1});
  trace_of_rate.rate_ops_s = 1;
  ArrivalSpec constant_of_bursts = of_rate(Process::constant, 1);
  constant_of_bursts.burst_s = 1;
  const std::vector<std::pair<ArrivalSpec, std::string>> bad = {
      {ArrivalSpec(), "needs rate_ops_s"},
      {of_rate(Process::poisson, -1), "needs rate_ops_s"},
      {of_rate(Process::poisson, nan), "needs rate_ops_s"},
      {of_rate(Process::trace, 0), "needs it"},
      {constant_of_file, "belongs to the process trace"},
      {trace_of_rate, "remove rate_ops_s"},
      {constant_of_bursts, "belong to the process bursts"},
      {bursts(10, 0, 1), ".burst_s must be above 0"},
      {bursts(10, 1, 0), ".gap_s must be above 0"},
      {bursts(10, 1, nan), ".gap_s must be above 0"},
      {bursts(10, 1, 1, -1), ".gap_rate_ops_s must be 0"},
      {bursts(1, 0.1, 0.1, 1), "less than one operation"},
  };
  for (const auto& [spec, why] : bad) {
    EXPECT_NE(find_problem(spec).find(why), std::string::npos) << find_problem(spec) << " / " << why;
  }
  EXPECT_EQ(find_problem(bursts(10, 1, 1)), "");
  EXPECT_EQ(find_problem(trace({1})), "");
}

}  // namespace
}  // namespace spillway::load
