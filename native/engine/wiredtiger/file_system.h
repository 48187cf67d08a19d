// WiredTiger's file-system interface on a Volume: contents in an ordinary directory, time and wear on the Volume's
// drive. Or without a Volume: only the directory, and the handling of its failures (host_file.h).
//
// Causes are derived from a file's name and from the thread that writes. WiredTigerLog.* and WiredTigerPreplog.* are
// `wal`; WiredTiger.wt and the turtle file are `manifest`. Data files (*.wt, including the history store's) are written
// by checkpoints, whose threads have a CheckpointThread, and by eviction, in WiredTiger's threads or in an
// application's. That is `flush`, because it writes changes from memory to the drive.
#pragma once

#include <wiredtiger.h>

#include <memory>
#include <string>

#include "fs/volume.h"
#include "fs/write_counts.h"

namespace spillway::engine {

// While it exists, its thread's writes to data files belong to a checkpoint.
class CheckpointThread {
 public:
  CheckpointThread();
  ~CheckpointThread();
  CheckpointThread(const CheckpointThread&) = delete;
  CheckpointThread& operator=(const CheckpointThread&) = delete;

 private:
  const bool before_;
};

// The cause of writes to a file of this name.
device::Cause wiredtiger_cause(const std::string& path, bool by_checkpoint);

class WiredtigerFileSystem {
 public:
  virtual ~WiredtigerFileSystem() = default;
  // For WT_CONNECTION::set_file_system.
  virtual WT_FILE_SYSTEM* wt_file_system() = 0;
  // The first failure of the drive or of the host's files. It is not returned to WiredTiger (host_file.h): the engine
  // refuses its operations, including the current one. The volume is not used any more.
  virtual Status failure() const = 0;
};

// `volume` may be null: contents only. host_sync: see fs/rocksdb/file_system.h; without a volume, true.
// `writes` counts what is written into the host's files, by cause; it may be null.
// REQUIRES: volume and writes outlive the file system, which outlives the connection.
std::unique_ptr<WiredtigerFileSystem> make_wiredtiger_file_system(fs::Volume* volume, bool host_sync,
                                                                  fs::WriteCounts* writes);

}  // namespace spillway::engine
