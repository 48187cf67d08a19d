// The last values of a signal, as flow control judges them.
//
// Holds at most `capacity` values. Values older than 300 s are dropped, but for the newest two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

namespace spillway::engine {

class FlowWindow {
 public:
  // REQUIRES: capacity > 0
  explicit FlowWindow(std::size_t capacity) : capacity_(capacity) {}

  // REQUIRES: times, ns of any one clock, never decrease
  void add(double value, std::int64_t now_ns);

  // Each is 0 of an empty window.
  double newest() const;
  double mean() const;
  double percentile_90() const;
  // Whether the newer half is higher than the older one by more than 2 on average, and both together span at least
  // `least_span_ns`.
  bool is_rising(std::int64_t least_span_ns = 0) const;

 private:
  struct Value {
    double value = 0;
    std::int64_t at_ns = 0;
  };

  const std::size_t capacity_;
  std::deque<Value> values_;  // oldest first
};

}  // namespace spillway::engine
