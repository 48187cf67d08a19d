// Bringing a drive to where an experiment starts (M23, M32, B4, C6, C7): as it left the factory, filled in order, or
// in the steady state of uniform random overwrites.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "device/emulated.h"
#include "device/preset.h"
#include "ssd/random.h"

namespace spillway::device {
namespace {

using Kind = InitialState::Kind;

constexpr std::array<std::pair<const char*, Kind>, 4> kKinds = {
    {{"trimmed", Kind::trimmed}, {"sequential", Kind::sequential}, {"steady", Kind::steady}, {"file", Kind::file}}};

// So many units at a time between two looks at whether to go on: some hundredths of a second. Overwrites are slower
// than a fill, for they collect garbage.
constexpr std::uint64_t kFillStep = 1 << 20;
constexpr std::uint64_t kOverwriteStep = 1 << 14;

// How far the preparation is, and whether it goes on.
class Steps {
 public:
  Steps(const PrepareWatch& watch, std::uint64_t filled, std::uint64_t overwrites)
      : watch_(watch), total_(filled + overwrites) {}
  void add(std::uint64_t units) { done_ += units; }
  // Once it was told to stop, it stays with that.
  bool go_on() {
    if (going_ && watch_) going_ = watch_(done_, total_);
    return going_;
  }

 private:
  const PrepareWatch& watch_;
  const std::uint64_t total_;
  std::uint64_t done_ = 0;
  bool going_ = true;
};

Status check(const InitialState& initial) {
  if (!(initial.fill >= 0 && initial.fill <= 1)) {
    return Status::bad_input("initial.fill is " + std::to_string(initial.fill) + "; it takes a share from 0 to 1");
  }
  if (!(initial.warmup_capacities >= 0 && std::isfinite(initial.warmup_capacities))) {
    return Status::bad_input("initial.warmup_capacities is " + std::to_string(initial.warmup_capacities) +
                             "; it takes a number of 0 or more");
  }
  if (!(initial.compression_ratio > 0 && initial.compression_ratio <= 1)) {
    return Status::bad_input("initial.compression_ratio is " + std::to_string(initial.compression_ratio) +
                             "; it takes a share above 0 and at most 1");
  }
  const bool fills = initial.kind == Kind::sequential || initial.kind == Kind::steady;
  if (initial.warmup_capacities > 0 && (!fills || initial.fill == 0)) {
    return Status::bad_input(
        "initial.warmup_capacities overwrites the filled range; give initial.kind sequential or steady and a fill "
        "above 0");
  }
  if (initial.kind == Kind::file && initial.path.empty()) {
    return Status::bad_input("initial.path is missing; initial.kind file needs the path of a saved state");
  }
  return {};
}

// Random overwrites need flash to move to.
Status check_room(const ssd::Layout& layout, std::uint64_t filled, const InitialState& initial) {
  const bool overwrites = initial.kind == Kind::steady || initial.warmup_capacities > 0;
  if (!overwrites || filled < layout.data_units) return {};
  return Status::bad_input(
      "capacity.spare_factor leaves no spare flash for random overwrites of all data; raise it (0.07 is usual) or "
      "lower initial.fill");
}

}  // namespace

Result<Kind> parse_initial_kind(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& [known, kind] : kKinds) {
    if (name == known) return kind;
    names.emplace_back(known);
  }
  const std::string near = nearest(name, names);
  return Status::bad_input(
      "initial.kind \"" + name + "\" is not known; " +
      (near.empty() ? "it takes trimmed, sequential, steady or file" : "did you mean " + near + "?"));
}

Status prepare(ssd::Ssd& ssd, const InitialState& initial, std::uint64_t seed, const PrepareWatch& watch) {
  if (Status status = check(initial); !status) return status;
  const auto filled =
      static_cast<std::uint64_t>(std::llround(initial.fill * static_cast<double>(ssd.layout().block_units)));
  if (Status status = check_room(ssd.layout(), filled, initial); !status) return status;
  const auto overwrites = static_cast<std::uint64_t>(initial.warmup_capacities * static_cast<double>(filled));
  const std::uint16_t share = share_of(initial.compression_ratio);
  Steps steps(watch, initial.kind == Kind::trimmed || initial.kind == Kind::file ? 0 : filled, overwrites);
  switch (initial.kind) {
    case Kind::trimmed:
      break;
    case Kind::sequential:
      for (std::uint64_t first = 0; first < filled && steps.go_on(); first += kFillStep) {
        ssd.fill(first, std::min(kFillStep, filled - first), share);
        steps.add(std::min(kFillStep, filled - first));
      }
      break;
    case Kind::steady:
      if (filled > 0 && steps.go_on()) ssd.assume_steady(filled, share);
      steps.add(filled);
      break;
    case Kind::file:
      if (Status status = load_state(ssd, initial.path); !status) return status;
      break;
  }
  ssd::Random random(ssd::mix(seed));
  for (std::uint64_t i = 0; i < overwrites && steps.go_on(); i += kOverwriteStep) {
    const std::uint64_t step = std::min(kOverwriteStep, overwrites - i);
    for (std::uint64_t k = 0; k < step; ++k) ssd.overwrite(random.below(filled), share);
    steps.add(step);
  }
  ssd.reset_counters();
  return steps.go_on() ? Status::ok() : Status::error(Fault::stopped, "stopped before the drive was prepared");
}

Status prepare(DriveModel& drive, const InitialState& initial, std::uint64_t seed, const PrepareWatch& watch) {
  if (ssd::Ssd* const flash = drive.flash()) return prepare(*flash, initial, seed, watch);
  if (Status status = check(initial); !status) return status;
  if (initial.kind == Kind::file) return load_state(drive, initial.path);
  drive.reset_counters();
  return {};
}

}  // namespace spillway::device
