// The layers around a drive's medium that affect its times: the host's software, a software cap, and, if the medium is
// a disk, its mechanics. Tables of a preset; zero means that the layer does not exist.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace spillway::device {

// The host's software path to the drive and back: system calls, file system, block layer, driver (P16).
//
//   submit ── (one partial block at a time) ── serialised part ── drive ── complete
//
// Submit and complete run on the issuing thread's own processor, concurrently with all others. The serialised part (a
// lock, a queue, an interrupt's handler) serves in turns: the commands that wait when a turn begins are served in it,
// one after another. A turn has a fixed cost, for work that is done once for all of its commands, which then leave
// together; and another fixed cost if they had to wait, for waking them. With both at 0 it is a lock. The shared cost
// makes throughput grow slowly with concurrency long after one command's own time has stopped being the limit.
struct HostStack {
  std::int64_t read_submit_ns = 0;
  std::int64_t write_submit_ns = 0;
  std::int64_t read_complete_ns = 0;
  std::int64_t write_complete_ns = 0;
  double read_copy_mb_s = 0;  // bytes, concurrent with all others: a copy, one thread's page handling; 0: no time
  double write_copy_mb_s = 0;
  std::int64_t read_turn_ns = 0;
  std::int64_t write_turn_ns = 0;
  std::int64_t read_wake_ns = 0;  // additional cost of a turn whose commands had to wait
  std::int64_t write_wake_ns = 0;
  double read_wake_mb_s = 0;  // and the bytes of the largest of them: they are slower if they do not follow at once
  double write_wake_mb_s = 0;
  std::int64_t read_serial_ns = 0;  // per command, within the turn
  std::int64_t write_serial_ns = 0;
  double read_serial_mb_s = 0;  // its bytes, within the turn; 0: no time
  double write_serial_mb_s = 0;
  // Writes that are not whole blocks of this size are served one at a time, each until it is complete: a file system
  // must not let two of them read, change and write one block at once. 0: they are served like any others.
  std::uint32_t block_bytes = 0;
};

// A drive at the end of a network, whose rate is limited by a provider's software (P17).
struct Cap {
  double iops = 0;            // commands per second; 0: no cap
  double bandwidth_mb_s = 0;  // 0: no cap
  std::int64_t burst_ns = 0;  // how far an idle drive may exceed its rate afterwards
  std::int64_t read_network_ns = 0;
  std::int64_t write_network_ns = 0;
  // Writes are made durable together: a commit includes the writes that wait when it begins. 0: each by itself.
  std::int64_t commit_ns = 0;
};

// A rotating disk (P18, M3): seek, wait for the sector, transfer. Data stays in its place. Its write cache is the
// [write_cache] of every drive, and timing.host_link_mb_s the rate of its link. revolution_ns of 0: the medium is
// flash.
struct Mechanics {
  std::int64_t revolution_ns = 0;
  std::int64_t track_seek_ns = 0;  // to the next track
  std::int64_t full_seek_ns = 0;   // across the whole disk; in between, time grows with the root of the distance
  std::int64_t write_settle_ns = 0;
  std::int64_t command_ns = 0;  // electronics and interface, per command
  double outer_mb_s = 0;        // media rate at the first address
  double inner_mb_s = 0;        // media rate at the last address
  // Number of commands, and of runs in its write cache, among which the drive chooses the nearest. 1: the order of
  // arrival.
  std::uint32_t queue_depth = 1;
  // Commands that were among them for longer go first, whatever their distance. Must be several times the time in which
  // a full queue is served, or the order is nearly that of arrival. Source: guess
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

// The first violated relation of a cap or a disk, or nothing; the same of a host stack, with a key relative to the
// stack's own table.
std::optional<LayerProblem> problem(const Cap& cap);
std::optional<LayerProblem> problem(const Mechanics& disk);
std::optional<LayerProblem> problem(const HostStack& stack);

}  // namespace spillway::device
