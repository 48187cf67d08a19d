// A copy of a write batch that means the same to RocksDB and to the spill store.
#pragma once

#include <rocksdb/options.h>
#include <rocksdb/write_batch.h>

#include "spill/live/column_families.h"

namespace spillway::spill {

// Copies a batch and replaces each single deletion by a deletion.
//
// A SingleDelete removes only the one Put before it. A rollback brings back only the newest version of each key. If one
// Put is in RocksDB and a later one is diverted, the SingleDelete between them is not in RocksDB, and the older Put
// would reappear. RocksDB therefore gets deletions, which hide every older version.
//
// With `skip_missing`, operations on column families that do not exist are left out, and `is_whole` is set to false.
// Without it they are an InvalidArgument, with RocksDB's text.
rocksdb::Status copy_batch(const rocksdb::WriteBatch& batch, const ColumnFamilies& families, bool skip_missing,
                           rocksdb::WriteBatch* copy, bool* is_whole);

// Requests `bytes` from the user's rate limiter, as RocksDB does for a write to its log.
void charge(const rocksdb::DBOptions& options, rocksdb::Env::IOPriority priority, std::size_t bytes);

}  // namespace spillway::spill
