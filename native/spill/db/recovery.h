// Opening: what the spill store holds, and how much of it is kept so that what survives a crash is a prefix (T26).
#pragma once

#include <rocksdb/status.h>

#include <vector>

#include "spill/commit/commits.h"
#include "spill/live/live_set.h"
#include "spill/main_db/main_db.h"
#include "spill/store/store.h"

namespace spillway::spill {

// What the spill store holds, read before RocksDB opens.
struct StoreContents {
  std::vector<GenerationId> generations;  // those with records, oldest first
  Survivors survivors;
  bool has_writes = false;  // some record is more than a note
};
rocksdb::Status read_contents(Store& store, StoreContents* contents);

// Makes live what of that is kept; the rest is cut off. NotSupported: a family's options have changed so that what lies
// there of it could not be brought back. REQUIRES: RocksDB is open, and nobody uses the database yet.
rocksdb::Status recover(const StoreContents& contents, MainDb& main, LiveSet& live, Commits& commits);

}  // namespace spillway::spill
