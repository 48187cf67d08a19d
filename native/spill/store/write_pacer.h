// Backpressure in small pauses: limits the rate of writes to that at which a store, or the way to the drive, is
// released. The commit leader waits for its group, so writers take turns.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "spill/store/drain_pacer.h"

namespace spillway::spill {

// REQUIRES: one thread at a time, except for is_pacing() and is_plenty().
class WritePacer {
 public:
  using Clock = std::chrono::steady_clock;

  // A write waits for no longer at a time, and not for less. Source: a sleep costs as much as a small write, and ends
  // up to a millisecond late on a loaded machine.
  static constexpr std::chrono::milliseconds kLongest{8};
  static constexpr std::chrono::milliseconds kShortest{2};

  // `lump_bytes`: what leaves together, of `capacity_bytes`.
  WritePacer(std::uint64_t capacity_bytes, std::uint64_t lump_bytes);

  // How long writes of `bytes` are to wait when so much is free; mostly 0.
  Clock::duration pause(double free, std::uint64_t bytes, Clock::time_point now);
  // Whether writes are slowed now.
  bool is_pacing() const { return is_pacing_.load(std::memory_order_relaxed); }
  // Whether so much is free that nothing is slowed.
  bool is_plenty(double free) const { return free >= plenty_; }
  // Without a clock: pause() would find nothing to do.
  bool is_idle(double free) const { return !is_pacing() && is_plenty(free); }

 private:
  const double capacity_bytes_;
  const double plenty_;  // free, for no pacing
  std::atomic<bool> is_pacing_{false};
  DrainPacer drain_;
  Clock::time_point next_{};  // when the next write may come in
};

}  // namespace spillway::spill
