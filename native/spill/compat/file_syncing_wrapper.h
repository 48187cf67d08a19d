// A FileSystemWrapper whose files see every sync. From 11.5 on RocksDB syncs the files that it ingests by name, which a
// FileSystemWrapper passes on to the file system below, past the files that a subclass wraps.
#pragma once

#include <rocksdb/file_system.h>

#include <string>

#include "spill/compat/rocksdb_version.h"

namespace spillway::spill {

class FileSyncingWrapper : public rocksdb::FileSystemWrapper {
 public:
  using rocksdb::FileSystemWrapper::FileSystemWrapper;

#if SPILLWAY_ROCKSDB_AT_LEAST(11, 5)
  // Reopens the file for writing, as RocksDB did before.
  rocksdb::IOStatus SyncFile(const std::string& path, const rocksdb::FileOptions& file_options,
                             const rocksdb::IOOptions& options, bool use_fsync, rocksdb::IODebugContext* dbg) override {
    return rocksdb::FileSystem::SyncFile(path, file_options, options, use_fsync, dbg);  // NOLINT: not the wrapper's
  }
#endif
};

}  // namespace spillway::spill
