// The front end of a drive model: ios become commands, completions become outcomes and faults of a queue's ios.
//
// It ensures that the model's time never decreases, and maps completions to queues and their ios. Not thread-safe: its
// device's lock guards it.
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

class ModelFrontend {
 public:
  explicit ModelFrontend(DriveModel drive);

  // Whether the drive accepts all of these. An error names the first that it does not.
  Status check(std::span<const Io> ios) const;

  // Submits an io. The model's events until `now` are handled first, so that a replay of the arrivals alone gives the
  // same completions, however often time was advanced in between.
  // REQUIRES: check() passed; now >= time()
  void submit(Nanos now, const Io& io, std::uint32_t queue, std::uint32_t slot);

  // Advances the model to `now`. Completions are added to done().
  // REQUIRES: now >= time()
  void advance(Nanos now);

  // Runs the model until it is idle and returns the time at that point.
  Nanos settle();

  std::optional<Nanos> next_event() const { return drive_.next_event(); }
  Nanos time() const { return time_; }

  // Completions not yet delivered to their queues. The caller clears it.
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
