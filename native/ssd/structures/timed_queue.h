// A FIFO of (time, slot) whose times do not decrease.
#pragma once

#include <cassert>
#include <cstdint>

#include "ssd/structures/ring.h"
#include "ssd/structures/timing_wheel.h"

namespace spillway::ssd {

class TimedQueue {
 public:
  std::int64_t next_time() const { return next_time_; }  // TimingWheel::kNever when empty

  // REQUIRES: not earlier than any time in the queue
  void push(std::int64_t time, std::uint32_t slot) {
    if (items_.empty()) next_time_ = time;
    items_.push({time, slot});
  }
  // REQUIRES: next_time() != TimingWheel::kNever
  std::uint32_t pop() {
    const std::uint32_t slot = items_.front().slot;
    items_.pop();
    next_time_ = items_.empty() ? TimingWheel::kNever : items_.front().time;
    return slot;
  }

 private:
  struct Item {
    std::int64_t time = 0;
    std::uint32_t slot = 0;
  };
  Ring<Item> items_;
  std::int64_t next_time_ = TimingWheel::kNever;
};

}  // namespace spillway::ssd
