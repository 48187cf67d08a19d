// Why RocksDB writes a file, derived from its calls to the FileSystem.
#pragma once

#include <rocksdb/env.h>

#include <string>

#include "fs/volume.h"

namespace spillway::fs {

// Whether a file of this name is a table of RocksDB.
bool is_table(const std::string& path);

// The cause of writes to a file of this name. `other` for a table, whose cause depends on its writer.
Cause cause_of_name(const std::string& path);

// Why RocksDB (7.8.3 and later) writes a table. A compaction announces how much it will preallocate, a flush does not.
// The priority is IO_LOW for a compaction and IO_HIGH for a flush, but IO_USER for both during a write stall.
Cause cause_of_table(rocksdb::Env::IOPriority priority, bool preallocates);

}  // namespace spillway::fs
