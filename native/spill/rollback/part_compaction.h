// Moves a part of a run that was ingested into L0 straight into the level where most of its keys lie.
//
// RocksDB would rewrite the part once in each level on its way down. A run of a large part of the spill store is as
// large as those levels, so it gains nothing there. A part covers a small range of keys, so the compaction is small.
#pragma once

#include <rocksdb/comparator.h>
#include <rocksdb/db.h>
#include <rocksdb/metadata.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "spill/live/column_families.h"

namespace spillway::spill {

struct PartCompaction {
  std::vector<std::string> inputs;
  int output_level = 0;
};

// The limits within which one is chosen.
struct LevelLimits {
  int base_level = 1;      // the first below L0 that RocksDB uses
  int deepest_level = 64;  // that may be compacted into
  double most_ratio = 5;   // bytes that are rewritten for each byte of L0
};

// The compaction of L0's files with everything that overlaps them down to the deepest level to which no more is
// rewritten than the limits allow. Nothing: L0 is empty, a file is being compacted, or it would rewrite too much.
std::optional<PartCompaction> compaction_of_l0(const rocksdb::ColumnFamilyMetaData& family,
                                               const rocksdb::Comparator& order, const LevelLimits& limits);

// Whether a family's levels may be compacted so: leveled, by itself, in one directory, with no other rule of where data
// lies.
bool has_plain_levels(const rocksdb::ColumnFamilyOptions& options, const rocksdb::DBOptions& database);

// Compacts L0 so, and waits for the end; `only_to_base`: into the first level below L0 and no further. It takes one of
// RocksDB's compaction threads, so that no more compactions run than the user allows; if none becomes free for some
// seconds, or a file is being compacted, what is there is left to RocksDB. REQUIRES: no note is owed, and no rollback
// ingests meanwhile.
void compact_l0(rocksdb::DB& db, const ColumnFamily& family, bool only_to_base);

}  // namespace spillway::spill
