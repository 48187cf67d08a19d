// When the operations of an open loop arrive: at a constant rate, as a Poisson process, in bursts, or at given times.
//
// An operation is meant to start when it arrives, whatever the store does. What is late is not moved: its wait is part
// of its latency, so that a stall counts for every operation that it held up and not only for the one that it caught
// (coordinated omission).
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ssd/structures/random.h"

namespace spillway::load {

// What a phase says of its arrivals; of all its threads together.
struct ArrivalSpec {
  enum class Process : std::uint8_t {
    constant,  // equal gaps at rate_ops_s
    poisson,   // exponential gaps, at rate_ops_s on average
    bursts,    // equal gaps at rate_ops_s for burst_s, then at gap_rate_ops_s for gap_s, and again
    trace,     // at times_ns
  };
  Process process = Process::constant;
  double rate_ops_s = 0;      // above 0; not of a trace
  double burst_s = 0;         // above 0; of bursts
  double gap_s = 0;           // above 0; of bursts
  double gap_rate_ops_s = 0;  // 0: nothing arrives between bursts
  // Since the phase's start, none before the one ahead of it; of a trace.
  std::shared_ptr<const std::vector<std::int64_t>> times_ns;
};

// The arrivals of one of `threads` threads, which take turns: what all have together is the spec's.
class Arrivals {
 public:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  virtual ~Arrivals() = default;
  // The next arrival, not before the one ahead of it; kNever: there are no more.
  virtual std::int64_t next_ns() = 0;
  // How many of those that next_ns() has not given arrive before `time_ns`. REQUIRES: next_ns() is not called any more.
  virtual std::uint64_t rest_before(std::int64_t time_ns) = 0;
};

// REQUIRES: thread < threads, and a spec in which find_problem() finds none.
std::unique_ptr<Arrivals> make_arrivals(const ArrivalSpec& spec, std::int64_t begin_ns, std::uint32_t thread,
                                        std::uint32_t threads, std::uint64_t seed);

// What cannot be done with it, as a clause that follows the name of its key; empty: nothing.
std::string find_problem(const ArrivalSpec& spec);

}  // namespace spillway::load
