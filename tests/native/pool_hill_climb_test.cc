// The hill climb on made-up cost curves: flat, falling, with a least cost, with dips, noisy, and shifting.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "pool/hill_climb.h"
#include "ssd/structures/random.h"

namespace spillway::pool {
namespace {

using Curve = std::function<double(std::uint32_t)>;

constexpr std::uint32_t kMost = 256;

// Half of the cost is reads; a write waits for its share of its batch.
double of_batches(double a, double b, std::uint32_t n) { return 50 + b + a / n; }

// A drive that writes k at once in the time of one, and is slowed down by more.
Curve peaked_at(std::uint32_t k) {
  return [k](std::uint32_t n) {
    const double rounds = std::ceil(static_cast<double>(n) / k);
    return 20 + 100 * rounds / n + 0.3 * (n > k ? n - k : 0);
  };
}

double least_cost(const Curve& curve) {
  double least = curve(1);
  for (std::uint32_t n = 2; n <= kMost; ++n) least = std::min(least, curve(n));
  return least;
}

// Sum of twelve uniform variates, less their mean: nearly normal, with deviation 1.
double normal(ssd::Random& random) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += random.uniform();
  return sum;
}

// Runs so many epochs; returns the mean of the true costs of the sizes that it used.
double run(HillClimb& climb, const Curve& curve, int epochs, double noise = 0, std::uint64_t seed = 1) {
  ssd::Random random(ssd::mix(seed));
  double sum = 0;
  for (int i = 0; i < epochs; ++i) {
    const double cost = curve(climb.size());
    sum += cost;
    climb.observe(cost * (1 + noise * normal(random)));
  }
  return sum / epochs;
}

TEST(HillClimb, StaysLowOnAFlatCurve) {
  HillClimb climb(1, kMost);
  run(
      climb, [](std::uint32_t) { return 10.0; }, 1000);
  EXPECT_EQ(climb.held(), 1U);
  EXPECT_EQ(climb.path().size(), 1U);
}

TEST(HillClimb, ComesDownOnAFlatCurve) {
  HillClimb climb(1, kMost);
  run(
      climb, [](std::uint32_t n) { return of_batches(100, 10, n); }, 400);
  EXPECT_GE(climb.held(), 16U);
  run(
      climb, [](std::uint32_t) { return 10.0; }, 4000);
  EXPECT_EQ(climb.held(), 1U) << "a smaller batch that costs no more is a shorter wait";
}

// a / n + b: it stops where another step would gain less than it is worth.
TEST(HillClimb, StopsWhereAFallingCurveLevelsOff) {
  for (const double a : {10.0, 100.0, 1000.0}) {
    HillClimb climb(1, kMost);
    const Curve curve = [a](std::uint32_t n) { return of_batches(a, 10, n); };
    run(climb, curve, 1000);
    EXPECT_LT(curve(climb.held()), 1.025 * least_cost(curve)) << a;
    if (a <= 100) {
      EXPECT_LT(climb.held(), kMost) << a << ": it does not run away";
    }
  }
}

TEST(HillClimb, FindsTheLeastCostOfAPeak) {
  for (const std::uint32_t k : {1, 2, 3, 5, 8, 13, 19, 40, 100, 200}) {
    HillClimb climb(1, kMost);
    run(climb, peaked_at(k), 1000);
    // The grid has four sizes for each doubling, so k itself may be missed by a tenth.
    EXPECT_LT(peaked_at(k)(climb.held()), 1.06 * least_cost(peaked_at(k))) << k << ", held " << climb.held();
  }
}

TEST(HillClimb, PassesDipsBetweenWholeRounds) {
  // Best at 8; 6 and 12 are worse than 4, as batches that are no whole rounds of 4 or 8.
  const Curve curve = [](std::uint32_t n) { return 20 + (n == 6 || n == 12 ? 5 : 0) + (n > 8 ? n - 8 : 8 - n) * 1.0; };
  HillClimb climb(1, kMost);
  run(climb, curve, 1000);
  EXPECT_EQ(climb.held(), 8U);
}

// The noise of an epoch is several times what a step gains near the optimum.
TEST(HillClimb, NoiseCostsLittle) {
  for (const double noise : {0.01, 0.03, 0.06}) {
    for (const std::uint32_t k : {4, 8, 24, 96}) {
      double worst = 0;
      double sum = 0;
      constexpr int kSeeds = 20;
      for (int seed = 0; seed < kSeeds; ++seed) {
        HillClimb climb(1, kMost);
        run(climb, peaked_at(k), 600, noise, seed);
        const double cost = run(climb, peaked_at(k), 1000, noise, 100 + seed) / least_cost(peaked_at(k));
        worst = std::max(worst, cost);
        sum += cost;
      }
      EXPECT_LT(sum / kSeeds, 1.07) << "noise " << noise << ", k " << k;
      EXPECT_LT(worst, 1.15) << "noise " << noise << ", k " << k;
    }
  }
}

TEST(HillClimb, NoiseDoesNotCarryItAwayOnAFlatCurve) {
  std::vector<std::uint32_t> held;
  for (int seed = 0; seed < 40; ++seed) {
    HillClimb climb(1, kMost);
    run(
        climb, [](std::uint32_t) { return 10.0; }, 3000, 0.03, seed);
    held.push_back(climb.held());
  }
  std::sort(held.begin(), held.end());
  EXPECT_LE(held[held.size() / 2], 4U);
  EXPECT_LE(held[held.size() * 9 / 10], 16U);
}

TEST(HillClimb, FollowsAShiftThatItsCostShows) {
  HillClimb climb(1, kMost);
  for (const std::uint32_t k : {8, 64, 4, 32}) {
    run(climb, peaked_at(k), 500, 0.01, k);
    EXPECT_LT(peaked_at(k)(climb.held()), 1.06 * least_cost(peaked_at(k))) << k << ", held " << climb.held();
  }
}

// The held size costs the same after the shift, so nothing tells of it but the next trials.
TEST(HillClimb, FindsAShiftThatItsCostHidesByTheNextTrials) {
  HillClimb climb(1, kMost);
  const auto with_best = [](std::uint32_t best) {
    return [best](std::uint32_t n) { return 20 + std::abs(std::log2(n) - std::log2(best)); };
  };
  run(climb, with_best(8), 300);
  ASSERT_EQ(climb.held(), 8U);
  const double there = with_best(8)(8);
  const Curve hidden = [&](std::uint32_t n) { return n == 8 ? there : with_best(32)(n) * 0.9; };
  run(climb, hidden, 2 * HillClimb::kLongestRest);
  EXPECT_EQ(climb.held(), 32U);
}

// What trials cost, on average over a long time at rest.
TEST(HillClimb, TrialsCostLittle) {
  HillClimb climb(1, kMost);
  run(climb, peaked_at(8), 1000);
  const double cost = run(climb, peaked_at(8), 5000);
  EXPECT_LT(cost, 1.005 * peaked_at(8)(climb.held()));
}

TEST(HillClimb, StaysWithinItsBounds) {
  for (const auto& [least, most] : {std::pair{1U, 1U}, {5U, 5U}, {5U, 7U}, {4U, 100U}, {1U, 2U}}) {
    HillClimb climb(least, most);
    ssd::Random random(3);
    for (int i = 0; i < 2000; ++i) {
      ASSERT_GE(climb.size(), least);
      ASSERT_LE(climb.size(), most);
      ASSERT_GE(climb.held(), least);
      ASSERT_LE(climb.held(), most);
      climb.observe(1 + random.uniform());
    }
    EXPECT_EQ(climb.epochs(), 2000U);
    EXPECT_EQ(climb.path().back(), climb.held());
    EXPECT_EQ(climb.path().front(), least);
  }
}

TEST(HillClimb, ReachesItsUpperBound) {
  for (const std::uint32_t most : {2U, 7U, 100U, 256U}) {
    HillClimb climb(1, most);
    run(
        climb, [](std::uint32_t n) { return 1.0 / n; }, 500);
    EXPECT_EQ(climb.held(), most);
  }
}

}  // namespace
}  // namespace spillway::pool
