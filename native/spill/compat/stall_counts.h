// How often RocksDB has stopped and delayed the writers of a column family, by cause. The names of these counts
// changed in RocksDB 8.1.
#pragma once

#include <rocksdb/db.h>

#include <cstdint>
#include <optional>

namespace spillway::spill {

struct StallCounts {
  struct Cause {
    std::uint64_t stopped = 0;
    std::uint64_t delayed = 0;
  };
  Cause memtable;
  Cause l0;
  Cause pending_compaction_bytes;
};

// Nothing: RocksDB does not say, or under names that are not known here.
std::optional<StallCounts> stall_counts_of(rocksdb::DB& db, rocksdb::ColumnFamilyHandle* family);

// How often a write met a WriteBufferManager that stops writers. Nothing: before RocksDB 8.1, which does not count it.
std::optional<std::uint64_t> memory_stops_of(rocksdb::DB& db);

}  // namespace spillway::spill
