// Brings a drive to the state in which an experiment starts (M23, M32, B4, C6, C7): as new, filled in order, or in the
// steady state of uniform random overwrites.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/spelling.h"
#include "device/emulated/emulated.h"
#include "ssd/structures/random.h"

namespace spillway::device {
namespace {

using Kind = InitialState::Kind;

constexpr std::array<std::pair<const char*, Kind>, 4> kKinds = {
    {{"trimmed", Kind::trimmed}, {"sequential", Kind::sequential}, {"steady", Kind::steady}, {"file", Kind::file}}};

// Random overwrites in the preconditioning of a partition, as a multiple of it. Source: B14
constexpr std::uint64_t kPreconditioningCapacities = 2;

// Units between two checks whether to continue: some hundredths of a second. Overwrites are slower than sequential
// writes, because they collect garbage.
constexpr std::uint64_t kSequentialStep = 1 << 20;
constexpr std::uint64_t kOverwriteStep = 1 << 14;

// Progress of the preparation, and whether to continue.
class Steps {
 public:
  Steps(const PrepareWatch& watch, std::uint64_t filled, std::uint64_t overwrites)
      : watch_(watch), total_(filled + overwrites) {}
  void add(std::uint64_t units) { done_ += units; }
  // Once false, it stays false.
  bool continues() {
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
  if (initial.partition_bytes > 0 && initial.partition == InitialState::Partition::as_is) {
    return Status::bad_input(
        "initial.partition_bytes belongs to a partition that is trimmed or preconditioned; remove it or set "
        "initial.partition");
  }
  if (initial.kind == Kind::file && initial.path.empty()) {
    return Status::bad_input("initial.path is missing; initial.kind file needs the path of a saved state");
  }
  return {};
}

// Random overwrites need spare flash.
Status check_room(const ssd::Layout& layout, std::uint64_t filled, const InitialState& initial) {
  const bool overwrites = initial.kind == Kind::steady || initial.warmup_capacities > 0 ||
                          initial.partition == InitialState::Partition::preconditioned;
  if (!overwrites || filled < layout.data_units) return {};
  return Status::bad_input(
      "capacity.spare_factor leaves no spare flash for random overwrites of all data; raise it (0.07 is usual) or "
      "lower initial.fill");
}

// Units of the partition, from the drive's first unit on.
std::uint64_t partition_units(const ssd::Ssd& ssd, const InitialState& initial) {
  const ssd::Layout layout = ssd.layout();
  if (initial.partition_bytes == 0) return layout.block_units;
  return std::min(initial.partition_bytes / (layout.capacity_bytes / layout.block_units), layout.block_units);
}

void overwrite_at_random(ssd::Ssd& ssd, ssd::Random& random, std::uint64_t units, std::uint64_t overwrites,
                         std::uint16_t share, Steps& steps) {
  for (std::uint64_t i = 0; i < overwrites && steps.continues(); i += kOverwriteStep) {
    const std::uint64_t step = std::min(kOverwriteStep, overwrites - i);
    for (std::uint64_t k = 0; k < step; ++k) ssd.overwrite(random.below(units), share);
    steps.add(step);
  }
}

void prepare_partition(ssd::Ssd& ssd, ssd::Random& random, const InitialState& initial, Steps& steps) {
  const std::uint64_t units = partition_units(ssd, initial);
  if (initial.partition == InitialState::Partition::trimmed) ssd.discard(0, units);
  if (initial.partition != InitialState::Partition::preconditioned) return;
  const std::uint16_t share = share_of(initial.compression_ratio);
  for (std::uint64_t first = 0; first < units && steps.continues(); first += kOverwriteStep) {
    const std::uint64_t end = std::min(first + kOverwriteStep, units);
    for (std::uint64_t unit = first; unit < end; ++unit) ssd.overwrite(unit, share);
    steps.add(end - first);
  }
  overwrite_at_random(ssd, random, units, kPreconditioningCapacities * units, share, steps);
}

}  // namespace

Result<InitialState::Partition> parse_initial_partition(const std::string& name) {
  if (name == "as_is") return InitialState::Partition::as_is;
  if (name == "trimmed") return InitialState::Partition::trimmed;
  if (name == "preconditioned") return InitialState::Partition::preconditioned;
  return Status::bad_input("initial.partition \"" + name +
                           "\" is not known; it takes as_is, trimmed or preconditioned");
}

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
  const bool has_data = initial.kind == Kind::sequential || initial.kind == Kind::steady;
  const std::uint64_t held = std::max(has_data ? filled : 0, partition_units(ssd, initial));
  if (Status status = check_room(ssd.layout(), held, initial); !status) return status;
  const auto overwrites = static_cast<std::uint64_t>(initial.warmup_capacities * static_cast<double>(filled));
  const std::uint16_t share = share_of(initial.compression_ratio);
  const bool preconditions = initial.partition == InitialState::Partition::preconditioned;
  const std::uint64_t of_partition =
      preconditions ? (1 + kPreconditioningCapacities) * partition_units(ssd, initial) : 0;
  Steps steps(watch, initial.kind == Kind::trimmed || initial.kind == Kind::file ? 0 : filled,
              overwrites + of_partition);
  switch (initial.kind) {
    case Kind::trimmed:
      break;
    case Kind::sequential:
      for (std::uint64_t first = 0; first < filled && steps.continues(); first += kSequentialStep) {
        ssd.write_sequentially(first, std::min(kSequentialStep, filled - first), share);
        steps.add(std::min(kSequentialStep, filled - first));
      }
      break;
    case Kind::steady:
      if (filled > 0 && steps.continues()) ssd.assume_steady(filled, share);
      steps.add(filled);
      break;
    case Kind::file:
      if (Status status = load_state(ssd, initial.path); !status) return status;
      break;
  }
  ssd::Random random(ssd::mix(seed));
  overwrite_at_random(ssd, random, filled, overwrites, share, steps);
  if (steps.continues()) prepare_partition(ssd, random, initial, steps);
  ssd.reset_counters();
  return steps.continues() ? Status::ok() : Status::error(Fault::stopped, "stopped before the drive was prepared");
}

Status prepare(DriveModel& drive, const InitialState& initial, std::uint64_t seed, const PrepareWatch& watch) {
  if (ssd::Ssd* const flash = drive.flash()) return prepare(*flash, initial, seed, watch);
  if (Status status = check(initial); !status) return status;
  if (initial.kind == Kind::file) return load_state(drive, initial.path);
  drive.reset_counters();
  return {};
}

}  // namespace spillway::device
