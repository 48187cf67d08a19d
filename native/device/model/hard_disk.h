// A rotating disk in virtual time, with the interface of the flash model (ssd/ssd.h): submit, next_event, advance.
//
//   access  = max(now, arrival + command) + seek(distance) + settle (writes) + wait for the sector
//   service = access + bytes / rate(place)
//   seek(d) = track + (full - track) sqrt(d),   d: share of the stroke;   0 for no distance
//
// This is the affine cost s + alpha N / B (M3), with s as the sum of its parts. One actuator serves one command at a
// time. A command that starts where the previous one ended continues streaming: the drive has read ahead, or is still
// writing the data before it.
//
// Queue. Of the first `queue_depth` commands the one with the shortest access time is next (SATF: Seltzer, Chen and
// Ousterhout, "Disk Scheduling Revisited", USENIX Winter 1990; Jacobson and Wilkes, "Disk scheduling algorithms based
// on rotational position", HPL-CSP-91-7, 1991; 32 is the depth of Serial ATA's native command queuing). SATF starves
// distant commands, so a command that was in the queue for `age_limit_ns` goes before all younger ones. Then of c
// commands in flight, c at most `queue_depth`, none takes longer than the limit and c + 1 services, or twice as many if
// the cache writes back. With a depth of 1 commands are served in the order of arrival, command_ns is part of each
// service, and k = 1 (P18).
//
// Write cache (none: write_cache.bytes = 0). A write is complete once it is in the cache, after the host link. A write
// that finds no room waits for it, and so do all writes after it. A write that is larger than the cache goes to the
// medium. Adjacent runs are written as one. Of the next `queue_depth` runs upwards from the head, and around the end,
// the one with the shortest access time is written back next: an elevator that picks by rotation within its window.
// Reads are served from the cache if it has every byte. Commands that need the medium go before write-back, unless a
// write or a flush waits for it or its oldest byte is older than the age limit; then the two alternate. After a read
// the drive waits some milliseconds for another one before it writes back.
//
// A flush is not queued, like FLUSH CACHE of ATA: it waits until all commands before it are complete and the cache is
// empty, and all commands after it wait for it. With write_cache.power_loss_protection it does not wait.
//
// Range: k = 1 with a depth of 1. With a larger depth, random reads gain (tests: a depth of 32 gains a factor of 2 to
// 3), as do random writes, with or without a cache. Sequential accesses run at the media rate in every case. Ignored:
// defects, loss of power (nothing is ever torn), more than one stream that is read ahead, and that outer tracks hold
// more sectors (addresses are spread evenly over the stroke).
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "device/model/dirty_extents.h"
#include "device/preset/drive_layers.h"
#include "ssd/interface/config.h"
#include "ssd/interface/counters.h"
#include "ssd/ssd.h"
#include "ssd/structures/ring.h"

namespace spillway::device {

class HardDisk {
 public:
  struct Format {
    std::uint64_t capacity_bytes = 0;
    std::uint32_t lba_bytes = 512;
    std::uint32_t mapping_unit_bytes = 4096;  // the unit in which cache hits are counted
    double host_link_mb_s = 600;
    ssd::WriteCacheConfig write_cache{0, false};
  };

  // REQUIRES: !problem(mechanics); capacity_bytes > 0
  HardDisk(const Mechanics& mechanics, const Format& format);

  // As in ssd::Ssd.
  void submit(ssd::Nanos now, const ssd::Command& command);
  std::optional<ssd::Nanos> next_event() const;
  void advance(ssd::Nanos now, std::vector<ssd::Completion>& done);
  std::size_t in_flight() const { return waiting_.size() + (at_medium_.host ? 1 : 0) + link_.size() + done_.size(); }

  std::uint64_t capacity_bytes() const { return format_.capacity_bytes; }
  // A disk relocates nothing: device write amplification is 1 (C3). Bytes that were written again before they reached
  // the medium count as written, and also in write_cache_overwrites.
  const ssd::Counters& counters() const { return counters_; }
  void reset_counters() { counters_ = ssd::Counters(); }

 private:
  struct Waiting {
    ssd::Command command;
    ssd::Nanos submitted = 0;
    std::optional<ssd::Nanos> queued = std::nullopt;  // when it became one of the first `queue_depth`
  };
  // A contiguous access to the medium.
  struct Access {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    ssd::Opcode op = ssd::Opcode::read;
    bool host = false;  // false: write-back
    ssd::Nanos submitted = 0;
  };
  struct AtMedium {
    bool busy = false;
    bool host = false;
    Access access;
    Waiting command;  // if host
    ssd::Nanos done_at = 0;
  };
  // Where the last transfer ended.
  struct Head {
    std::uint64_t bytes = 0;
    ssd::Nanos free_at = 0;
    ssd::Opcode op = ssd::Opcode::flush;
  };

  // --- Time
  void run_until(ssd::Nanos now);
  std::optional<ssd::Nanos> next_change() const;
  void end_access(ssd::Nanos now);

  // --- The queue
  void decide(ssd::Nanos now);
  void serve_without_medium(ssd::Nanos now);
  bool serve_from_cache(ssd::Nanos now, const Waiting& waiting, bool& writes_wait);
  bool serve_flush(ssd::Nanos now);
  bool holds(const Access& access) const;
  std::uint64_t held_bytes() const;  // dirty, or being written back
  std::size_t window() const;        // how many of waiting_ are in the drive's queue and not after a flush
  void answer(ssd::Nanos now, const Waiting& waiting, std::uint64_t bytes_over_link);

  // --- The actuator
  void choose_access(ssd::Nanos now);
  std::optional<std::size_t> choose_command(ssd::Nanos now) const;
  bool write_back_is_due(ssd::Nanos now) const;
  void begin_command(ssd::Nanos now, std::size_t index);
  void begin_write_back(ssd::Nanos now);
  void begin(ssd::Nanos now, const Access& access);
  ssd::Nanos taken_at(ssd::Nanos now, const Access& access) const;
  ssd::Nanos seek_ns(double from, double to) const;
  double rate_mb_s(std::uint64_t place) const;
  ssd::Nanos transfer_begins(ssd::Nanos now, const Access& access) const;

  Access access_of(const Waiting& waiting) const;
  bool transfers(const ssd::Command& command) const;
  bool out_of_range(const ssd::Command& command) const;
  bool fits_cache(const ssd::Command& command) const;
  std::uint64_t bytes_of(const ssd::Command& command) const {
    return std::uint64_t{command.lba_count} * format_.lba_bytes;
  }
  std::uint64_t units(std::uint64_t bytes) const;  // mapping units, partial ones included
  void count(const ssd::Command& command);

  const Mechanics mechanics_;
  const Format format_;
  std::deque<Waiting> waiting_;        // in the order of arrival
  ssd::Ring<ssd::Completion> link_;    // answered, on the link to the host, in order of time
  std::vector<ssd::Completion> done_;  // complete and not yet returned
  DirtyExtents dirty_;
  AtMedium at_medium_;
  Head head_;
  ssd::Nanos link_free_at_ = 0;
  ssd::Nanos write_back_from_ = 0;  // not earlier, unless something waits for it
  std::uint64_t write_backs_ = 0;
  bool wrote_back_last_ = false;
  bool write_back_wanted_ = false;  // a write or a flush waits for it
  ssd::Counters counters_;
};

}  // namespace spillway::device
