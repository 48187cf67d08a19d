// A whole drive in virtual time, as its host sees it: a medium (flash or disk), and the layers around it.
//
// It has the interface and the guarantees of the flash model (ssd/ssd.h): it never reads a clock, and the same commands
// at the same times give the same completions, however often time was advanced in between. Without layers it costs one
// branch per call.
//
//   submit → host stack: submit → partial blocks one at a time → serialised part
//          → cap: rate limit → network → commit → medium → host stack: complete → done
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <vector>

#include "device/model/batch_server.h"
#include "device/model/hard_disk.h"
#include "device/preset/drive_layers.h"
#include "ssd/ssd.h"
#include "ssd/structures/ring.h"

namespace spillway::device {

struct Drive;

class DriveModel {
 public:
  // A flash drive without layers: an Ssd is a DriveModel.
  DriveModel(ssd::Ssd flash);  // NOLINT(google-explicit-constructor)
  DriveModel(const Drive& drive, std::uint64_t seed);

  // --- As in ssd::Ssd, with the same requirements
  void submit(ssd::Nanos now, const ssd::Command& command);
  // REQUIRES: flash with a key-value namespace
  void submit_kv(ssd::Nanos now, ssd::KvCommand command);
  std::optional<ssd::Nanos> next_event() const;
  void advance(ssd::Nanos now, std::vector<ssd::Completion>& done);
  void advance_to_completion(ssd::Nanos until, std::vector<ssd::Completion>& done);
  // How long issuing it keeps a thread of the host busy. This is part of the path to the drive, not concurrent with it.
  ssd::Nanos issue_ns(ssd::Opcode op, std::uint64_t bytes) const;
  std::size_t in_flight() const { return layered_ ? used_slots_ : medium_in_flight(); }
  void prefetch_entry(const ssd::Command& command) const {
    if (flash_) flash_->prefetch_entry(command);
  }
  void prefetch_place(const ssd::Command& command) const {
    if (flash_) flash_->prefetch_place(command);
  }
  const ssd::Counters& counters() const { return flash_ ? flash_->counters() : disk_->counters(); }
  ssd::KvCounters kv_counters() const { return flash_ ? flash_->kv_counters() : ssd::KvCounters(); }
  void reset_counters();

  // The medium if it is flash, for preparation, state and audits; nullptr if it is a disk.
  ssd::Ssd* flash() { return flash_ ? &*flash_ : nullptr; }
  const ssd::Ssd* flash() const { return flash_ ? &*flash_ : nullptr; }

  const std::string& name() const { return name_; }
  std::uint64_t capacity_bytes() const;
  std::uint32_t lba_bytes() const { return lba_bytes_; }
  std::uint32_t mapping_unit_bytes() const { return mapping_unit_bytes_; }
  std::uint64_t mapped_units() const;  // units that hold data; for a disk, all of them

 private:
  enum class Stage : std::uint8_t { entered, served, admitted, sent, committed, done };
  struct Event {
    ssd::Nanos time;
    std::uint64_t number;  // events of one time are handled in the order in which they were scheduled
    std::uint32_t slot;
    Stage stage;
    bool operator>(const Event& other) const { return time != other.time ? time > other.time : number > other.number; }
  };
  struct Slot {
    ssd::Command command;
    ssd::Nanos submitted = 0;
    ssd::Outcome outcome = ssd::Outcome::success;
    bool holds_block = false;
    std::uint32_t kv_bytes = 0;
    std::unique_ptr<ssd::KvCommand> kv;  // for a key-value command
  };

  void medium_submit(ssd::Nanos now, const ssd::Command& command);
  std::optional<ssd::Nanos> medium_next() const;
  void medium_advance(ssd::Nanos now, std::vector<ssd::Completion>& done);
  void medium_advance_to_completion(ssd::Nanos until, std::vector<ssd::Completion>& done);
  std::size_t medium_in_flight() const { return flash_ ? flash_->in_flight() : disk_->in_flight(); }

  void run_until(ssd::Nanos now, bool to_completion = false);
  bool run_medium(ssd::Nanos until);
  void handle(const Event& event);
  void enter(ssd::Nanos now, std::uint32_t slot);
  void join_batch(ssd::Nanos now, std::uint32_t slot);
  void serve_batch(ssd::Nanos now, bool waited);
  void apply_rate_cap(ssd::Nanos now, std::uint32_t slot);
  void wait_for_commit(ssd::Nanos now, std::uint32_t slot);
  void begin_commit(ssd::Nanos now, bool waited);
  void finish(ssd::Nanos now, std::uint32_t slot);
  void at(ssd::Nanos time, std::uint32_t slot, Stage stage) { pending_events_.push({time, ++events_, slot, stage}); }
  std::uint32_t take_slot(ssd::Nanos now, const ssd::Command& command);
  std::uint64_t bytes_of(const ssd::Command& command) const;
  std::uint32_t lbas_of(std::uint64_t bytes) const {
    return static_cast<std::uint32_t>((bytes + lba_bytes_ - 1) / lba_bytes_);
  }
  bool is_partial(const ssd::Command& command) const;

  std::string name_;
  Layers layers_;
  bool layered_ = false;
  std::uint32_t lba_bytes_ = 512;
  std::uint32_t mapping_unit_bytes_ = 4096;
  std::optional<ssd::Ssd> flash_;
  std::optional<HardDisk> disk_;

  std::priority_queue<Event, std::vector<Event>, std::greater<>> pending_events_;
  std::uint64_t events_ = 0;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> unused_slots_;
  std::size_t used_slots_ = 0;
  BatchServer stack_;
  BatchServer commits_;
  std::deque<std::uint32_t> partial_waiting_;  // writes of partial blocks that wait for the one in progress
  bool partial_under_way_ = false;
  ssd::Nanos rate_used_until_ = 0;
  std::vector<ssd::Completion> from_medium_;
  std::vector<ssd::Completion> done_;
};

}  // namespace spillway::device
