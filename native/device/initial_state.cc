// Bringing a drive to where an experiment starts (M23, M32, B4, C6, C7): as it left the factory, filled in order, or
// in the steady state of uniform random overwrites.
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

Status check(const InitialState& initial) {
  if (!(initial.fill >= 0 && initial.fill <= 1)) {
    return Status::bad_input("initial.fill is " + std::to_string(initial.fill) + "; it takes a share from 0 to 1");
  }
  if (!(initial.warmup_capacities >= 0 && std::isfinite(initial.warmup_capacities))) {
    return Status::bad_input("initial.warmup_capacities is " + std::to_string(initial.warmup_capacities) +
                             "; it takes a number of 0 or more");
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
      "lower "
      "initial.fill");
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

Status prepare(ssd::Ssd& ssd, const InitialState& initial, std::uint64_t seed) {
  if (Status status = check(initial); !status) return status;
  const auto filled =
      static_cast<std::uint64_t>(std::llround(initial.fill * static_cast<double>(ssd.layout().logical_units)));
  if (Status status = check_room(ssd.layout(), filled, initial); !status) return status;
  switch (initial.kind) {
    case Kind::trimmed:
      break;
    case Kind::sequential:
      if (filled > 0) ssd.fill(0, filled);
      break;
    case Kind::steady:
      if (filled > 0) ssd.assume_steady(filled);
      break;
    case Kind::file:
      if (Status status = load_state(ssd, initial.path); !status) return status;
      break;
  }
  ssd::Random random(ssd::mix(seed));
  const auto overwrites = static_cast<std::uint64_t>(initial.warmup_capacities * static_cast<double>(filled));
  for (std::uint64_t i = 0; i < overwrites; ++i) ssd.overwrite(random.below(filled));
  ssd.reset_counters();
  return {};
}

}  // namespace spillway::device
