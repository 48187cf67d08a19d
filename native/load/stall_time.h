// Time in write stalls within an interval, by cause.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "engine/engine.h"

namespace spillway::load {

struct StallTime {
  std::array<std::int64_t, engine::kMostStallCauses> ns{};  // by engine::StallCause
  std::uint64_t begun = 0;                                  // stalls that began within the interval

  std::int64_t of(engine::StallCause cause) const { return ns[cause]; }
  std::int64_t total_ns() const;
  void add(const StallTime& other);
};

// The part of `stalls` in [begin_ns, end_ns). Stalls may overlap, for example if an engine reports the next state
// before the end of the last one. An overlap counts once, for the stall that began first.
// REQUIRES: ordered by begin_ns
StallTime stall_time_within(std::span<const engine::Stall> stalls, std::int64_t begin_ns, std::int64_t end_ns);

}  // namespace spillway::load
