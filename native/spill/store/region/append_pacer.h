// Backpressure for a writer that is faster than the drive: short pauses, instead of one wait for a whole log's sync
// (300 ms in workload A, with logs of 64 MiB).
//
// The rest of the oldest sealed log's sync is spread over the rest of the current log: an append of b of the remaining
// r bytes owes b / r of the remaining time. The time owed is spent in few pauses of some milliseconds, because many
// short ones would delay one write in a hundred (in workload A 50 to 130 us instead of 25).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace spillway::spill {

class AppendPacer {
 public:
  using Clock = std::chrono::steady_clock;
  // Source: guess.
  static constexpr std::chrono::microseconds kLongestPause{5000};
  static constexpr std::chrono::microseconds kShortestPause{2000};

  // The sync of the oldest sealed log. By the thread that syncs.
  void sync_begins(Clock::time_point now) { syncs_since_.store(now, std::memory_order_release); }
  void sync_failed() { syncs_since_.store({}, std::memory_order_release); }
  void sync_ends(Clock::time_point began, Clock::time_point now);

  // For how long the appending thread pauses after an append of `bytes` bytes, with which the current log has `end` of
  // the `full` bytes that it will have; 0, or from the shortest to the longest pause.
  Clock::duration pause_after(std::uint64_t bytes, std::uint64_t end, std::uint64_t full, Clock::time_point now);
  // There is room for another sealed log: nothing is owed. By the appending thread.
  void forgive() { owed_ = {}; }

 private:
  using Seconds = std::chrono::duration<double>;

  std::atomic<Clock::time_point> syncs_since_{Clock::time_point()};  // nothing: none is under way
  std::atomic<double> last_sync_s_{0};
  Seconds owed_{};  // the appending thread's
};

}  // namespace spillway::spill
