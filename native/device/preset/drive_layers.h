// What surrounds a drive's medium and shapes its times: the host's software before it, a software cap in front of it,
// and, where the medium is a disk, its mechanics. Tables of a preset; zero means: not there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace spillway::device {

// The host's way to the drive and back: system calls, file system, block layer, driver (P16).
//
//   submit ── (one partial block at a time) ── serialised part ── drive ── complete
//
// Whoever issues a command pays for submit and complete on a processor of its own, beside all others. The serialised
// part (a lock, a queue, an interrupt's handler) serves in turns: who waits when a turn begins is served in it, each
// after the one before. A turn has a cost of its own, for work that is done once for all in it, who then leave
// together; and another one when they had to wait, for waking them. With both at 0 that is a lock. What is shared makes
// throughput go on growing slowly long after one command's own time has stopped being the limit.
struct HostStack {
  std::int64_t read_submit_ns = 0;
  std::int64_t write_submit_ns = 0;
  std::int64_t read_complete_ns = 0;
  std::int64_t write_complete_ns = 0;
  double read_copy_mb_s = 0;  // bytes, beside all others: a copy, one thread's page handling; 0: free
  double write_copy_mb_s = 0;
  std::int64_t read_turn_ns = 0;
  std::int64_t write_turn_ns = 0;
  std::int64_t read_wake_ns = 0;  // a turn for those who had to wait costs this more
  std::int64_t write_wake_ns = 0;
  double read_wake_mb_s = 0;  // and for the largest of them its bytes: they are slower when they do not follow at once
  double write_wake_mb_s = 0;
  std::int64_t read_serial_ns = 0;  // each command, within the turn
  std::int64_t write_serial_ns = 0;
  double read_serial_mb_s = 0;  // its bytes, within the turn; 0: free
  double write_serial_mb_s = 0;
  // Writes that are not whole blocks of this size go one at a time, each until it is complete: a file system must not
  // let two of them read, change and write one block at once. 0: they are like any others.
  std::uint32_t block_bytes = 0;
};

// A drive that somebody else's software rations, at the end of a network (P17).
struct Cap {
  double iops = 0;            // commands a second; 0: no cap
  double bandwidth_mb_s = 0;  // 0: no cap
  std::int64_t burst_ns = 0;  // an idle drive may be this far ahead of its ration
  std::int64_t read_network_ns = 0;
  std::int64_t write_network_ns = 0;
  // Writes are made durable together: who waits when a commit begins is part of it. 0: each by itself.
  std::int64_t commit_ns = 0;
};

// A rotating disk (P18, M3): seek, wait for the sector to come round, transfer. Data stays in its place. Its write
// cache is the [write_cache] of every drive, timing.host_link_mb_s the rate to and from it. revolution_ns of 0: the
// medium is flash.
struct Mechanics {
  std::int64_t revolution_ns = 0;
  std::int64_t track_seek_ns = 0;  // to the next track
  std::int64_t full_seek_ns = 0;   // across the disk; in between, time grows with the root of the distance
  std::int64_t write_settle_ns = 0;
  std::int64_t command_ns = 0;  // electronics and interface, each command
  double outer_mb_s = 0;        // media rate where addresses begin
  double inner_mb_s = 0;        // and where they end
  // Commands among which the drive chooses the nearest, and runs of its write cache. 1: the order of arrival.
  std::uint32_t queue_depth = 1;
  // Commands that were among them for longer go first, however far away. Several times the time in which a full queue
  // is served, or the order of arrival comes back. Source: guess
  std::int64_t age_limit_ns = 500'000'000;
};

struct Layers {
  HostStack host_stack;
  Cap cap;
  Mechanics disk;

  bool is_disk() const { return disk.revolution_ns > 0; }
  bool has_cap() const {
    return cap.iops > 0 || cap.bandwidth_mb_s > 0 || cap.read_network_ns > 0 || cap.write_network_ns > 0 ||
           cap.commit_ns > 0;
  }
};

struct LayerProblem {
  std::string key;
  std::string message;
};

// The first relation of a cap or a disk that does not hold, or nothing; and of a host stack, with its key relative to
// the stack's own table.
std::optional<LayerProblem> problem(const Cap& cap);
std::optional<LayerProblem> problem(const Mechanics& disk);
std::optional<LayerProblem> problem(const HostStack& stack);

}  // namespace spillway::device
