#include "fs/drive_space.h"

#include <algorithm>
#include <cassert>
#include <string>

namespace spillway::fs {

Status DriveSpace::grow(ExtentList& file, std::uint64_t pages, Ask ask, bool adopted) {
  const std::uint64_t held = file.pages();
  if (held >= pages) return Status::ok();
  const std::uint64_t needed = pages - held;
  const std::lock_guard lock(mutex_);
  if (needed > free_.free_pages()) {
    return Status::error(Fault::drive_full, "no space on the drive: " + std::to_string(needed * kPageBytes) +
                                                " bytes are needed, " +
                                                std::to_string(free_.free_pages() * kPageBytes) + " of " +
                                                std::to_string(pages_ * kPageBytes) + " are free");
  }
  const std::uint64_t chunk =
      std::clamp(held, options_.min_chunk_bytes / kPageBytes, options_.max_chunk_bytes / kPageBytes);
  const bool ahead = ask == Ask::in_chunks && chunk > needed && chunk <= free_.free_pages();
  for (std::uint64_t wanted = ahead ? chunk : needed; wanted > 0;) {
    const Extent extent = take(file, wanted);
    file.append(extent);
    wanted -= extent.pages;
    if (adopted) adopted_pages_ += extent.pages;
  }
  return Status::ok();
}

bool DriveSpace::take_exactly(const Extent& extent, bool adopted) {
  const std::lock_guard lock(mutex_);
  if (!free_.take_exactly(extent)) return false;
  if (adopted) adopted_pages_ += extent.pages;
  return true;
}

void DriveSpace::give_back(const std::vector<Extent>& extents, bool adopted) {
  const std::lock_guard lock(mutex_);
  for (const Extent& extent : extents) {
    free_.give_back(extent);
    if (adopted) adopted_pages_ -= extent.pages;
  }
}

Space DriveSpace::space() const {
  const std::lock_guard lock(mutex_);
  return {.capacity_bytes = pages_ * kPageBytes,
          .held_bytes = (pages_ - free_.free_pages()) * kPageBytes,
          .free_bytes = free_.free_pages() * kPageBytes,
          .adopted_bytes = adopted_pages_ * kPageBytes};
}

std::uint64_t DriveSpace::cursor() const {
  const std::lock_guard lock(mutex_);
  return cursor_;
}

void DriveSpace::set_cursor(std::uint64_t page) {
  const std::lock_guard lock(mutex_);
  cursor_ = page;
}

// Takes the pages after the file's end if they are free, else by the placement policy. REQUIRES: mutex_ is held, and a
// page is free.
Extent DriveSpace::take(const ExtentList& file, std::uint64_t pages) {
  if (!file.extents().empty()) {
    const Extent& last = file.extents().back();
    const Extent next{last.first_page + last.pages, pages};
    if (free_.take_exactly(next)) return advance_cursor(next);
  }
  const auto extent = free_.take(pages, options_.placement == Placement::next_fit ? cursor_ : 0);
  assert(extent);
  return advance_cursor(*extent);
}

Extent DriveSpace::advance_cursor(const Extent& extent) {
  cursor_ = extent.first_page + extent.pages;
  return extent;
}

}  // namespace spillway::fs
