// Turns a running store and its drive into samples: what happened within each interval, and nothing else.
//
// Samples are contiguous: each begins where the one before it ended, so that over a run they add up to all that
// happened. A phase ends with a sample of its own, so that none belongs to two phases.
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

// What is sampled.
struct Subject {
  engine::Engine& engine;
  device::Device* device = nullptr;            // null: no drive in samples
  std::function<std::uint64_t()> space_bytes;  // held on the drive or in the directory
};

class Recorder {
 public:
  // The run starts now.
  Recorder(Subject subject, Clock& clock);

  std::int64_t run_begin_ns() const { return run_begin_ns_; }
  std::int64_t last_sample_ns() const { return last_ns_; }

  // The interval since the last sample. `tally` is what the workers handed over for it.
  Sample sample(const Tally& tally);

  // Stalls that have ended and were not returned before; with `all`, the ones that go on as well, as long as they are.
  std::vector<engine::Stall> new_stalls(bool all);

  // What the engine's policy did since the last call.
  std::vector<engine::Event> new_events();

 private:
  Subject subject_;
  Clock& clock_;
  std::int64_t run_begin_ns_;
  std::int64_t last_ns_;
  double last_cpu_s_;
  DriveReading last_drive_;
  std::size_t stalls_returned_ = 0;
};

}  // namespace spillway::load
