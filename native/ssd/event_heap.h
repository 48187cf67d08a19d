// The drive's agenda: a binary heap of (time, payload); events of one time keep the order in which they were added.
#pragma once

#include <cassert>
#include <cstdint>
#include <limits>
#include <vector>

namespace spillway::ssd {

class EventHeap {
 public:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  std::int64_t next_time() const { return events_.empty() ? kNever : events_.front().time; }

  void push(std::int64_t time, std::uint32_t payload) {
    events_.push_back({time, ++order_, payload});
    std::size_t i = events_.size() - 1;
    const Event moving = events_[i];
    while (i > 0) {
      const std::size_t parent = (i - 1) / 2;
      if (!moving.before(events_[parent])) break;
      events_[i] = events_[parent];
      i = parent;
    }
    events_[i] = moving;
  }

  // REQUIRES: next_time() != kNever
  std::uint32_t pop() {
    assert(!events_.empty());
    const std::uint32_t payload = events_.front().payload;
    const Event moving = events_.back();
    events_.pop_back();
    const std::size_t size = events_.size();
    if (size == 0) return payload;
    std::size_t i = 0;
    for (;;) {
      std::size_t child = 2 * i + 1;
      if (child >= size) break;
      if (child + 1 < size && events_[child + 1].before(events_[child])) ++child;
      if (!events_[child].before(moving)) break;
      events_[i] = events_[child];
      i = child;
    }
    events_[i] = moving;
    return payload;
  }

 private:
  struct Event {
    std::int64_t time;
    std::uint32_t order;  // wraps after 2^32 events; only events that are pending together are compared
    std::uint32_t payload;
    bool before(const Event& other) const {
      if (time != other.time) return time < other.time;
      return static_cast<std::int32_t>(order - other.order) < 0;
    }
  };
  std::vector<Event> events_;
  std::uint32_t order_ = 0;
};

}  // namespace spillway::ssd
