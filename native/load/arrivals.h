// When the operations of an open loop arrive: at a constant rate, as a Poisson process, in bursts, or at given times.
//
// An operation is due when it arrives, whatever the engine does. The wait of a late operation is part of its latency,
// so a stall counts for every operation that it delays and not only for the one in progress (coordinated omission).
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ssd/structures/random.h"

namespace spillway::load {

// The arrivals of a phase, over all its threads.
struct ArrivalSpec {
  enum class Process : std::uint8_t {
    constant,  // equal gaps at rate_ops_s
    poisson,   // exponential gaps, at rate_ops_s on average
    bursts,    // equal gaps at rate_ops_s for burst_s, then at gap_rate_ops_s for gap_s, and again
    trace,     // at times_ns
  };
  Process process = Process::constant;
  double rate_ops_s = 0;      // above 0; unused for a trace
  double burst_s = 0;         // above 0; for bursts
  double gap_s = 0;           // above 0; for bursts
  double gap_rate_ops_s = 0;  // 0: nothing arrives between bursts
  // For a trace: times since the phase's start, in order.
  std::shared_ptr<const std::vector<std::int64_t>> times_ns;
};

// The arrivals of one of `threads` threads. Together the threads have the arrivals of the spec.
class Arrivals {
 public:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  virtual ~Arrivals() = default;
  // The next arrival, in order; kNever: there are no more.
  virtual std::int64_t next_ns() = 0;
  // How many arrivals that next_ns() has not returned come before `time_ns`. REQUIRES: next_ns() is not called again.
  virtual std::uint64_t rest_before(std::int64_t time_ns) = 0;
};

// REQUIRES: thread < threads, and a spec in which find_problem() finds none.
std::unique_ptr<Arrivals> make_arrivals(const ArrivalSpec& spec, std::int64_t begin_ns, std::uint32_t thread,
                                        std::uint32_t threads, std::uint64_t seed);

// The first problem, as a clause that follows the name of its key; "" if there is none.
std::string find_problem(const ArrivalSpec& spec);

}  // namespace spillway::load
