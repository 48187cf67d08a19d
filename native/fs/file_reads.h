// Reads of a volume's files. Pages that are not in the page cache are read from the drive, with read-ahead for
// sequential readers.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "fs/extents.h"
#include "fs/inode.h"
#include "fs/page_cache.h"
#include "fs/passive_failure.h"
#include "fs/queue_pool.h"
#include "fs/volume.h"

namespace spillway::fs {

class FileReads {
 public:
  // REQUIRES: all outlive this.
  FileReads(QueuePool& queues, PageCache& cache, PassiveFailure& failure, const VolumeOptions& options)
      : queues_(queues), cache_(cache), failure_(failure), options_(options) {}

  // The contracts are those of File. REQUIRES: inode.mutex is not held.
  Status read(Inode& inode, File::ReadAhead& readahead, const std::vector<File::Range>& ranges, Access access,
              Cause cause);
  Result<std::unique_ptr<ReadInFlight>> begin(std::shared_ptr<Inode> inode, File::ReadAhead& readahead,
                                              const std::vector<File::Range>& ranges, Access access, Cause cause);

 private:
  struct Flight;

  std::vector<device::Io> reads_of(Inode& inode, File::ReadAhead& readahead, const std::vector<File::Range>& ranges,
                                   Access access, Cause cause, std::vector<Extent>& missing);
  void collect_missing(const Inode& inode, File::ReadAhead& readahead, std::uint64_t first, std::uint64_t last,
                       Access access, std::vector<Extent>& missing);
  void keep(const Inode& inode, const std::vector<Extent>& pages);

  QueuePool& queues_;
  PageCache& cache_;
  PassiveFailure& failure_;
  const VolumeOptions& options_;
};

}  // namespace spillway::fs
