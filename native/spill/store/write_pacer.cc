#include "spill/store/write_pacer.h"

#include <algorithm>

namespace spillway::spill {

WritePacer::WritePacer(std::uint64_t capacity_bytes, std::uint64_t lump_bytes, Groups groups)
    : capacity_bytes_(static_cast<double>(std::max<std::uint64_t>(capacity_bytes, 1))),
      lump_(static_cast<double>(lump_bytes) / capacity_bytes_),
      drain_(lump_, groups) {}

WritePacer::Clock::duration WritePacer::pause(StoreRoom room, std::uint64_t bytes, Clock::time_point now) {
  drain_.observe(room, now);
  last_.store(now.time_since_epoch(), std::memory_order_relaxed);
  is_watching_.store(drain_.is_watching(), std::memory_order_relaxed);
  const auto limit = drain_.limit(now);
  is_pacing_.store(limit.has_value(), std::memory_order_relaxed);
  if (!limit) return {};
  const double bytes_s = std::max(*limit * capacity_bytes_, 1.0);
  const DrainPacer::Seconds its(std::min(static_cast<double>(bytes) / bytes_s, DrainPacer::Seconds(kLongest).count()));
  // What nobody used is lost, but for a pause's worth; what is owed beyond the longest pause is forgiven.
  next_ = std::clamp<Clock::time_point>(next_, now - kShortest, now + kLongest) +
          std::chrono::duration_cast<Clock::duration>(its);
  const auto wait = std::min<Clock::duration>(next_ - now, kLongest);
  return wait < kShortest ? Clock::duration{} : wait;
}

}  // namespace spillway::spill
