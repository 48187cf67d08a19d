// When samples are due: deciding when is apart from waiting.
#pragma once

#include <cstdint>
#include <limits>

namespace spillway::load {

inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// When samples are due: every interval from a phase's begin. One that would fall just before or after the phase's
// deadline gives way to the sample that ends the phase; if an operation holds that up, it comes half an interval late.
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

  // The sample of before `now_ns` was taken.
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
