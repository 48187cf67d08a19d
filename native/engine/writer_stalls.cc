#include "engine/writer_stalls.h"

#include <chrono>

namespace spillway::engine {

std::int64_t steady_now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

bool WriterStalls::may_merge(const Stall& ended, std::int64_t now_ns) const {
  const std::int64_t within_ns = ended.state == StallState::delayed ? merge_gaps_.delayed_ns : merge_gaps_.stopped_ns;
  return now_ns - ended.end_ns < within_ns;
}

void WriterStalls::begin_at(std::int64_t now_ns, StallState state, StallCause cause) {
  const std::lock_guard lock(mutex_);
  if (waiting_writers_++ > 0) return;
  const bool merges = !ended_.empty() && ended_.back().state == state && ended_.back().cause == cause &&
                      may_merge(ended_.back(), now_ns);
  current_ = {merges ? ended_.back().begin_ns : now_ns, now_ns, state, cause};
  if (merges) ended_.pop_back();
}

void WriterStalls::end_at(std::int64_t now_ns) {
  const std::lock_guard lock(mutex_);
  if (waiting_writers_ == 0 || --waiting_writers_ > 0) return;
  current_.end_ns = now_ns;
  ended_.push_back(current_);
}

StallState WriterStalls::state() const {
  const std::lock_guard lock(mutex_);
  return waiting_writers_ > 0 ? current_.state : StallState::normal;
}

StallCause WriterStalls::cause() const {
  const std::lock_guard lock(mutex_);
  return waiting_writers_ > 0 ? current_.cause : kNoStallCause;
}

std::vector<Stall> WriterStalls::stalls_at(std::int64_t now_ns) const {
  const std::lock_guard lock(mutex_);
  std::vector<Stall> stalls = ended_;
  if (waiting_writers_ > 0) stalls.push_back(current_);
  const bool lasts_until_now = waiting_writers_ > 0 || (!stalls.empty() && may_merge(stalls.back(), now_ns));
  if (lasts_until_now) stalls.back().end_ns = now_ns;
  return stalls;
}

}  // namespace spillway::engine
