#include "engine/wiredtiger/stalls.h"

#include <algorithm>

namespace spillway::engine {

EvictionPressure pressure_of(const CacheLevels& levels, const WiredtigerOptions& limits) {
  EvictionPressure most;
  const auto consider = [&](StallCause cause, double bytes, double share) {
    const double trigger_bytes = share * levels.max_bytes;
    if (trigger_bytes <= 0 || bytes / trigger_bytes <= most.of_trigger) return;
    most = {cause, bytes / trigger_bytes};
  };
  consider(WiredtigerCause::cache_updates, levels.updates_bytes, limits.eviction_updates_share);
  consider(WiredtigerCause::cache_dirty, levels.dirty_bytes, limits.eviction_dirty_share);
  consider(WiredtigerCause::cache_full, levels.inuse_bytes, limits.eviction_share);
  return most;
}

void StalledWriters::report(std::int64_t begin_ns, std::int64_t end_ns, StallCause cause) {
  const std::lock_guard lock(mutex_);
  begin_ns = std::max(begin_ns, reported_until_ns_);
  if (begin_ns >= end_ns) return;
  stalls_.begin_at(begin_ns, StallState::stopped, cause);
  stalls_.end_at(end_ns);
  reported_until_ns_ = end_ns;
}

}  // namespace spillway::engine
