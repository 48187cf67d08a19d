// What a run is asked to do, and the relations that have to hold between its parts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "load/client/pairs.h"
#include "load/workload.h"

namespace spillway::load {

// A phase that was done on a database. What it wrote follows from it (load/workload.h).
struct DonePhase {
  PhaseSpec phase;
  PairSpec pairs;
  std::uint64_t seed = 1;
  std::uint64_t index = 0;                // among all phases that were done on the database
  std::vector<std::uint64_t> operations;  // that each of its threads has finished
  std::uint64_t inserted_before = 0;      // YCSB's records beyond recordcount that earlier phases have inserted
  std::uint64_t inserted = 0;             // and this one
};

struct RunSpec {
  PairSpec pairs;
  std::uint64_t seed = 1;
  std::int64_t sample_interval_ns = 1'000'000'000;
  std::vector<PhaseSpec> phases;
  // What earlier runs did to the database that this one goes on with, oldest first; none: it begins empty.
  std::vector<DonePhase> past;
};

// The first relation that does not hold, as a sentence that begins with its key in a request ("phases[0].threads") and
// says how to mend it; "" when there is none.
std::string find_problem(const RunSpec& spec);

// At least so many bytes of pairs will be live when every phase has done its operations; phases that end by the clock
// count for nothing. Uniform random keys fall on num (1 - e^(-writes / num)) different ones in the mean.
// `compressed`: values take compression_ratio of their size. YCSB's records are counted with their mean size.
std::uint64_t least_live_bytes(const RunSpec& spec, bool compressed);

}  // namespace spillway::load
