// A RocksDB FileSystem that counts the bytes written through it, by cause, and changes nothing else: reads, syncs,
// direct I/O, preallocation and mappings are forwarded. Causes are those of file_causes.h.
#pragma once

#include <rocksdb/file_system.h>

#include <memory>

#include "fs/write_counts.h"

namespace spillway::fs {

// REQUIRES: counts outlives the file system and every file opened through it.
std::unique_ptr<rocksdb::FileSystem> make_counting_file_system(WriteCounts& counts,
                                                               const std::shared_ptr<rocksdb::FileSystem>& files);

}  // namespace spillway::fs
