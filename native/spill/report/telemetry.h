// Counters of SpillStatistics, and events for listeners and RocksDB's info log.
#pragma once

#include <rocksdb/env.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "spillway/options.h"
#include "spillway/statistics.h"

namespace spillway::spill {

// The counters of SpillStatistics. Thread-safe.
// NOLINTBEGIN(bugprone-macro-parentheses): a member's name has none
struct Counts {
#define SPILLWAY_COUNT(name, text) std::atomic<std::uint64_t> name{0};
#define SPILLWAY_IGNORED(name, text)
  SPILLWAY_STATISTICS(SPILLWAY_COUNT, SPILLWAY_IGNORED, SPILLWAY_IGNORED)
#undef SPILLWAY_COUNT
  std::atomic<std::uint64_t> reads_with_live{0};      // reads while something lies in the spill store
  std::atomic<std::int64_t> waiting_for_rollback{0};  // writers, now

  // Copies them into `statistics`. Gauges and flags are not changed.
  void read_into(SpillStatistics* statistics) const {
#define SPILLWAY_COUNT(name, text) statistics->name = name.load(std::memory_order_relaxed);
    SPILLWAY_STATISTICS(SPILLWAY_COUNT, SPILLWAY_IGNORED, SPILLWAY_IGNORED)
#undef SPILLWAY_COUNT
#undef SPILLWAY_IGNORED
  }
};
// NOLINTEND(bugprone-macro-parentheses)

inline void increment(std::atomic<std::uint64_t>& count, std::uint64_t more = 1) {
  count.fetch_add(more, std::memory_order_relaxed);
}

class Telemetry {
 public:
  Telemetry(std::vector<std::shared_ptr<SpillListener>> listeners, std::shared_ptr<rocksdb::Logger> info_log)
      : listeners_(std::move(listeners)), info_log_(std::move(info_log)) {}

  // Thread-safe. Calls only RocksDB's info log, because RocksDB may hold its own mutex.
  void report(const SpillEvent& event) const;
  // To every SpillCloseListener.
  void report_closed(const SpillStatistics& last) const;

  Counts counts;

 private:
  const std::vector<std::shared_ptr<SpillListener>> listeners_;
  const std::shared_ptr<rocksdb::Logger> info_log_;
};

}  // namespace spillway::spill
