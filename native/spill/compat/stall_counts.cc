#include "spill/compat/stall_counts.h"

#include <cstdlib>
#include <map>
#include <string>

namespace spillway::spill {
namespace {

using Stats = std::map<std::string, std::string>;

// By both names that it has had.
std::optional<std::uint64_t> count_of(const Stats& stats, const char* name, const char* before_8_1) {
  auto found = stats.find(name);
  if (found == stats.end()) found = stats.find(std::string("io_stalls.") + before_8_1);
  if (found == stats.end()) return std::nullopt;
  return std::strtoull(found->second.c_str(), nullptr, 10);
}

}  // namespace

std::optional<StallCounts> stall_counts_of(rocksdb::DB& db, rocksdb::ColumnFamilyHandle* family) {
  Stats stats;
  // The first is a cheap part of the second, which every version has.
  if (!db.GetMapProperty(family, "rocksdb.cf-write-stall-stats", &stats) &&
      !db.GetMapProperty(family, rocksdb::DB::Properties::kCFStats, &stats)) {
    return std::nullopt;
  }
  StallCounts counts;
  const struct {
    std::uint64_t& count;
    const char* name;
    const char* before_8_1;
  } rows[] = {
      {counts.memtable.stopped, "memtable-limit-stops", "memtable_compaction"},
      {counts.memtable.delayed, "memtable-limit-delays", "memtable_slowdown"},
      {counts.l0.stopped, "l0-file-count-limit-stops", "level0_numfiles"},
      {counts.l0.delayed, "l0-file-count-limit-delays", "level0_slowdown"},
      {counts.pending_compaction_bytes.stopped, "pending-compaction-bytes-stops", "stop_for_pending_compaction_bytes"},
      {counts.pending_compaction_bytes.delayed, "pending-compaction-bytes-delays",
       "slowdown_for_pending_compaction_bytes"},
  };
  for (const auto& row : rows) {
    const auto found = count_of(stats, row.name, row.before_8_1);
    if (!found) return std::nullopt;
    row.count = *found;
  }
  return counts;
}

std::optional<std::uint64_t> memory_stops_of(rocksdb::DB& db) {
  Stats stats;
  if (!db.GetMapProperty("rocksdb.db-write-stall-stats", &stats)) return std::nullopt;
  return count_of(stats, "write-buffer-manager-limit-stops", "");
}

}  // namespace spillway::spill
