// Where a run may go in RocksDB's levels, so that it is not rewritten in each of them on its way down.
//
// RocksDB puts a file that it ingests into the deepest level above everything that overlaps it. Behind a burst a run is
// large beside what RocksDB was given before. So the little that lies above level n + 1 is compacted into that level,
// and the run is ingested into level n (docs/decisions/0048).
#pragma once

#include <rocksdb/comparator.h>
#include <rocksdb/db.h>
#include <rocksdb/metadata.h>
#include <rocksdb/options.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "spill/live/column_families.h"
#include "spill/rollback/merged_run.h"

namespace spillway::spill {

struct LevelBytes {
  double there = 0;
  double target = 0;  // RocksDB compacts what is beyond it; no matter for L0, and infinite for the last level
};

// Bytes that are rewritten for a run of so many that is ingested into `level`, 0: as one more file of L0, until no
// level has more than its target. What lies above level + 1 is compacted into that before. `base`: the first level
// below L0 that RocksDB uses. What moves down is taken to overlap as large a share of the level below as it is of its
// own.
double bytes_rewritten(std::vector<LevelBytes> levels, int base, int level, double run_bytes);

// Of those, the bytes that have to be compacted before anything of the run is ingested; 0 for level 0.
double bytes_in_the_way(const std::vector<LevelBytes>& levels, int base, int level);

// The level for which the least is rewritten, the uppermost of several; 0 if none is clearly cheaper than L0, if the
// run is small beside the first level, or if more lies in the way than twice the run, or than a GiB.
int cheapest_level(const std::vector<LevelBytes>& levels, int base, double run_bytes);

// Whether a family's levels may be used so: leveled, in one directory, with no other rule of where data lies.
bool has_plain_levels(const rocksdb::ColumnFamilyOptions& options, const rocksdb::DBOptions& database);

struct RunPlace {
  std::uint32_t column_family = 0;
  KeyRange range;  // of the run, both keys included
  int level = 0;   // at least 1
  int base_level = 1;
  std::uint64_t file_bytes = 0;      // of each file of the run, about
  std::uint64_t most_compacted = 0;  // bytes, before anything of the run is ingested
};

// Nothing: L0. REQUIRES: the family has a handle.
std::optional<RunPlace> choose_place(rocksdb::DB& db, const ColumnFamily& family, const KeyRange& range,
                                     std::uint64_t run_bytes);

// The files that keep RocksDB from that place.
struct InTheWay {
  std::vector<std::string> files;
  // RocksDB compacts them together with all older files of L0 and, level by level, with what the files overlap that it
  // has by then, so with more than what overlaps the run. Source: CompactionPicker::SanitizeCompactionInputFiles
  std::uint64_t compacted_bytes = 0;
  bool is_being_compacted = false;  // one of all these
};
InTheWay in_the_way(const rocksdb::ColumnFamilyMetaData& family, const rocksdb::Comparator& order,
                    const RunPlace& place);

// What compacts these files into the level below the place. RocksDB may refuse, if it has begun to compact one of them.
// It holds the family's handle.
std::function<void()> emptying(rocksdb::DB& db, UsedColumnFamily family, const RunPlace& place,
                               std::vector<std::string> files);

}  // namespace spillway::spill
