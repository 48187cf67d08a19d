// A drive's pages, given out to files. Thread-safe.
#pragma once

#include <mutex>

#include "base/result.h"
#include "fs/extents.h"
#include "fs/volume.h"

namespace spillway::fs {

class DriveSpace {
 public:
  DriveSpace(std::uint64_t pages, const VolumeOptions& options) : options_(options), pages_(pages), free_(pages) {}

  enum class Ask { exactly, in_chunks };

  // Makes `file` at least `pages` long; in_chunks, ahead of what is needed, when there is space for that.
  // drive_full: the space there is does not do, and nothing was taken.
  Status grow(ExtentList& file, std::uint64_t pages, Ask ask, bool adopted);
  // Takes this very extent. False when part of it is taken, or behind the drive's end.
  bool take_exactly(const Extent& extent, bool adopted);
  void give_back(const std::vector<Extent>& extents, bool adopted);

  Space space() const;
  std::uint64_t cursor() const;
  void set_cursor(std::uint64_t page);

 private:
  Extent take(const ExtentList& file, std::uint64_t pages);
  Extent advance_cursor(const Extent& extent);

  const VolumeOptions options_;
  const std::uint64_t pages_;
  mutable std::mutex mutex_;
  FreeSpace free_;
  std::uint64_t cursor_ = 0;  // behind the last allocation
  std::uint64_t adopted_pages_ = 0;
};

}  // namespace spillway::fs
