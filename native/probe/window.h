// Which completions a measurement counts: those after the ramp, up to the number of ios or the time that was asked for.
//
// The loop is kept full on both sides of the window. So what was under way when it opened and what is under way when it
// closes weigh the same, and ios x mean latency = in flight x seconds (Little) holds but for the two edges.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

#include "probe/point.h"

namespace spillway::probe {

class Window {
 public:
  // `start`: the device's time as the first ios are issued.
  Window(const Point& point, Nanos start)
      : start_(start),
        ramp_ns_(nanos(point.ramp_s)),
        ramp_ios_(point.ramp_ios),
        span_ns_(point.seconds ? nanos(*point.seconds) : kNever),
        ios_(point.ios.value_or(std::numeric_limits<std::uint64_t>::max())) {
    if (ramp_ns_ == 0 && ramp_ios_ == 0) begin_ = start;
  }

  // An io completed. Whether the measurement counts it. Thread-safe.
  bool completed(Nanos at) {
    if (!is_open()) return false;
    const Nanos begin = begin_.load(std::memory_order_acquire);
    if (begin == kNever) {
      ramp(at);
      return false;
    }
    // A completion of before the ramp's end that another thread hands in only now.
    if (at < begin) return false;
    if (span_ns_ != kNever && at - begin > span_ns_) {
      close(begin + span_ns_);
      return false;
    }
    const std::uint64_t number = counted_.fetch_add(1, std::memory_order_relaxed) + 1;
    if (number == ios_) close(at);
    return number <= ios_;
  }

  // Whether new ios are wanted.
  bool is_open() const { return !closed_.load(std::memory_order_acquire); }

  // Ends it before its time: by a signal or a failure.
  void cut(Nanos at) {
    cut_ = cut_ || is_open();
    close(at);
  }

  std::uint64_t counted() const { return std::min(counted_.load(std::memory_order_relaxed), ios_); }

  // --- Once it is closed and every io has been waited for.
  bool was_cut() const { return cut_; }
  Nanos length_ns() const {
    const Nanos begin = begin_;
    return begin == kNever ? 0 : end_ - begin;
  }

 private:
  static constexpr Nanos kNever = std::numeric_limits<Nanos>::max();

  static Nanos nanos(double seconds) {
    constexpr double kMost = 9.2e18;  // some 292 years: where the number of nanoseconds ends
    return seconds * 1e9 >= kMost ? kNever : static_cast<Nanos>(seconds * 1e9);
  }

  // The completion that ends the ramp begins the window and is not in it.
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
