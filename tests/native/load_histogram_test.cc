#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/histogram.h"
#include "ssd/structures/random.h"

namespace spillway {
namespace {

// Durations over seven decades, like latencies with rare stalls.
std::vector<std::int64_t> long_tailed(std::size_t count) {
  ssd::Random random(7);
  std::vector<std::int64_t> values;
  for (std::size_t i = 0; i < count; ++i) {
    values.push_back(static_cast<std::int64_t>(std::exp(random.uniform() * 16.0) * 100.0));
  }
  return values;
}

TEST(LoadHistogram, QuantilesAreWithinABucketOfSortedData) {
  std::vector<std::int64_t> values = long_tailed(100'000);
  Histogram histogram;
  double sum = 0;
  for (const std::int64_t value : values) {
    histogram.record(value);
    sum += static_cast<double>(value);
  }
  std::sort(values.begin(), values.end());
  for (const double q : {0.0, 0.01, 0.5, 0.9, 0.99, 0.999, 0.9999, 1.0}) {
    const auto rank = std::max<std::size_t>(1, static_cast<std::size_t>(q * static_cast<double>(values.size()) + 0.5));
    const auto exact = static_cast<double>(values[rank - 1]);
    EXPECT_NEAR(histogram.quantile_ns(q), exact, exact / 64) << "q = " << q;
  }
  EXPECT_EQ(histogram.count(), values.size());
  EXPECT_EQ(histogram.max_ns(), static_cast<std::uint64_t>(values.back()));
  EXPECT_EQ(histogram.min_ns(), static_cast<std::uint64_t>(values.front()));
  EXPECT_NEAR(histogram.mean_ns(), sum / static_cast<double>(values.size()), 1e-6 * histogram.mean_ns());
}

TEST(LoadHistogram, MergingPartsIsRecordingTheWhole) {
  const std::vector<std::int64_t> values = long_tailed(10'000);
  Histogram whole;
  Histogram even;
  Histogram odd;
  for (std::size_t i = 0; i < values.size(); ++i) {
    whole.record(values[i]);
    (i % 2 == 0 ? even : odd).record(values[i]);
  }
  even.merge(odd);
  EXPECT_EQ(even.count(), whole.count());
  EXPECT_EQ(even.max_ns(), whole.max_ns());
  for (const double q : {0.1, 0.5, 0.99}) EXPECT_EQ(even.quantile_ns(q), whole.quantile_ns(q));
}

TEST(LoadHistogram, ValuesOutsideItsRangeKeepTheirPlaceAtTheEnds) {
  Histogram histogram;
  histogram.record(-5);
  histogram.record(std::int64_t{1} << 50);
  EXPECT_EQ(histogram.min_ns(), 0U);
  EXPECT_EQ(histogram.max_ns(), std::uint64_t{1} << 50);
  EXPECT_EQ(histogram.quantile_ns(0.0), 0.0);
}

}  // namespace
}  // namespace spillway
