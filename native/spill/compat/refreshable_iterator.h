// An iterator with one way to be refreshed, in every version of RocksDB.
#pragma once

#include <rocksdb/iterator.h>

#include "spill/compat/rocksdb_version.h"

namespace spillway::spill {

// From RocksDB 8.7 on an iterator can be moved to another snapshot, and Refresh() moves one that reads a snapshot to
// the current state. Before, it refuses.
#if SPILLWAY_ROCKSDB_AT_LEAST(8, 7)
constexpr bool kRefreshLeavesSnapshots = true;
#else
constexpr bool kRefreshLeavesSnapshots = false;
#endif

class RefreshableIterator : public rocksdb::Iterator {
 public:
  rocksdb::Status Refresh() final { return refresh_to(nullptr); }
#if SPILLWAY_ROCKSDB_AT_LEAST(8, 7)
  rocksdb::Status Refresh(const rocksdb::Snapshot* snapshot) final { return refresh_to(snapshot); }
#endif

 protected:
  // Null: the current state.
  virtual rocksdb::Status refresh_to(const rocksdb::Snapshot* snapshot) = 0;
};

}  // namespace spillway::spill
