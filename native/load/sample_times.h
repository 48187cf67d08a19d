// Decides when samples are due. Another thread waits until then.
#pragma once

#include <cstdint>
#include <limits>

namespace spillway::load {

inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// Due at every interval from the begin of a phase. A sample within half an interval of the phase's deadline is omitted,
// because the phase ends with a sample. If an operation delays that one, the omitted sample is taken half an interval
// after the deadline.
class SampleTimes {
 public:
  SampleTimes(std::int64_t begin_ns, std::int64_t interval_ns, std::int64_t deadline_ns)
      : interval_ns_(interval_ns), deadline_ns_(deadline_ns), tick_ns_(begin_ns) {
    pass(begin_ns);
  }

  std::int64_t next_ns() const {
    const std::int64_t half = interval_ns_ / 2;
    const bool near_end = deadline_ns_ != kNever && tick_ns_ > deadline_ns_ - half && tick_ns_ < deadline_ns_ + half;
    return near_end ? deadline_ns_ + half : tick_ns_;
  }

  // The sample that was due before `now_ns` was taken.
  void pass(std::int64_t now_ns) {
    do {
      tick_ns_ += interval_ns_;
    } while (tick_ns_ <= now_ns);
  }

 private:
  std::int64_t interval_ns_;
  std::int64_t deadline_ns_;
  std::int64_t tick_ns_;
};

}  // namespace spillway::load
