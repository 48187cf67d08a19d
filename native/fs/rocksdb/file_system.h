// RocksDB's file-system seam on a Volume: contents in an ordinary directory, through the host's own file system; time
// and wear on the Volume's drive.
//
// Causes are learnt from what RocksDB says at its seam, so that unmodified programs are accounted for: the file's name
// (.log, .blob, MANIFEST, and .spill of spillway::DB), and for tables what the writer announces before its first append
// (see file_causes.h). Direct I/O is honoured towards the drive and stripped towards the host, whose directory may be
// a tmpfs.
#pragma once

#include <rocksdb/file_system.h>

#include <memory>

#include "fs/volume.h"

namespace spillway::fs {

struct RocksdbFileSystemOptions {
  // A sync costs what it costs on the emulated drive. Syncing the host's files as well would add the time of another
  // disk to it; without, a power failure of the host may lose the run's database, but nothing that was measured.
  // With it the host's drive is the one that is measured, and the volume only watches: files and directories are
  // synced, preallocated, prefetched and opened for direct I/O as RocksDB asks.
  bool host_sync = false;
};

// REQUIRES: volume outlives the file system and every file opened through it.
std::unique_ptr<rocksdb::FileSystem> make_rocksdb_file_system(
    Volume& volume, const RocksdbFileSystemOptions& options = {},
    const std::shared_ptr<rocksdb::FileSystem>& host = rocksdb::FileSystem::Default());

}  // namespace spillway::fs
