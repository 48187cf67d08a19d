// The files that a flush or a compaction writes: which keys, how many entries, where one file ends.
//
// Sweeps over the key ranges of the inputs. Between two ends of files the entries of each input are evenly spread, so
// what the merged ones hold follows from KeySpace::merged. Outputs end where RocksDB 7.8's would
// (CompactionOutputs::ShouldStopBefore): at the target size, or at an earlier end of a file of the level below the
// output ("grandparents"), so that later compactions rewrite less. Where values are separated, outputs refer to the
// blob files of the inputs whose entries they keep.
#pragma once

#include <cstdint>
#include <vector>

#include "lsm/tree.h"
#include "ssd/structures/random.h"

namespace spillway::lsm {

struct MergeSpec {
  Files inputs;                  // newest first, if they refer to blob files
  Files grandparents;            // of the level below the output, in order; may be empty
  double target_file_bytes = 0;  // 0: one output file
  bool align_to_grandparents = false;
  double most_overlap_bytes = 0;  // of one output with grandparents and itself (max_compaction_bytes)
  double entry_bytes = 0;
  std::vector<double> cuts;  // keys at which a file ends in any case, in order
};

// Keys that divide what files hold into ranges of `range_bytes`, the last one excepted, but at most into `most` ranges.
// As CompactionJob::GenSubcompactionBoundaries. REQUIRES: range_bytes > 0
std::vector<double> cuts_of(const Files& files, double range_bytes, std::size_t most);

// Output files without number and place, in the order of their keys. Their ends scatter by what is random in how many
// entries lie in a range. REQUIRES: !inputs.empty()
Files merge(const KeySpace& keys, const MergeSpec& spec, ssd::Random& random);

}  // namespace spillway::lsm
