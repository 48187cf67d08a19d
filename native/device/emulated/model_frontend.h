// The one place through which ios enter a drive model and completions leave it, whoever owns time.
//
// It keeps the model's law (time never goes back), turns ios into commands and outcomes into faults, and remembers
// which queue and which of its ios a completion belongs to. Not thread-safe: its device's lock guards it.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "device/device.h"
#include "device/emulated/emulated.h"
#include "device/model/drive_model.h"

namespace spillway::device {

// The ios of one queue that are in the drive: a slot number stands for the caller's tag on the way through the model.
class TagTable {
 public:
  std::uint32_t put(std::uint64_t tag) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(tags_.size()));
      tags_.push_back(0);
    }
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    tags_[slot] = tag;
    return slot;
  }

  std::uint64_t take(std::uint32_t slot) {
    free_.push_back(slot);
    return tags_[slot];
  }

 private:
  std::vector<std::uint64_t> tags_;
  std::vector<std::uint32_t> free_;
};

class ModelFrontend {
 public:
  explicit ModelFrontend(DriveModel drive);

  // Whether the drive can be given all of these; an error names the first that it cannot.
  Status check(std::span<const Io> ios) const;

  // An io arrives. What the model had to do until `now` happens first, so that a replay of the arrivals alone goes the
  // same way however often time was advanced in between.
  // REQUIRES: check() passed; now >= time()
  void submit(Nanos now, const Io& io, std::uint32_t queue, std::uint32_t slot);

  // Lets the model live until `now`. Completions collect in done().
  // REQUIRES: now >= time()
  void advance(Nanos now);

  // Runs the model until nothing happens any more, and returns the time that it took it to.
  Nanos settle();

  std::optional<Nanos> next_event() const { return drive_.next_event(); }
  Nanos time() const { return time_; }

  // Completions not yet handed to their queues; the receiver clears it.
  std::vector<ssd::Completion>& done() { return done_; }

  static std::uint32_t queue_of(const ssd::Completion& completion) {
    return static_cast<std::uint32_t>(completion.tag >> 32);
  }
  static std::uint32_t slot_of(const ssd::Completion& completion) { return static_cast<std::uint32_t>(completion.tag); }
  static Done done_of(const ssd::Completion& completion, std::uint64_t tag);

  DriveModel& model() { return drive_; }
  const DriveModel& model() const { return drive_; }
  DeviceInfo info(double time_scale) const;
  Device::Wear wear() const;
  void record_trace(std::vector<Arrival>* arrivals, std::vector<ssd::Completion>* completions);

 private:
  DriveModel drive_;
  std::uint32_t lba_bytes_;
  Nanos time_ = 0;
  std::vector<ssd::Completion> done_;
  std::vector<Arrival>* arrivals_ = nullptr;
  std::vector<ssd::Completion>* completions_ = nullptr;
};

}  // namespace spillway::device
