#include "engine/writer_stalls.h"

#include <chrono>

namespace spillway::engine {

std::int64_t steady_now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void WriterStalls::begin_at(std::int64_t now_ns, StallState state, StallCause cause) {
  const std::lock_guard lock(mutex_);
  if (held_++ > 0) return;
  const bool joins = !ended_.empty() && ended_.back().state == state && ended_.back().cause == cause &&
                     now_ns - ended_.back().end_ns < joins_ns_;
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
  const bool may_go_on = held_ > 0 || (!stalls.empty() && now_ns - stalls.back().end_ns < joins_ns_);
  if (may_go_on) stalls.back().end_ns = now_ns;
  return stalls;
}

}  // namespace spillway::engine
