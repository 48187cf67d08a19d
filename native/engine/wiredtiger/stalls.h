// Write stalls of WiredTiger and their causes.
//
// A thread that begins to write while the cache is above one of eviction's triggers must evict pages, or wait for
// others to, before it continues (WiredTiger's manual, "Cache and eviction tuning"). WiredTiger adds up that time for
// each session, as "session: time waiting for cache". A write that took kMinStallNs or longer is checked: if that sum
// grew by kMinStallNs or more, the writer was stalled for that long, from the beginning of its write. The cause is
//   checkpoint     a checkpoint was running when the write ended, or ended during it: it prevents the eviction of pages
//                  that it has yet to write
//   cache_updates, cache_dirty, cache_full
//                  otherwise, the one of eviction_updates_trigger, eviction_dirty_trigger and eviction_trigger which
//                  the cache exceeded most, or was nearest to, when the write ended
//   log            the write did not wait for the cache, but "log: slot joins yield time" grew by kMinStallNs or more:
//                  the log's buffers were full, or being written
// Other long writes (a page read from the drive, a commit's own sync) are no stalls. A writer that is still waiting
// when stalls are read counts as stalled while the cache is above a trigger.
//
// Thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

#include "engine/engine.h"
#include "engine/wiredtiger/options.h"
#include "engine/writer_stalls.h"

namespace spillway::engine {

// NOLINTBEGIN(readability-identifier-naming): enumerators, of a type that all engines share.
struct WiredtigerCause {
  static constexpr StallCause none = kNoStallCause;
  static constexpr StallCause cache_dirty = 1;
  static constexpr StallCause cache_updates = 2;
  static constexpr StallCause cache_full = 3;
  static constexpr StallCause checkpoint = 4;
  static constexpr StallCause log = 5;
  static constexpr std::array names = {"none", "cache_dirty", "cache_updates", "cache_full", "checkpoint", "log"};
};
// NOLINTEND(readability-identifier-naming)

// A shorter wait is no stall. Source: guess; LevelDB's delay of one write, and far longer than a write that finds
// everything in memory (some microseconds).
inline constexpr std::int64_t kMinStallNs = 1'000'000;

struct CacheLevels {
  double inuse_bytes = 0;
  double dirty_bytes = 0;
  double updates_bytes = 0;  // 0 if this version does not report it
  double max_bytes = 0;
};

struct EvictionPressure {
  StallCause cause = WiredtigerCause::none;  // of the trigger that is nearest, or most exceeded
  double of_trigger = 0;                     // 1: at the trigger
};
EvictionPressure pressure_of(const CacheLevels& levels, const WiredtigerOptions& limits);

class StalledWriters {
 public:
  // A writer was stalled from begin_ns to end_ns. Earlier reports do not change: if the time overlaps one, it counts
  // from that one's end.
  void report(std::int64_t begin_ns, std::int64_t end_ns, StallCause cause);
  std::vector<Stall> stalls() const { return stalls_.stalls(); }

 private:
  // Waits of successive writers, with writes of some microseconds between them, are one stall. Source: guess.
  static constexpr std::int64_t kMergeGapNs = 10'000'000;

  std::mutex mutex_;
  std::int64_t reported_until_ns_ = 0;  // guarded by mutex_
  WriterStalls stalls_{{.stopped_ns = kMergeGapNs}};
};

}  // namespace spillway::engine
