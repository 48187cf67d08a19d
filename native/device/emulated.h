// The drive model as a Device: jumped through in virtual time, or paced in real time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "ssd/ssd.h"

namespace spillway::device {

struct Arrival {
  Nanos now = 0;
  ssd::Command command;
};

class EmulatedDevice : public Device {
 public:
  // The model, for state, preconditioning and audits. What it still had to program in the background is done, in no
  // time, before it is handed out. REQUIRES: no io in flight while it is used.
  virtual ssd::Ssd& model() = 0;
  // Records every arrival and completion from now on, so that a paced run can be replayed in virtual time.
  virtual void record_trace(std::vector<Arrival>* arrivals, std::vector<ssd::Completion>* completions) = 0;
};

// Virtual time: a reap jumps to the next event. Threads may share it; it never sleeps.
std::unique_ptr<EmulatedDevice> make_simulated(ssd::Ssd ssd);

// Real time: a reap sleeps until the io's modelled completion. One model second lasts time_scale real seconds.
// REQUIRES: time_scale > 0
std::unique_ptr<EmulatedDevice> make_paced(ssd::Ssd ssd, double time_scale);

// The drive's state in a file: written beside the target and renamed, so that it is whole or not there; refused with
// one sentence when truncated, damaged or of another drive.
Status save_state(ssd::Ssd& ssd, const std::string& path);
Status load_state(ssd::Ssd& ssd, const std::string& path);

// How a drive was brought to where an experiment starts.
struct InitialState {
  enum class Kind : std::uint8_t { trimmed, sequential, steady, file };
  Kind kind = Kind::trimmed;
  double fill = 1.0;             // share of the logical capacity that holds data (sequential, steady)
  double warmup_capacities = 0;  // uniform random overwrites of the filled range, as a multiple of it, afterwards
  std::string path;              // file
};
Status prepare(ssd::Ssd& ssd, const InitialState& initial, std::uint64_t seed);
Result<InitialState::Kind> parse_initial_kind(const std::string& name);

}  // namespace spillway::device
