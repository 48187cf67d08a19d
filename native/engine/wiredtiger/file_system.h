// WiredTiger's file-system seam on a Volume: contents in an ordinary directory, time and wear on the Volume's drive. Or
// without one: the directory alone, with what happens when it fails (host_file.h).
//
// Causes are learnt from a file's name and from the thread that writes. WiredTigerLog.* and WiredTigerPreplog.* are
// `wal`; WiredTiger.wt and the turtle file are `manifest`. A data file (*.wt, the history store's too) is written by
// checkpoints, whose threads say so (CheckpointThread), and by eviction, in WiredTiger's threads or in an
// application's: that is `flush`, for it brings what was changed in memory to the drive.
#pragma once

#include <wiredtiger.h>

#include <memory>
#include <string>

#include "fs/volume.h"
#include "fs/write_counts.h"

namespace spillway::engine {

// While one lives, what its thread writes to data files is written for a checkpoint.
class CheckpointThread {
 public:
  CheckpointThread();
  ~CheckpointThread();
  CheckpointThread(const CheckpointThread&) = delete;
  CheckpointThread& operator=(const CheckpointThread&) = delete;

 private:
  const bool before_;
};

// What WiredTiger writes into a file of this name.
device::Cause wiredtiger_cause(const std::string& path, bool by_checkpoint);

class WiredtigerFileSystem {
 public:
  virtual ~WiredtigerFileSystem() = default;
  // For WT_CONNECTION::set_file_system.
  virtual WT_FILE_SYSTEM* seam() = 0;
  // The first thing that went wrong with the drive or with the host's files. WiredTiger is not told (host_file.h): who
  // uses it refuses its operations, also the one that was under way. The volume is not asked any more.
  virtual Status failure() const = 0;
};

// `volume` may be null: contents only. host_sync: see fs/rocksdb/file_system.h; without a volume, true.
// `writes` counts what is written into the host's files, by cause; it may be null.
// REQUIRES: volume and writes outlive the file system, which outlives the connection.
std::unique_ptr<WiredtigerFileSystem> make_wiredtiger_file_system(fs::Volume* volume, bool host_sync,
                                                                  fs::WriteCounts* writes);

}  // namespace spillway::engine
