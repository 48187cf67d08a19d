// A log-linear histogram of durations in nanoseconds.
//
// Buckets: 64 linear steps in every power of two, so the error of a recorded value is at most 1/64 (1.6 %). The layout
// is that of HDR histograms (Tene). Only what the recorder needs is implemented: record, merge, percentile. Not
// thread-safe: one per thread, merged when a sample is taken.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace spillway {

class Histogram {
 public:
  // Values below zero count as zero. Values above 2^42 ns (73 min) are counted in the last bucket; max stays exact.
  void record(std::int64_t value_ns, std::uint64_t count = 1) {
    const auto value = static_cast<std::uint64_t>(std::max<std::int64_t>(value_ns, 0));
    counts_[bucket_of(value)] += count;
    total_ += count;
    sum_ += static_cast<double>(value) * static_cast<double>(count);
    max_ = std::max(max_, value);
    min_ = std::min(min_, value);
  }

  void merge(const Histogram& other) {
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
    total_ += other.total_;
    sum_ += other.sum_;
    max_ = std::max(max_, other.max_);
    min_ = std::min(min_, other.min_);
  }

  void clear() { *this = Histogram(); }

  std::uint64_t count() const { return total_; }
  double mean_ns() const { return total_ == 0 ? 0.0 : sum_ / static_cast<double>(total_); }
  std::uint64_t max_ns() const { return max_; }
  std::uint64_t min_ns() const { return total_ == 0 ? 0 : min_; }

  // The middle of the bucket that holds the q-quantile, never above max_ns(). 0 if nothing was recorded.
  // REQUIRES: 0 <= q <= 1
  double quantile_ns(double q) const {
    if (total_ == 0) return 0.0;
    const auto wanted = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(q * static_cast<double>(total_) + 0.5));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (seen >= wanted) return std::min(middle_of(i), static_cast<double>(max_));
    }
    return static_cast<double>(max_);
  }

 private:
  static constexpr unsigned kStepBits = 6;
  static constexpr unsigned kMaxBits = 42;
  static constexpr std::size_t kSteps = 1U << kStepBits;
  static constexpr std::size_t kBuckets = (kMaxBits - kStepBits + 1) * kSteps;

  static std::size_t bucket_of(std::uint64_t value) {
    if (value < kSteps) return value;
    const unsigned top = static_cast<unsigned>(std::bit_width(value)) - 1;  // >= kStepBits
    const unsigned shift = top - kStepBits;
    const std::size_t index = (static_cast<std::size_t>(shift) + 1) * kSteps + ((value >> shift) & (kSteps - 1));
    return std::min(index, kBuckets - 1);
  }

  static double middle_of(std::size_t bucket) {
    if (bucket < kSteps) return static_cast<double>(bucket);
    const unsigned shift = static_cast<unsigned>(bucket / kSteps) - 1;
    const auto low = static_cast<double>((kSteps + bucket % kSteps) << shift);
    return low + static_cast<double>(1ULL << shift) / 2;
  }

  std::array<std::uint64_t, kBuckets> counts_{};
  std::uint64_t total_ = 0;
  double sum_ = 0;
  std::uint64_t max_ = 0;
  std::uint64_t min_ = ~std::uint64_t{0};
};

}  // namespace spillway
