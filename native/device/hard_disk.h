// A rotating disk in virtual time, with the face of the flash model (ssd/ssd.h): submit, next_event, advance.
//
//   service = command + seek(distance) + wait for the sector + bytes / rate(place)
//   seek(d) = track + (full - track) sqrt(d),   d: share of the stroke;   0 for no distance
//
// That is the affine cost s + alpha N / B (M3) with s made of what it consists of. Commands are served one at a time in
// the order of arrival, so that k = 1 (P18). A command that goes on where the one before ended keeps streaming: the
// drive's buffer has read ahead, or not yet written behind.
//
// Range: k = 1. Ignored: reordering of queued commands (NCQ), the write cache, defects, and that outer tracks hold more
// sectors (addresses are spread evenly over the stroke).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "device/drive_layers.h"
#include "ssd/counters.h"
#include "ssd/ring.h"
#include "ssd/ssd.h"

namespace spillway::device {

class HardDisk {
 public:
  // REQUIRES: !problem(mechanics); capacity_bytes > 0
  HardDisk(const Mechanics& mechanics, std::uint64_t capacity_bytes, std::uint32_t lba_bytes);

  // As of ssd::Ssd.
  void submit(ssd::Nanos now, const ssd::Command& command);
  std::optional<ssd::Nanos> next_event() const;
  void advance(ssd::Nanos now, std::vector<ssd::Completion>& done);
  std::size_t in_flight() const { return waiting_.size(); }

  std::uint64_t capacity_bytes() const { return capacity_bytes_; }
  // What the host wrote is what reaches the medium: device write amplification is 1 (C3).
  const ssd::Counters& counters() const { return counters_; }
  void reset_counters() { counters_ = ssd::Counters(); }

 private:
  struct Waiting {
    ssd::Command command;
    ssd::Nanos submitted = 0;
  };

  void begin_next(ssd::Nanos now);
  ssd::Nanos service_end(ssd::Nanos now, const ssd::Command& command);
  ssd::Nanos seek_ns(double from, double to) const;
  bool transfers(const ssd::Command& command) const;
  bool out_of_range(const ssd::Command& command) const;
  void count(const ssd::Command& command);

  const Mechanics mechanics_;
  const std::uint64_t capacity_bytes_;
  const std::uint32_t lba_bytes_;
  ssd::Ring<Waiting> waiting_;  // the first one is in service
  ssd::Nanos done_at_ = 0;      // of the one in service
  // Where the last transfer ended.
  std::uint64_t head_bytes_ = 0;
  ssd::Nanos media_free_at_ = 0;
  ssd::Opcode last_op_ = ssd::Opcode::flush;
  ssd::Counters counters_;
};

}  // namespace spillway::device
