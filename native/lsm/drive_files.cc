#include "lsm/drive_files.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace spillway::lsm {
namespace {

constexpr std::uint64_t kChunkBefore = 1048576;  // bytes of a write before time begins, as of a compaction

constexpr Nanos kEndOfTime = std::numeric_limits<Nanos>::max() / 2;

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
  for (const fs::Extent& extent : extents) {
    send(now, op, extent.first_page * page_bytes_, extent.pages * page_bytes_, cause, owner);
  }
}

void DriveFiles::send(Nanos now, ssd::Opcode op, std::uint64_t first_byte, std::uint64_t bytes, device::Cause cause,
                      Owner owner) {
  if (owner != kNobody && in_flight_.size() <= owner) in_flight_.resize(owner + 1, 0);
  ssd::Command command;
  command.tag = owner;
  command.op = op;
  command.cause = static_cast<std::uint8_t>(cause);
  command.lba = (first_page_ * page_bytes_ + first_byte) / drive_.lba_bytes();
  command.lba_count = static_cast<std::uint32_t>(bytes / drive_.lba_bytes());
  if (owner != kNobody) ++in_flight_[owner];
  drive_.submit(origin_ + now, command);
}

void DriveFiles::read(Nanos now, std::span<const fs::Extent> extents, device::Cause cause, Owner owner) {
  submit(now, ssd::Opcode::read, extents, cause, owner);
}

void DriveFiles::read_bytes(Nanos now, const fs::ExtentList& place, double offset, double bytes, device::Cause cause,
                            Owner owner) {
  const std::uint64_t end = place.pages() * page_bytes_;
  const auto first = std::min(static_cast<std::uint64_t>(offset) / kPageBytes * kPageBytes, end - kPageBytes);
  const auto last = std::min(static_cast<std::uint64_t>(std::ceil((offset + bytes) / kPageBytes)) * kPageBytes, end);
  const std::uint64_t first_page = first / page_bytes_;
  std::uint64_t skipped = first - first_page * page_bytes_;  // of the first extent
  std::uint64_t left = std::max(last, first + kPageBytes) - first;
  for (const fs::Extent& extent : place.slice(first_page, (last - 1) / page_bytes_ + 1 - first_page)) {
    const std::uint64_t here = std::min(left, extent.pages * page_bytes_ - skipped);
    send(now, ssd::Opcode::read, extent.first_page * page_bytes_ + skipped, here, cause, owner);
    left -= here;
    skipped = 0;
  }
}

void DriveFiles::write(Nanos now, std::span<const fs::Extent> extents, device::Cause cause, Owner owner) {
  submit(now, ssd::Opcode::write, extents, cause, owner);
}

bool DriveFiles::write_before(const fs::ExtentList& place) {
  const std::uint64_t chunk = std::max<std::uint64_t>(1, kChunkBefore / page_bytes_);
  std::size_t left = 0;
  for (std::uint64_t at = 0; at < place.pages(); at += chunk) {
    const auto extents = place.slice(at, std::min(chunk, place.pages() - at));
    submit(0, ssd::Opcode::write, extents, device::Cause::other, kNobody);
    left += extents.size();
  }
  while (left > 0) {
    const auto next = drive_.next_event();
    assert(next);
    origin_ = std::max(origin_, *next);
    done_.clear();
    drive_.advance(origin_, done_);
    for (const ssd::Completion& completion : done_) {
      refused_ = refused_ || completion.outcome != ssd::Outcome::success;
    }
    left -= done_.size();
  }
  return !refused_;
}

void DriveFiles::begin_time() {
  origin_ += run_dry(0);
  reset_counters();
}

std::optional<Nanos> DriveFiles::next_event() const {
  const auto next = drive_.next_event();
  return next ? std::optional(*next - origin_) : next;
}

void DriveFiles::flush(Nanos now, Owner owner) {
  const fs::Extent nowhere{0, 1};
  submit(now, ssd::Opcode::flush, std::span(&nowhere, 1), device::Cause::other, owner);
}

void DriveFiles::advance(Nanos now, std::vector<Owner>& ready) {
  done_.clear();
  drive_.advance(origin_ + now, done_);
  take_done(ready);
}

std::optional<Nanos> DriveFiles::advance_to_completion(std::optional<Nanos> until, std::vector<Owner>& ready) {
  done_.clear();
  drive_.advance_to_completion(until ? origin_ + *until : kEndOfTime, done_);
  take_done(ready);
  return done_.empty() ? std::nullopt : std::optional(done_.back().completed - origin_);
}

void DriveFiles::take_done(std::vector<Owner>& ready) {
  for (const ssd::Completion& completion : done_) {
    refused_ = refused_ || completion.outcome != ssd::Outcome::success;
    const auto owner = static_cast<Owner>(completion.tag);
    if (owner != kNobody && --in_flight_[owner] == 0) ready.push_back(owner);
  }
}

Nanos DriveFiles::run_dry(Nanos now) {
  while (const auto next = next_event()) {
    now = std::max(now, *next);
    done_.clear();
    drive_.advance(origin_ + now, done_);
  }
  return now;
}

}  // namespace spillway::lsm
