// Point queries and scans of a tree at rest, by k threads, on the drive model.
//
// A point query looks into the runs from the newest to the oldest, until it finds its key: in each run whose files
// cover the key it reads one block, unless a filter says that the key is not there (M16, M29). A scan positions every
// run, then reads the blocks of its pairs, with RocksDB's automatic read-ahead (from the third block on 8 KiB, doubled
// up to 256 KiB). A separated value is one more read at random, of a scan for each of its pairs. Index and filter
// blocks are in memory; there is no block cache.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "lsm/drive_files.h"
#include "lsm/figures.h"
#include "lsm/simulation.h"
#include "lsm/tree.h"

namespace spillway::lsm {

struct QueryRun {
  const Spec& spec;
  const QuerySpec& query;
  const KeySpace& keys;
  const Tree& tree;
  const fs::ExtentList* anywhere;  // reads go there, in place of the tree's files; null: to the files
  const fs::ExtentList& blobs;     // all blob files
  EntryBytes entry;
  std::uint64_t seed;
  std::function<bool()> goes_on;  // asked from time to time; false: the run ends early
};

// Advances `now` to its end. Nothing: it ended early. REQUIRES: nothing else uses the drive meanwhile
std::optional<QueryFigures> run_query(const QueryRun& run, DriveFiles& files, Nanos& now);

}  // namespace spillway::lsm
