#include "load/stall_time.h"

#include <algorithm>

namespace spillway::load {

std::int64_t StallTime::total_ns() const {
  std::int64_t sum = 0;
  for (const std::int64_t part : ns) sum += part;
  return sum;
}

void StallTime::add(const StallTime& other) {
  for (std::size_t i = 0; i < ns.size(); ++i) ns[i] += other.ns[i];
  begun += other.begun;
}

StallTime stall_time_within(std::span<const engine::Stall> stalls, std::int64_t begin_ns, std::int64_t end_ns) {
  StallTime time;
  std::int64_t counted_to = begin_ns;
  for (const engine::Stall& stall : stalls) {
    if (stall.state == engine::StallState::normal) continue;
    if (stall.begin_ns >= begin_ns && stall.begin_ns < end_ns) ++time.begun;
    const std::int64_t from = std::max(stall.begin_ns, counted_to);
    const std::int64_t to = std::min(stall.end_ns, end_ns);
    if (from >= to) continue;
    time.ns[stall.cause] += to - from;
    counted_to = to;
  }
  return time;
}

}  // namespace spillway::load
