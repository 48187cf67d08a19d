#include "lsm/drive_files.h"

#include <algorithm>
#include <cmath>

namespace spillway::lsm {
namespace {

std::uint64_t page_bytes_of(const device::DriveModel& drive) {
  return std::max<std::uint64_t>(DriveFiles::kPageBytes, drive.mapping_unit_bytes());
}

std::uint64_t pages_between(std::uint64_t first, std::uint64_t end) { return end - std::min(first, end); }

}  // namespace

DriveFiles::DriveFiles(device::DriveModel& drive, const DriveRegion& region)
    : drive_(drive),
      page_bytes_(page_bytes_of(drive)),
      first_page_((region.begin + page_bytes_ - 1) / page_bytes_),
      all_pages_(pages_between(first_page_, std::min(region.end, drive.capacity_bytes()) / page_bytes_)),
      free_(all_pages_) {}

std::uint64_t DriveFiles::pages_for(double bytes) const {
  return static_cast<std::uint64_t>(std::ceil(bytes / static_cast<double>(page_bytes_)));
}

bool DriveFiles::append(fs::ExtentList& place, std::uint64_t pages) {
  while (pages > 0) {
    const auto extent = free_.take(pages, cursor_);
    if (!extent) return false;
    place.append(*extent);
    cursor_ = extent->first_page + extent->pages;
    pages -= extent->pages;
  }
  peak_held_bytes_ = std::max(peak_held_bytes_, held_bytes());
  return true;
}

void DriveFiles::release(Nanos now, const fs::ExtentList& place, bool discard) {
  for (const fs::Extent& extent : place.extents()) free_.give_back(extent);
  if (discard && place.pages() > 0)
    submit(now, ssd::Opcode::deallocate, place.extents(), device::Cause::other, kNobody);
}

void DriveFiles::submit(Nanos now, ssd::Opcode op, std::span<const fs::Extent> extents, device::Cause cause,
                        Owner owner) {
  if (owner != kNobody && in_flight_.size() <= owner) in_flight_.resize(owner + 1, 0);
  for (const fs::Extent& extent : extents) {
    ssd::Command command;
    command.tag = owner;
    command.op = op;
    command.cause = static_cast<std::uint8_t>(cause);
    command.lba = (first_page_ + extent.first_page) * page_bytes_ / drive_.lba_bytes();
    command.lba_count = static_cast<std::uint32_t>(extent.pages * page_bytes_ / drive_.lba_bytes());
    if (owner != kNobody) ++in_flight_[owner];
    drive_.submit(now, command);
  }
}

void DriveFiles::read(Nanos now, std::span<const fs::Extent> extents, device::Cause cause, Owner owner) {
  submit(now, ssd::Opcode::read, extents, cause, owner);
}

void DriveFiles::write(Nanos now, std::span<const fs::Extent> extents, device::Cause cause, Owner owner) {
  submit(now, ssd::Opcode::write, extents, cause, owner);
}

void DriveFiles::flush(Nanos now, Owner owner) {
  const fs::Extent nowhere{0, 1};
  submit(now, ssd::Opcode::flush, std::span(&nowhere, 1), device::Cause::other, owner);
}

void DriveFiles::advance(Nanos now, std::vector<Owner>& ready) {
  done_.clear();
  drive_.advance(now, done_);
  for (const ssd::Completion& completion : done_) {
    refused_ = refused_ || completion.outcome != ssd::Outcome::success;
    const auto owner = static_cast<Owner>(completion.tag);
    if (owner != kNobody && --in_flight_[owner] == 0) ready.push_back(owner);
  }
}

Nanos DriveFiles::run_dry(Nanos now) {
  while (const auto next = drive_.next_event()) {
    now = std::max(now, *next);
    done_.clear();
    drive_.advance(now, done_);
  }
  return now;
}

}  // namespace spillway::lsm
