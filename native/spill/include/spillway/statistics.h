// The numbers that a spillway::DB counts: the one table of them. The struct, the properties ("spillway.NAME"), what
// runs record of each interval and in all, the list in docs/LIBRARY.md and spillway/rundir/statistics.py are made from
// it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

// COUNT(name, text): grows from Open on. GAUGE(name, text): as of now. FLAG(name, text): now, yes or no.
// A name ending in _us is in microseconds and its property ends in -micros; other properties have - for _.
#define SPILLWAY_STATISTICS(COUNT, GAUGE, FLAG)                                                                    \
  COUNT(diverted_writes, "operations that went to the spill store")                                                \
  COUNT(diverted_bytes, "bytes of the keys and values of diverted operations")                                     \
  COUNT(main_writes, "write calls that RocksDB took")                                                              \
  COUNT(waits,                                                                                                     \
        "write calls that waited: for RocksDB, for room in the spill store, for a rollback, for the "              \
        "drive, or for what holds commits up; watch this first")                                                   \
  COUNT(waits_rocksdb, "of `waits`: those that began to wait for RocksDB, because neither store took the write")   \
  COUNT(waits_rollback, "of `waits`: those that began to wait for a rollback")                                     \
  COUNT(waits_commits,                                                                                             \
        "of `waits`: those that began to wait for the drive, or for what holds commits up: another write or call") \
  COUNT(waits_low_priority, "of `waits`: those that began to wait as writes of low priority")                      \
  COUNT(waits_pacing, "of `waits`: those that were slowed to what leaves the spill store, before it is full")      \
  COUNT(wait_us, "how long write calls waited in all")                                                             \
  COUNT(wait_rocksdb_us, "of `wait-micros`: for RocksDB")                                                          \
  COUNT(wait_rollback_us, "of `wait-micros`: for a rollback")                                                      \
  COUNT(wait_commits_us, "of `wait-micros`: for the drive, or for what holds commits up")                          \
  COUNT(wait_low_priority_us, "of `wait-micros`: as writes of low priority")                                       \
  COUNT(wait_pacing_us, "of `wait-micros`: slowed to what leaves the spill store")                                 \
  COUNT(stalls_diverted, "how often diversion began")                                                              \
  COUNT(stalls_diverted_memtable, "of `stalls-diverted`: because of memtables that wait for a flush")              \
  COUNT(stalls_diverted_l0, "of `stalls-diverted`: because of files in L0")                                        \
  COUNT(stalls_diverted_pending_compaction_bytes, "of `stalls-diverted`: because of pending compaction bytes")     \
  COUNT(stalls_diverted_write_buffer_manager, "of `stalls-diverted`: because a WriteBufferManager stops writers")  \
  COUNT(stalls_diverted_other, "of `stalls-diverted`: because of a stall that was over before its cause was read") \
  COUNT(last_resort,                                                                                               \
        "writes that RocksDB refused before the detector knew of the write stall; many mean "                      \
        "that `divert` starts too late")                                                                           \
  COUNT(ordering_syncs, "syncs of one log for a sync write or a flush of the other")                               \
  COUNT(ordering_marks, "writes to RocksDB whose log record names the diverted write before them")                 \
  COUNT(rolled_back_entries, "operations brought back into RocksDB")                                               \
  COUNT(rolled_back_bytes, "bytes of the keys and values of operations brought back")                              \
  COUNT(rollbacks_by_ingest, "rollbacks by ingestion of sorted files")                                             \
  COUNT(rollbacks_by_put, "rollbacks of small generations through RocksDB's log")                                  \
  COUNT(rollback_us, "how long rollbacks took in all")                                                             \
  COUNT(rollback_failures,                                                                                         \
        "failed attempts; the pause between two grows from 20 ms to 10 s, and a write that "                       \
        "only a rollback can let through gets its error after three seconds")                                      \
  GAUGE(live_generations, "generations in the spill store that are not yet brought back")                          \
  GAUGE(live_entries, "operations in live generations")                                                            \
  GAUGE(live_bytes, "bytes of the keys and values in live generations")                                            \
  GAUGE(index_bytes,                                                                                               \
        "memory of the key index and the generations, with those that were brought back and "                      \
        "that snapshots and iterators still read")                                                                 \
  GAUGE(store_used_bytes, "bytes that the spill store holds on the drive")                                         \
  GAUGE(held_bytes, "of `store-used-bytes`: brought back, and kept for snapshots and iterators")                   \
  GAUGE(store_capacity_bytes, "bytes that the spill store may hold")                                               \
  FLAG(diverting, "1 while writes are diverted")                                                                   \
  FLAG(root_handed_out, "1 after GetRootDB or GetBaseDB: nothing is diverted until the database is reopened")

// Statistics by cause. PART(name, whole, label, value): `name` is the part of the statistic `whole` whose `label` is
// `value`. The parts of a statistic add up to it, in Prometheus as one metric with a label.
#define SPILLWAY_STATISTICS_BY_CAUSE(PART)                                                         \
  PART(waits_rocksdb, waits, cause, rocksdb)                                                       \
  PART(waits_rollback, waits, cause, rollback)                                                     \
  PART(waits_commits, waits, cause, commits)                                                       \
  PART(waits_low_priority, waits, cause, low_priority)                                             \
  PART(waits_pacing, waits, cause, pacing)                                                         \
  PART(wait_rocksdb_us, wait_us, cause, rocksdb)                                                   \
  PART(wait_rollback_us, wait_us, cause, rollback)                                                 \
  PART(wait_commits_us, wait_us, cause, commits)                                                   \
  PART(wait_low_priority_us, wait_us, cause, low_priority)                                         \
  PART(wait_pacing_us, wait_us, cause, pacing)                                                     \
  PART(stalls_diverted_memtable, stalls_diverted, cause, memtable)                                 \
  PART(stalls_diverted_l0, stalls_diverted, cause, l0)                                             \
  PART(stalls_diverted_pending_compaction_bytes, stalls_diverted, cause, pending_compaction_bytes) \
  PART(stalls_diverted_write_buffer_manager, stalls_diverted, cause, write_buffer_manager)         \
  PART(stalls_diverted_other, stalls_diverted, cause, other)

namespace spillway {

struct SpillStatistics {
#define SPILLWAY_NUMBER(name, text) std::uint64_t name = 0;
#define SPILLWAY_FLAG(name, text) bool name = false;
  SPILLWAY_STATISTICS(SPILLWAY_NUMBER, SPILLWAY_NUMBER, SPILLWAY_FLAG)
#undef SPILLWAY_NUMBER
#undef SPILLWAY_FLAG
};

// Calls `each(name, value)` for every statistic, in the order of the table; a flag's value is a bool.
template <typename Each>
void for_each_statistic(const SpillStatistics& statistics, const Each& each) {
#define SPILLWAY_EACH(name, text) each(std::string_view(#name), statistics.name);
  SPILLWAY_STATISTICS(SPILLWAY_EACH, SPILLWAY_EACH, SPILLWAY_EACH)
#undef SPILLWAY_EACH
}

// Counts as they have grown since `before`; gauges and flags as they are `now`.
inline SpillStatistics growth_since(const SpillStatistics& before, const SpillStatistics& now) {
  SpillStatistics growth = now;
#define SPILLWAY_GROWTH(name, text) growth.name -= before.name;
#define SPILLWAY_NOW(name, text)
  SPILLWAY_STATISTICS(SPILLWAY_GROWTH, SPILLWAY_NOW, SPILLWAY_NOW)
#undef SPILLWAY_GROWTH
#undef SPILLWAY_NOW
  return growth;
}

// "wait_us" → "wait-micros": the statistic's property is "spillway." and this.
inline std::string property_of_statistic(std::string_view name) {
  constexpr std::string_view kMicroseconds = "_us";
  std::string property(name);
  const std::size_t stem = name.size() < kMicroseconds.size() ? 0 : name.size() - kMicroseconds.size();
  if (name.substr(stem) == kMicroseconds) property.replace(stem, std::string::npos, "_micros");
  for (char& letter : property) letter = letter == '_' ? '-' : letter;
  return property;
}

}  // namespace spillway
