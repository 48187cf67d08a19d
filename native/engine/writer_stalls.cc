#include "engine/writer_stalls.h"

#include <chrono>

namespace spillway::engine {

std::int64_t steady_now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

bool WriterStalls::may_join(const Stall& ended, std::int64_t now_ns) const {
  const std::int64_t within_ns = ended.state == StallState::delayed ? joins_.delayed_ns : joins_.stopped_ns;
  return now_ns - ended.end_ns < within_ns;
}

void WriterStalls::begin_at(std::int64_t now_ns, StallState state, StallCause cause) {
  const std::lock_guard lock(mutex_);
  if (held_++ > 0) return;
  const bool joins = !ended_.empty() && ended_.back().state == state && ended_.back().cause == cause &&
                     may_join(ended_.back(), now_ns);
  present_ = {joins ? ended_.back().begin_ns : now_ns, now_ns, state, cause};
  if (joins) ended_.pop_back();
}

void WriterStalls::end_at(std::int64_t now_ns) {
  const std::lock_guard lock(mutex_);
  if (held_ == 0 || --held_ > 0) return;
  present_.end_ns = now_ns;
  ended_.push_back(present_);
}

StallState WriterStalls::state() const {
  const std::lock_guard lock(mutex_);
  return held_ > 0 ? present_.state : StallState::normal;
}

StallCause WriterStalls::cause() const {
  const std::lock_guard lock(mutex_);
  return held_ > 0 ? present_.cause : kNoStallCause;
}

std::vector<Stall> WriterStalls::stalls_at(std::int64_t now_ns) const {
  const std::lock_guard lock(mutex_);
  std::vector<Stall> stalls = ended_;
  if (held_ > 0) stalls.push_back(present_);
  const bool may_go_on = held_ > 0 || (!stalls.empty() && may_join(stalls.back(), now_ns));
  if (may_go_on) stalls.back().end_ns = now_ns;
  return stalls;
}

}  // namespace spillway::engine
