// Selects the completions that a measurement counts: those after the ramp, up to the requested number of I/Os or time.
//
// The loop stays full before and after the window. I/Os in flight when the window opens and I/Os in flight when it
// closes have the same weight. So ios x mean latency = in flight x seconds (Little) holds except for the two edges.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

#include "probe/point.h"

namespace spillway::probe {

class Window {
 public:
  // `start`: device time at which the first I/Os are issued.
  Window(const Point& point, Nanos start)
      : start_(start),
        ramp_ns_(nanos(point.ramp_s)),
        ramp_ios_(point.ramp_ios),
        span_ns_(point.seconds ? nanos(*point.seconds) : kNever),
        ios_(point.ios.value_or(std::numeric_limits<std::uint64_t>::max())) {
    if (ramp_ns_ == 0 && ramp_ios_ == 0) begin_ = start;
  }

  // An I/O completed. Returns whether the measurement counts it. Thread-safe.
  bool completed(Nanos at) {
    if (!is_open()) return false;
    const Nanos begin = begin_.load(std::memory_order_acquire);
    if (begin == kNever) {
      ramp(at);
      return false;
    }
    // Another thread reports late a completion from before the ramp's end.
    if (at < begin) return false;
    if (span_ns_ != kNever && at - begin > span_ns_) {
      close(begin + span_ns_);
      return false;
    }
    const std::uint64_t number = counted_.fetch_add(1, std::memory_order_relaxed) + 1;
    if (number == ios_) close(at);
    return number <= ios_;
  }

  // Whether new I/Os are to be issued.
  bool is_open() const { return !closed_.load(std::memory_order_acquire); }

  // Closes the window early, after a signal or a failure.
  void cut(Nanos at) {
    cut_ = cut_ || is_open();
    close(at);
  }

  std::uint64_t counted() const { return std::min(counted_.load(std::memory_order_relaxed), ios_); }

  // --- REQUIRES: the window is closed and no I/O is in flight
  bool was_cut() const { return cut_; }
  Nanos length_ns() const {
    const Nanos begin = begin_;
    return begin == kNever ? 0 : end_ - begin;
  }

 private:
  static constexpr Nanos kNever = std::numeric_limits<Nanos>::max();

  static Nanos nanos(double seconds) {
    constexpr double kMost = 9.2e18;  // nearly the largest Nanos, some 292 years
    return seconds * 1e9 >= kMost ? kNever : static_cast<Nanos>(seconds * 1e9);
  }

  // The completion that ends the ramp opens the window and is not counted.
  void ramp(Nanos at) {
    const std::uint64_t seen = ramp_seen_.fetch_add(1, std::memory_order_relaxed) + 1;
    if (seen < ramp_ios_ || at - start_ < ramp_ns_) return;
    Nanos unset = kNever;
    begin_.compare_exchange_strong(unset, at, std::memory_order_acq_rel);
  }

  void close(Nanos at) {
    Nanos unset = kNever;
    end_.compare_exchange_strong(unset, at, std::memory_order_acq_rel);
    closed_.store(true, std::memory_order_release);
  }

  const Nanos start_;
  const Nanos ramp_ns_;
  const std::uint64_t ramp_ios_;
  const Nanos span_ns_;
  const std::uint64_t ios_;
  std::atomic<std::uint64_t> ramp_seen_{0};
  std::atomic<std::uint64_t> counted_{0};
  std::atomic<Nanos> begin_{kNever};
  std::atomic<Nanos> end_{kNever};
  std::atomic<bool> closed_{false};
  std::atomic<bool> cut_{false};
};

}  // namespace spillway::probe
