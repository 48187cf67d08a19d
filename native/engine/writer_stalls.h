// Write stalls of an engine that knows when each of its writers waits: the writer reports the begin and the end.
//
// The engine is stalled while at least one writer waits, with the cause of the first one. Stalls in quick succession,
// as where each write is delayed, count as one: see `MergeGaps`.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "engine/engine.h"

namespace spillway::engine {

// std::chrono::steady_clock, ns.
std::int64_t steady_now_ns();

class WriterStalls {
 public:
  // Two stalls of one state and cause with less than this between them are one. 0: none are merged.
  struct MergeGaps {
    std::int64_t delayed_ns = 0;
    std::int64_t stopped_ns = 0;
  };
  explicit WriterStalls(MergeGaps joins) : merge_gaps_(joins) {}

  // A writer waits from now on. REQUIRES: the same thread calls end() before it calls begin() again.
  void begin(StallState state, StallCause cause) { begin_at(steady_now_ns(), state, cause); }
  void end() { end_at(steady_now_ns()); }
  // The same with the time given, which never decreases.
  void begin_at(std::int64_t now_ns, StallState state, StallCause cause);
  void end_at(std::int64_t now_ns);

  StallState state() const;
  StallCause cause() const;
  // Oldest first. A stall in progress, or one that the next may still be merged with, ends now.
  std::vector<Stall> stalls() const { return stalls_at(steady_now_ns()); }
  std::vector<Stall> stalls_at(std::int64_t now_ns) const;

 private:
  // REQUIRES: mutex_ is held.
  bool may_merge(const Stall& ended, std::int64_t now_ns) const;

  const MergeGaps merge_gaps_;
  mutable std::mutex mutex_;
  std::uint32_t waiting_writers_ = 0;
  Stall current_;  // REQUIRES: waiting_writers_ > 0
  std::vector<Stall> ended_;
};

}  // namespace spillway::engine
