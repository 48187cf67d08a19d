// RocksDB's writable files: contents go to the host's file, time and wear to a File of the Volume.
#pragma once

#include <rocksdb/file_system.h>

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "fs/volume.h"

namespace spillway::fs {

// drive_full becomes NoSpace, stopped becomes Aborted, any other failure becomes IOError.
rocksdb::IOStatus to_io_status(const Status& status);

// Appends begin at `offset`. `host_sync`: as in RocksdbFileSystemOptions.
std::unique_ptr<rocksdb::FSWritableFile> make_writable_file(std::unique_ptr<rocksdb::FSWritableFile> host,
                                                            std::unique_ptr<File> file, const std::string& path,
                                                            const rocksdb::FileOptions& options, std::uint64_t offset,
                                                            bool host_sync);
std::unique_ptr<rocksdb::FSRandomRWFile> make_random_rw_file(std::unique_ptr<rocksdb::FSRandomRWFile> host,
                                                             std::unique_ptr<File> file, bool host_sync);

}  // namespace spillway::fs
