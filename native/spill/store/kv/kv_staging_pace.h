// When an append that goes into staging waits for the drive: a pure function of how full that is.
//
// A drive whose flash is busy stores nothing for some 60 ms at a time, and a writer who is faster than the drive has to
// wait sooner or later. While less than half of staging is in use, few writes pause, each for what the drive stores in
// some milliseconds. From half on smaller steps slow writers more, so that staging has room for the time in which the
// drive stores nothing, and no write waits for all of it. Of many writers each meets the pauses of others too: a pause
// is as short as leaves a drive of 35 MB/s room (spill_kv_staging_pace_test.cc). Source: docs/decisions/0054 and 0055
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>

namespace spillway::spill {

inline constexpr std::chrono::milliseconds kLongestPause{2};

struct StagingPause {
  std::size_t free = 0;  // slots to wait for
  bool has_to = false;   // however long it takes; else kLongestPause at most
};

// Slots that are filled between two pauses, and so the most of a group of writes.
inline std::size_t staging_step(std::size_t used, std::size_t slots) {
  // Source: docs/decisions/0055
  const std::size_t divisor = 2 * used < slots ? 16 : 4 * used < 3 * slots ? 128 : 8 * used < 7 * slots ? 256 : 512;
  return std::max<std::size_t>(slots / divisor, 1);
}

// Before an append that needs so many of the free slots; `filled`: since the last pause. Nothing: it does not wait.
inline std::optional<StagingPause> staging_pause(std::size_t needed, std::size_t free, std::size_t slots,
                                                 std::size_t filled) {
  const std::size_t used = slots - free;
  const std::size_t step = staging_step(used, slots);
  const std::size_t most = staging_step(0, slots);
  if (free < needed) return StagingPause{.free = std::max(needed, step), .has_to = true};
  if (filled < step || used <= most) return {};
  const std::size_t times = step < most ? 2 : 1;  // until half is free again
  return StagingPause{.free = free + times * std::min(filled, most)};
}

// Pairs in one command, and pairs in flight unless a caller waits for all: enough that the drive's core has the next
// command when it has finished one; few, because the core serves one queue, in which reads wait too. A command of four
// takes the core of presets/cosmos-plus.toml 10 us and 15 us for each pair: 70 us. Source: guess.
inline constexpr std::size_t kPairsACommand = 4;
inline constexpr std::size_t kPairsInFlight = 2 * kPairsACommand;
// The most where the thread that hands them over gets its turn too late for that, beside other work: then the drive
// runs dry between two turns, of 3 ms each in Linux. The core takes 2 ms for them. Source: docs/decisions/0055
inline constexpr std::size_t kMostInFlight = 32 * kPairsACommand;

// For the next turn. `left_over`: at the last turn there was more to hand over than that many. `in_flight`: of what was
// handed over, when what is done has been taken.
inline std::size_t most_in_flight(std::size_t most, bool left_over, std::size_t in_flight) {
  if (left_over && in_flight == 0) return std::min(2 * most, kMostInFlight);
  if (!left_over || 2 * in_flight > most) return std::max(most - std::min(most, kPairsACommand), kPairsInFlight);
  return most;
}

}  // namespace spillway::spill
