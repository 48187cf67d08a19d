// Allocates a drive's pages to files. Thread-safe.
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

  // Makes `file` at least `pages` long. With in_chunks, allocates more than is needed if there is space. drive_full:
  // not enough space; nothing was taken.
  Status grow(ExtentList& file, std::uint64_t pages, Ask ask, bool adopted);
  // Takes exactly this extent. False if part of it is taken, or beyond the drive's end.
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
  FreeExtents free_;
  std::uint64_t cursor_ = 0;  // after the last allocation
  std::uint64_t adopted_pages_ = 0;
};

}  // namespace spillway::fs
