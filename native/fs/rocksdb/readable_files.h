// RocksDB's readable files: bytes come from the host's file, time from a File of the Volume.
#pragma once

#include <rocksdb/file_system.h>

#include <memory>

#include "fs/volume.h"

namespace spillway::fs {

// `cause`: of reads that RocksDB does not attribute; a compaction's reads are charged to the compaction. `host_sync`:
// as in RocksdbFileSystemOptions.
std::unique_ptr<rocksdb::FSRandomAccessFile> make_random_access_file(std::unique_ptr<rocksdb::FSRandomAccessFile> host,
                                                                     std::unique_ptr<File> file, Cause cause,
                                                                     const rocksdb::FileOptions& options,
                                                                     bool has_page_cache, bool host_sync);
std::unique_ptr<rocksdb::FSSequentialFile> make_sequential_file(std::unique_ptr<rocksdb::FSRandomAccessFile> host,
                                                                std::unique_ptr<File> file, Cause cause,
                                                                const rocksdb::FileOptions& options);

// For Poll() and AbortIO(), with the handle of one ReadAsync() of a file of make_random_access_file(). Callable by any
// thread, one at a time. finish_async_read() waits for the drive and calls the callback.
void finish_async_read(void* handle);
void abort_async_read(void* handle);

}  // namespace spillway::fs
