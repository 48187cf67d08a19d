// A RocksDB FileSystem on a Volume. Contents are in an ordinary directory of the host's file system; time and wear are
// those of the Volume's drive.
//
// Causes are derived from what RocksDB passes to its FileSystem, so unmodified programs are accounted for: from the
// file's name (.log, .blob, MANIFEST, and .spill of spillway::DB), and for tables from what the writer announces before
// its first append (see file_causes.h). Direct I/O is applied to the drive, and not to the host, whose directory may be
// a tmpfs.
#pragma once

#include <rocksdb/file_system.h>

#include <memory>

#include "fs/volume.h"

namespace spillway::fs {

struct RocksdbFileSystemOptions {
  // False: a sync takes the time that it takes on the emulated drive. Syncing the host's files as well would add the
  // time of another disk. A power failure of the host may then lose the run's database, but no measurement. True: the
  // host's drive is measured and the volume only observes. Files and directories are synced, preallocated, prefetched
  // and opened for direct I/O as RocksDB requests.
  bool host_sync = false;
};

// REQUIRES: volume outlives the file system and every file opened through it.
std::unique_ptr<rocksdb::FileSystem> make_rocksdb_file_system(
    Volume& volume, const RocksdbFileSystemOptions& options = {},
    const std::shared_ptr<rocksdb::FileSystem>& host = rocksdb::FileSystem::Default());

}  // namespace spillway::fs
