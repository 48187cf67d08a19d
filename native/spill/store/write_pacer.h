// Backpressure in small pauses: limits the rate of writes to that at which a store, or the way to the drive, is
// released. The commit leader waits for its group, so writers take turns.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>

#include "spill/store/drain_pacer.h"

namespace spillway::spill {

// REQUIRES: one thread at a time; any thread may call is_pacing(), is_watching(), was_pacing(),
// is_plenty() and next_group().
//
// A pause is as long as the store takes to release what is written now. Callers keep groups to most_group_bytes(), so
// that a write of a group does not wait much longer than alone.
class WritePacer {
 public:
  using Clock = std::chrono::steady_clock;

  // A write of up to kStep bytes waits for no longer at a time, a larger one for so long for each kStep of it, and none
  // for less than kShortest. Source: a sleep costs as much as a small write, and ends up to a millisecond late on a
  // loaded machine; a step in the longest pause is 8 MiB/s, less than any drive takes.
  static constexpr std::chrono::milliseconds kLongest{8};
  static constexpr std::chrono::milliseconds kShortest{2};
  static constexpr std::uint64_t kStep = 64 << 10;
  // The pause of a write of 8 MiB or more where nothing leaves. Source: guess
  static constexpr std::chrono::seconds kLongestOfAll{1};

  // `lump_bytes`: what leaves together, of `capacity_bytes`, but for groups of lumps.
  using Groups = DrainPacer::Groups;
  WritePacer(std::uint64_t capacity_bytes, std::uint64_t lump_bytes, Groups groups = Groups::none);

  // How long writes of `bytes`, which take `share` of the room, are to wait now; mostly 0.
  Clock::duration pause(StoreRoom room, std::uint64_t bytes, double share, Clock::time_point now);
  // The same where the room is all in bytes.
  Clock::duration pause(StoreRoom room, std::uint64_t bytes, Clock::time_point now) {
    return pause(room, bytes, static_cast<double>(bytes) / capacity_bytes_, now);
  }
  // So much may come in during the longest pause. No limit where nothing is slowed.
  std::uint64_t most_group_bytes() const { return most_group_bytes_.load(std::memory_order_relaxed); }
  // Whether writes are slowed now.
  bool is_pacing() const { return is_pacing_.load(std::memory_order_relaxed); }
  // Whether writes were slowed within the last second.
  bool was_pacing(Clock::time_point now) const {
    return is_pacing() && now.time_since_epoch() - last_.load(std::memory_order_relaxed) < std::chrono::seconds(1);
  }
  // Whether so much is free that nothing is slowed.
  bool is_plenty(StoreRoom room) const { return DrainPacer::is_plenty(room, lump_); }
  // Without a clock: pause() would find nothing to do.
  bool is_idle(StoreRoom room) const { return !is_watching() && is_plenty(room); }
  // Whether writes are slowed, or were lately.
  bool is_watching() const { return is_watching_.load(std::memory_order_relaxed); }
  // What must stay free for writers, so that they are not slowed more than before.
  double kept_for_writers() const { return DrainPacer::kUnpaced * lump_; }
  // How many lumps to bring back next (DrainPacer::next_group).
  std::uint64_t next_group(StoreRoom room) const { return DrainPacer::next_group(room.free, lump_); }

 private:
  const double capacity_bytes_;
  const double lump_;
  std::atomic<bool> is_pacing_{false};
  std::atomic<bool> is_watching_{false};  // pause() has to see what is free
  std::atomic<Clock::duration> last_{};   // when pause() was called
  std::atomic<std::uint64_t> most_group_bytes_{std::numeric_limits<std::uint64_t>::max()};
  DrainPacer drain_;
  Clock::time_point next_{};  // when the next write may come in
};

}  // namespace spillway::spill
