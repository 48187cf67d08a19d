// A batch that RocksDB and the spill store understand in the same way.
#pragma once

#include <rocksdb/options.h>
#include <rocksdb/write_batch.h>

#include "spill/live/column_families.h"

namespace spillway::spill {

// Copies a batch, with deletions in the place of single deletions.
//
// A SingleDelete takes the one Put before it along and nothing else. But what is brought back of a key is its newest
// version: the deletion between two Puts, one in RocksDB and one diverted, is not in RocksDB, and the older Put would
// be there again. So RocksDB is given deletions that hide everything.
//
// Operations on column families that are not there are left out with `skip_missing`, and `is_whole` says so; without it
// they are an InvalidArgument, as RocksDB says it.
rocksdb::Status copy_batch(const rocksdb::WriteBatch& batch, const ColumnFamilies& families, bool skip_missing,
                           rocksdb::WriteBatch* copy, bool* is_whole);

// A rate limiter of the user's is asked for what RocksDB would ask it for, were this written to its log.
void charge(const rocksdb::DBOptions& options, rocksdb::Env::IOPriority priority, std::size_t bytes);

}  // namespace spillway::spill
