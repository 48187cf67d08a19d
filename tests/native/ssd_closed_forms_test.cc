// Garbage collection against its analytic solutions (Xiang and Kurkoski 2011, Desnoyers 2014, Van Houdt 2013). Uniform
// random single-page overwrites of all logical pages; one mapping unit is one flash page.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>

#include "needs.h"
#include "ssd/gc/steady_distribution.h"
#include "ssd/ssd.h"
#include "ssd/structures/random.h"

namespace spillway::ssd {
namespace {

// Principal branch of Lambert's W for -1/e < x < 0, by bisection of w e^w = x on (-1, 0).
double lambert_w0(double x) {
  double low = -1;
  double high = 0;
  for (int i = 0; i < 200; ++i) {
    const double w = (low + high) / 2;
    (w * std::exp(w) < x ? low : high) = w;
  }
  return (low + high) / 2;
}

double fifo_closed_form(double alpha) { return alpha / (alpha + lambert_w0(-alpha * std::exp(-alpha))); }

double greedy_closed_form(double alpha, double b) {
  const double k = (1 + 1 / (2 * b)) * alpha;
  const double x0 = 0.5 - b / alpha * lambert_w0(-k * std::exp(-k));
  return b / (b - (x0 - 1));
}

// A = 1 / (c rho), and c from the top class: c b m_b = 1 - (1 - (1 - m_b))^d ... i.e. c = (1 - S_b^d) / (b m_b).
double d_choices_closed_form(double rho, std::uint32_t b, double d) {
  const auto m = d_choices_distribution(rho, b, d);
  const double c = (1 - std::pow(m[b], d)) / (b * m[b]);
  return 1 / (c * rho);
}

// Two traffic classes under FIFO: A = sum r_k / (1 - exp(-r_k alpha / (f_k A))).
double fifo_classes_closed_form(double alpha, double hot_space, double hot_traffic) {
  const auto class_term = [&](double r, double f, double a) { return r / (1 - std::exp(-r * alpha / (f * a))); };
  double low = 1;
  double high = 100;
  for (int i = 0; i < 200; ++i) {
    const double a = (low + high) / 2;
    const double right = class_term(hot_traffic, hot_space, a) + class_term(1 - hot_traffic, 1 - hot_space, a);
    (right > a ? low : high) = a;
  }
  return (low + high) / 2;
}

SsdConfig drive(double spare_factor, GcPolicy policy, std::uint32_t b, std::uint32_t choices = 10) {
  SsdConfig config;
  config.geometry.channels = 4;
  config.geometry.dies_per_chip = 1;
  config.geometry.pages_per_block = b;
  config.capacity.capacity_bytes = std::uint64_t{4096} * 4096 * b;  // 4096 erase blocks of data
  config.capacity.spare_factor = spare_factor;
  config.gc.policy = policy;
  config.gc.separate_streams = policy != GcPolicy::fifo;  // FIFO has one log
  config.gc.choices = choices;
  return config;
}

double write_amplification(const Counters& counters, std::uint64_t host_units) {
  return static_cast<double>(counters.nand_bytes_programmed_total()) / 4096.0 / static_cast<double>(host_units);
}

// Overwrites `warmup` times the drive, and then `capacities` times. Returns the write amplification of the latter.
template <typename NextUnit>
double measure(const SsdConfig& config, double warmup, double capacities, NextUnit next_unit) {
  Ssd ssd(config, 1);
  const std::uint64_t units = ssd.layout().logical_units;
  ssd.assume_steady(units);
  const auto overwrite = [&](double times) {
    const auto count = static_cast<std::uint64_t>(times * static_cast<double>(units));
    for (std::uint64_t i = 0; i < count; ++i) ssd.overwrite(next_unit(units));
    return count;
  };
  overwrite(warmup);
  ssd.reset_counters();
  const std::uint64_t written = overwrite(capacities);
  EXPECT_EQ(ssd.audit(), std::nullopt);
  return write_amplification(ssd.counters(), written);
}

double measure_uniform(const SsdConfig& config) {
  Random random(42);
  return measure(config, 0.5, 2.0, [&random](std::uint64_t units) { return random.below(units); });
}

TEST(ClosedForms, AgreeWithThePublishedTable) {
  EXPECT_NEAR(fifo_closed_form(1 / 0.93), 7.318, 0.001);
  EXPECT_NEAR(fifo_closed_form(1.07), 7.817, 0.001);
  EXPECT_NEAR(greedy_closed_form(1 / 0.93, 64), 6.600, 0.001);
  EXPECT_NEAR(greedy_closed_form(1 / 0.8, 256), 2.668, 0.001);
  EXPECT_NEAR(d_choices_closed_form(0.93, 64, 10), 6.894, 0.001);
  EXPECT_NEAR(d_choices_closed_form(0.8, 64, 10), 2.675, 0.001);
  EXPECT_NEAR(d_choices_closed_form(0.6, 64, 10), 1.487, 0.001);
  EXPECT_NEAR(d_choices_closed_form(0.8, 64, 1), 1 / 0.2, 0.001);
  EXPECT_NEAR(fifo_write_amplification(0.8), 2.693, 0.001);
}

class SpareFactor : public testing::TestWithParam<double> {};

TEST_P(SpareFactor, FifoWithinOnePercent) {
  const double wa = measure_uniform(drive(GetParam(), GcPolicy::fifo, 64));
  const double expected = fifo_closed_form(1 / (1 - GetParam()));
  EXPECT_NEAR(wa, expected, 0.01 * expected);
}

TEST_P(SpareFactor, GreedyWithinOnePercent) {
  for (const std::uint32_t b : {64U, 128U, 256U}) {
    const double wa = measure_uniform(drive(GetParam(), GcPolicy::greedy, b));
    const double expected = greedy_closed_form(1 / (1 - GetParam()), b);
    EXPECT_NEAR(wa, expected, 0.01 * expected) << "b = " << b;
  }
}

TEST_P(SpareFactor, DChoicesWithinOnePercent) {
  for (const std::uint32_t d : {1U, 2U, 10U}) {
    const double wa = measure_uniform(drive(GetParam(), GcPolicy::d_choices, 64, d));
    const double expected = d == 1 ? 1 / GetParam() : d_choices_closed_form(1 - GetParam(), 64, d);
    EXPECT_NEAR(wa, expected, 0.01 * expected) << "d = " << d;
  }
}

// With more classes the start is forgotten more slowly: the cold pages need many capacities of writes to spread.
TEST_P(SpareFactor, TwoTrafficClassesUnderFifoWithinOneAndAHalfPercent) {
  for (const auto& [space, traffic] : {std::pair{0.1, 0.9}, std::pair{0.2, 0.8}, std::pair{0.05, 0.5}}) {
    Random random(7);
    const double wa = measure(drive(GetParam(), GcPolicy::fifo, 64), 6.0, 4.0,
                              [&random, s = space, t = traffic](std::uint64_t units) {
                                const auto hot = static_cast<std::uint64_t>(s * static_cast<double>(units));
                                return random.uniform() < t ? random.below(hot) : hot + random.below(units - hot);
                              });
    const double expected = fifo_classes_closed_form(1 / (1 - GetParam()), space, traffic);
    EXPECT_NEAR(wa, expected, 0.015 * expected) << "hot space " << space << ", hot traffic " << traffic;
  }
}

INSTANTIATE_TEST_SUITE_P(ClosedForms, SpareFactor, testing::Values(0.07, 0.125, 0.2, 0.28, 0.4));

// The same with commands in time, on which the decisions do not depend.
TEST(ClosedForms, HoldForCommandsInTime) {
  SsdConfig config = drive(0.2, GcPolicy::greedy, 64);
  Ssd ssd(config, 3);
  const std::uint64_t units = ssd.layout().logical_units;
  ssd.assume_steady(units);
  ssd.reset_counters();
  Random random(5);
  std::vector<Completion> done;
  std::uint64_t submitted = 0;
  const std::uint64_t wanted = units;
  const auto submit = [&](Nanos now) {
    Command write;
    write.op = Opcode::write;
    write.lba = random.below(units) * 8;
    write.lba_count = 8;
    ssd.submit(now, write);
    ++submitted;
  };
  for (int i = 0; i < 32; ++i) submit(0);
  while (const auto time = ssd.next_event()) {
    done.clear();
    ssd.advance(*time, done);
    for (std::size_t i = 0; i < done.size() && submitted < wanted; ++i) submit(*time);
  }
  EXPECT_EQ(ssd.audit(), std::nullopt);
  EXPECT_EQ(ssd.counters().host_bytes_written, wanted * 4096);
  const double expected = greedy_closed_form(1 / 0.8, 64);
  EXPECT_NEAR(write_amplification(ssd.counters(), wanted), expected, 0.01 * expected);
}

// A law: more spare space never increases the steady drive's writes.
TEST(ClosedForms, MoreSpareSpaceNeverRaisesWriteAmplification) {
  SPILLWAY_LONG_TEST();
  for (const GcPolicy policy : {GcPolicy::greedy, GcPolicy::fifo, GcPolicy::d_choices, GcPolicy::cost_benefit}) {
    double previous = 1e9;
    for (const double spare : {0.05, 0.1, 0.2, 0.3, 0.5}) {
      const double wa = measure_uniform(drive(spare, policy, 64));
      EXPECT_LT(wa, previous) << "policy " << static_cast<int>(policy) << ", spare factor " << spare;
      previous = wa;
    }
  }
}

}  // namespace
}  // namespace spillway::ssd
