// Samples a running engine and its drive: what happened within each interval.
//
// Samples are contiguous, so over a run they add up to everything. A phase ends with a sample of its own, so no sample
// belongs to two phases.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "load/clock.h"
#include "load/drive_interval.h"
#include "load/stall_time.h"
#include "load/tally.h"

namespace spillway::load {

// Processor time of this process so far, in all its threads.
double process_cpu_seconds();

struct Sample {
  std::int64_t begin_ns = 0;  // since the run's start
  std::int64_t end_ns = 0;
  const Tally* tally = nullptr;  // operations that finished within the interval
  std::optional<DriveInterval> drive;
  engine::Observation engine;  // at the interval's end
  StallTime stall_time;
  std::uint64_t space_bytes = 0;  // at the interval's end
  double cpu_s = 0;
};

// What a run measures.
struct MeasuredStore {
  engine::Engine& engine;
  device::Device* device = nullptr;            // null: no drive in samples
  std::function<std::uint64_t()> space_bytes;  // held on the drive or in the directory
};

class Recorder {
 public:
  // The run starts at construction.
  Recorder(MeasuredStore store, Clock& clock);

  std::int64_t run_begin_ns() const { return run_begin_ns_; }
  std::int64_t last_sample_ns() const { return last_ns_; }

  // Ends the interval since the last sample. `tally`: the operations of the workers in it.
  Sample sample(const Tally& tally);

  // Stalls that have ended and were not returned before; with `all`, also those in progress, up to now.
  std::vector<engine::Stall> new_stalls(bool all);

  // Events of the engine since the last call.
  std::vector<engine::Event> new_events();

 private:
  MeasuredStore store_;
  Clock& clock_;
  std::int64_t run_begin_ns_;
  std::int64_t last_ns_;
  double last_cpu_s_;
  DriveReading last_drive_;
  std::size_t stalls_returned_ = 0;
};

}  // namespace spillway::load
