// The drive model as a Device: in virtual time, or paced in real time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "device/model/drive_model.h"
#include "ssd/ssd.h"

namespace spillway::device {

// With an io whose op is_kv(): its command, of which the drive uses all but tag, op, cause and queue.
struct KvIoExtension : IoExtension {
  ssd::KvCommand command;
};

struct Arrival {
  Nanos now = 0;
  ssd::Command command;
  std::shared_ptr<const ssd::KvCommand> kv;  // for a key-value command, whose tag, op, cause and queue are in `command`
};

class EmulatedDevice : public Device {
 public:
  // The model, for state, preconditioning and audits. Its background work is first completed, without time.
  // REQUIRES: no io in flight while it is used
  virtual DriveModel& drive() = 0;
  // Of its key-value namespaces; zeros if there are none.
  virtual ssd::KvCounters kv_counters() = 0;
  // Its flash. REQUIRES: the drive is not a disk
  ssd::Ssd& model() { return *drive().flash(); }
  // Records every arrival and completion from now on, so that a paced run can be replayed in virtual time.
  virtual void record_trace(std::vector<Arrival>* arrivals, std::vector<ssd::Completion>* completions) = 0;
};

// Virtual time: a reap advances to the next event and never sleeps. Thread-safe.
std::unique_ptr<EmulatedDevice> make_simulated(DriveModel drive);

// Real time: a reap sleeps until the io's modelled completion. One model second lasts time_scale real seconds.
// REQUIRES: time_scale > 0
std::unique_ptr<EmulatedDevice> make_paced(DriveModel drive, double time_scale);

// Saves the drive's state to a file. The file is written under another name and renamed, so that it is complete or
// absent. Loading refuses it with one sentence if it is truncated, damaged or of another drive.
Status save_state(ssd::Ssd& ssd, const std::string& path);
Status load_state(ssd::Ssd& ssd, const std::string& path);
// The same for a whole drive. Refused for a disk, which has no state that depends on what was written.
Status save_state(DriveModel& drive, const std::string& path);
Status load_state(DriveModel& drive, const std::string& path);

// How a drive is brought to the state in which an experiment starts.
struct InitialState {
  enum class Kind : std::uint8_t { trimmed, sequential, steady, file };
  Kind kind = Kind::trimmed;
  double fill = 1.0;             // share of the logical capacity that holds data (sequential, steady)
  double compression_ratio = 1;  // compressed size / size of the filled and overwritten data; for drives that compress
  double warmup_capacities = 0;  // then: uniform random overwrites of the filled range, as a multiple of it
  std::string path;              // file
  // The last step, on the drive's first bytes, in which a file system is created: nothing; deallocated; or written once
  // in order and then twice over at random (B4, B14). The rest of the drive does not change.
  enum class Partition : std::uint8_t { as_is, trimmed, preconditioned };
  Partition partition = Partition::as_is;
  std::uint64_t partition_bytes = 0;  // 0: the whole drive
};
// Called at intervals with the units written and the total. Returns false to end the preparation.
using PrepareWatch = std::function<bool(std::uint64_t done, std::uint64_t total)>;
// Fault::stopped: `watch` ended it. The drive is consistent, and its preparation incomplete. Loading a file and the
// step to a steady state are not interrupted.
Status prepare(ssd::Ssd& ssd, const InitialState& initial, std::uint64_t seed, const PrepareWatch& watch = {});
// The same for a whole drive. A disk needs no preparation, because no state of it depends on what was written.
Status prepare(DriveModel& drive, const InitialState& initial, std::uint64_t seed, const PrepareWatch& watch = {});
Result<InitialState::Kind> parse_initial_kind(const std::string& name);
Result<InitialState::Partition> parse_initial_partition(const std::string& name);

}  // namespace spillway::device
