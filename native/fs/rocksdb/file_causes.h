// Why RocksDB writes a file, from what it says at the seam of its file system.
#pragma once

#include <rocksdb/env.h>

#include <string>

#include "fs/volume.h"

namespace spillway::fs {

// Whether RocksDB keeps a table under this name.
bool is_table(const std::string& path);

// What RocksDB writes into a file of this name; `other` for a table, whose cause its writer announces.
Cause cause_of_name(const std::string& path);

// Why RocksDB (7.8.3 and later) writes a table: compaction announces how much it will preallocate, flush does not; and
// the priority is IO_LOW for compaction, IO_HIGH for flush, but IO_USER for both while writers are held back.
Cause cause_of_table(rocksdb::Env::IOPriority priority, bool preallocates);

}  // namespace spillway::fs
