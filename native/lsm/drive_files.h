// Files on a drive in virtual time: which pages they take, and the commands that read and write them.
//
// An *owner* waits for a request, which may be several commands. advance() names the owners whose requests completed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "device/device.h"
#include "device/model/drive_model.h"
#include "fs/extents.h"
#include "lsm/spec.h"

namespace spillway::lsm {

using ssd::Nanos;
using Owner = std::uint32_t;
inline constexpr Owner kNobody = 0xFFFFFFFF;

class DriveFiles {
 public:
  static constexpr std::uint64_t kPageBytes = 4096;  // of the host's file system

  // Files lie in `region`, in whole pages of it. REQUIRES: an idle drive, which nobody else uses meanwhile
  explicit DriveFiles(device::DriveModel& drive, const DriveRegion& region = {});

  std::uint64_t page_bytes() const { return page_bytes_; }
  std::uint64_t pages_for(double bytes) const;
  std::uint64_t held_bytes() const { return (all_pages_ - free_.free_pages()) * page_bytes_; }
  std::uint64_t peak_held_bytes() const { return peak_held_bytes_; }

  // Makes a file longer. False: the drive is full; what was taken before is in `place`.
  bool append(fs::ExtentList& place, std::uint64_t pages);
  // Frees a file's pages, and tells the drive if `discard`.
  void release(Nanos now, const fs::ExtentList& place, bool discard);

  // REQUIRES: the owner has no request in flight; !extents.empty()
  void read(Nanos now, std::span<const fs::Extent> extents, device::Cause cause, Owner owner);
  void write(Nanos now, std::span<const fs::Extent> extents, device::Cause cause, Owner owner);
  // Reads so many bytes from `offset` of a file on, in whole pages of the host's file system.
  // REQUIRES: as of read(); the file is no shorter than offset + bytes
  void read_bytes(Nanos now, const fs::ExtentList& place, double offset, double bytes, device::Cause cause,
                  Owner owner);
  // Writes what lies on the drive before time begins. False: the drive is full. REQUIRES: nothing in flight
  bool write_before(const fs::ExtentList& place);
  // It is 0 again, the drive is idle, and nothing of what was done before is counted. REQUIRES: as above
  void begin_time();
  // What the drive has done is not counted. What is in flight is, as far as it is not done.
  void reset_counters() { drive_.reset_counters(); }
  // Makes what was written durable: an NVMe flush.
  void flush(Nanos now, Owner owner);

  std::optional<Nanos> next_event() const;
  // Appends the owners whose requests are complete.
  void advance(Nanos now, std::vector<Owner>& ready);
  // Goes on to `until` (nothing: as far as the drive goes), but no further than to the first time at which commands are
  // complete. Returns it, if there is one, and appends the owners whose requests are complete.
  std::optional<Nanos> advance_to_completion(std::optional<Nanos> until, std::vector<Owner>& ready);
  // Ends when the drive does no more work of its own (its write cache is empty).
  Nanos run_dry(Nanos now);

  bool refused() const { return refused_; }  // the drive has refused a command
  const ssd::Counters& counters() const { return drive_.counters(); }

 private:
  void take_done(std::vector<Owner>& ready);
  void submit(Nanos now, ssd::Opcode op, std::span<const fs::Extent> extents, device::Cause cause, Owner owner);
  void send(Nanos now, ssd::Opcode op, std::uint64_t first_byte, std::uint64_t bytes, device::Cause cause, Owner owner);

  device::DriveModel& drive_;
  const std::uint64_t page_bytes_;
  const std::uint64_t first_page_;  // of the region
  const std::uint64_t all_pages_;   // in the region
  fs::FreeExtents free_;            // pages count from the region's first one
  std::uint64_t cursor_ = 0;        // after the last allocation
  std::uint64_t peak_held_bytes_ = 0;
  Nanos origin_ = 0;                      // of the time here, in the drive's
  std::vector<std::uint32_t> in_flight_;  // commands of an owner's request
  std::vector<ssd::Completion> done_;
  bool refused_ = false;
};

}  // namespace spillway::lsm
