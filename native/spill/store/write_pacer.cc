#include "spill/store/write_pacer.h"

#include <algorithm>

namespace spillway::spill {

WritePacer::WritePacer(std::uint64_t capacity_bytes, std::uint64_t lump_bytes, Groups groups)
    : capacity_bytes_(static_cast<double>(std::max<std::uint64_t>(capacity_bytes, 1))),
      lump_(static_cast<double>(lump_bytes) / capacity_bytes_),
      drain_(lump_, groups) {}

WritePacer::Clock::duration WritePacer::pause(StoreRoom room, std::uint64_t bytes, double share,
                                              Clock::time_point now) {
  drain_.observe(room, now);
  last_.store(now.time_since_epoch(), std::memory_order_relaxed);
  is_watching_.store(drain_.is_watching(), std::memory_order_relaxed);
  const auto limit = drain_.limit(now);
  is_pacing_.store(limit.has_value(), std::memory_order_relaxed);
  if (!limit) {
    most_group_bytes_.store(std::numeric_limits<std::uint64_t>::max(), std::memory_order_relaxed);
    return {};
  }
  const double share_s = std::max(*limit, std::numeric_limits<double>::min());
  const double bytes_s = static_cast<double>(bytes) * share_s / std::max(share, std::numeric_limits<double>::min());
  const double longest_s = DrainPacer::Seconds(kLongest).count();
  most_group_bytes_.store(static_cast<std::uint64_t>(std::min(bytes_s * longest_s, 1e18)), std::memory_order_relaxed);
  const double steps = std::max(static_cast<double>(bytes) / static_cast<double>(kStep), 1.0);
  const double most_s = std::min(steps * longest_s, DrainPacer::Seconds(kLongestOfAll).count());
  const DrainPacer::Seconds its(std::min(share / share_s, most_s));
  // What nobody used is lost, but for a pause's worth; what is owed beyond the longest pause is forgiven.
  next_ = std::clamp<Clock::time_point>(next_, now - kShortest, now + kLongest) +
          std::chrono::duration_cast<Clock::duration>(its);
  const auto most = std::max<Clock::duration>(std::chrono::duration_cast<Clock::duration>(its), kLongest);
  const auto wait = std::min<Clock::duration>(next_ - now, most);
  return wait < kShortest ? Clock::duration{} : wait;
}

}  // namespace spillway::spill
