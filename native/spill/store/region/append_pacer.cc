#include "spill/store/region/append_pacer.h"

#include <algorithm>

namespace spillway::spill {

void AppendPacer::sync_ends(Clock::time_point began, Clock::time_point now) {
  syncs_since_.store({}, std::memory_order_release);
  last_sync_s_.store(Seconds(now - began).count(), std::memory_order_relaxed);
}

AppendPacer::Clock::duration AppendPacer::pause_after(std::uint64_t bytes, std::uint64_t end, std::uint64_t full,
                                                      Clock::time_point now) {
  const Seconds last{last_sync_s_.load(std::memory_order_relaxed)};
  const auto since = syncs_since_.load(std::memory_order_acquire);
  const auto elapsed = since == Clock::time_point() ? Clock::duration{} : now - since;
  // A sync that takes longer than the last one is expected to take a quarter more. Source: guess.
  const auto left = std::max<Seconds>(last - elapsed, elapsed / 4);
  owed_ += left * (end < full ? std::min(1.0, static_cast<double>(bytes) / static_cast<double>(full - end)) : 1.0);
  if (owed_ < kShortestPause) return {};
  const auto pause = std::min<Seconds>(owed_, kLongestPause);
  owed_ = std::min<Seconds>(owed_ - pause, kLongestPause);
  return std::chrono::duration_cast<Clock::duration>(pause);
}

}  // namespace spillway::spill
