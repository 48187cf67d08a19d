// Recovery: reads the spill store, and keeps the records with which the survivors of a crash are a prefix (T26).
#pragma once

#include <rocksdb/status.h>

#include <vector>

#include "spill/commit/commits.h"
#include "spill/live/live_set.h"
#include "spill/main_db/main_db.h"
#include "spill/store/store.h"

namespace spillway::spill {

// The contents of the spill store, read before RocksDB opens.
struct StoreContents {
  std::vector<GenerationId> generations;  // those with records, oldest first
  Survivors survivors;
  bool has_writes = false;  // a record that is not a note was found
};
rocksdb::Status read_contents(Store& store, StoreContents* contents);

// Makes the kept records live and truncates the store after them. NotSupported: a family's options have changed, so
// that its records could not be brought back. REQUIRES: RocksDB is open, and the database is not in use yet.
rocksdb::Status recover(const StoreContents& contents, MainDb& main, LiveSet& live, Commits& commits);

}  // namespace spillway::spill
