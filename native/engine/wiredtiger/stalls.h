// Write stalls of WiredTiger and their causes.
//
// A thread that begins to write while the cache is above one of eviction's triggers has to evict pages, or wait for
// others to, before it goes on (WiredTiger's manual, "Cache and eviction tuning"). WiredTiger adds that time up for
// each session, as "session: time waiting for cache". A write that took kMinStallNs or longer is looked at: did that
// sum grow by kMinStallNs or more, the writer was held for so long, from the beginning of its write. The cause is
//   checkpoint     a checkpoint ran when the write ended, or ended during it: it keeps pages that it has yet to
//                  write from being evicted
//   cache_updates, cache_dirty, cache_full
//                  else that of eviction_updates_trigger, eviction_dirty_trigger and eviction_trigger which the cache
//                  was furthest above, or least below, when the write ended
//   log            the cache was not waited for, but "log: slot joins yield time" grew by kMinStallNs or more: the
//   log's
//                  buffers were full, or being written
// Other long writes (a page read from the drive, a commit's own sync) are none. A writer that is still held when
// somebody asks counts as held while the cache is above a trigger.
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

// A shorter wait is no stall. Source: guess; LevelDB's delay of one write, and far above a write that
// finds all in memory (some microseconds).
inline constexpr std::int64_t kMinStallNs = 1'000'000;

struct CacheLevels {
  double inuse_bytes = 0;
  double dirty_bytes = 0;
  double updates_bytes = 0;  // 0 where this version does not tell
  double max_bytes = 0;
};

struct EvictionPressure {
  StallCause cause = WiredtigerCause::none;  // of the trigger that is nearest, or exceeded most
  double of_trigger = 0;                     // 1: at it
};
EvictionPressure pressure_of(const CacheLevels& levels, const WiredtigerOptions& limits);

class StalledWriters {
 public:
  // A writer was held from begin_ns to end_ns. What was reported before stays: a time that overlaps it counts from its
  // end.
  void report(std::int64_t begin_ns, std::int64_t end_ns, StallCause cause);
  std::vector<Stall> stalls() const { return stalls_.stalls(); }

 private:
  // Waits of one writer after the other, with writes of some microseconds between them, are one stall. Source: guess.
  static constexpr std::int64_t kMergeGapNs = 10'000'000;

  std::mutex mutex_;
  std::int64_t reported_until_ns_ = 0;  // guarded by mutex_
  WriterStalls stalls_{{.stopped_ns = kMergeGapNs}};
};

}  // namespace spillway::engine
