// The specification of a run, and the relations between its parts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "load/client/pairs.h"
#include "load/workload.h"

namespace spillway::load {

// A phase that has run on the database. Its writes can be replayed from this (load/workload.h).
struct FinishedPhase {
  PhaseSpec phase;
  PairSpec pairs;
  std::uint64_t seed = 1;
  std::uint64_t index = 0;                // among all phases that have run on the database
  std::vector<std::uint64_t> operations;  // finished by each thread
  std::uint64_t inserted_before = 0;      // YCSB: records beyond recordcount that earlier phases had inserted
  std::uint64_t inserted = 0;             // and that this phase has inserted
};

struct RunSpec {
  PairSpec pairs;
  std::uint64_t seed = 1;
  std::int64_t sample_interval_ns = 1'000'000'000;
  std::vector<PhaseSpec> phases;
  // Phases of earlier runs on the database, oldest first; none: the database is empty.
  std::vector<FinishedPhase> earlier_phases;
};

// The first relation that is violated, as a sentence that begins with the key in the request ("phases[0].threads") and
// says how to fix it; "" if all hold.
std::string find_problem(const RunSpec& spec);

// A lower bound of the live bytes after all phases. Phases that end by time count as 0. Uniform random keys fall on num
// (1 - e^(-writes / num)) distinct ones on average. `compressed`: values count as compression_ratio of their size.
// YCSB's records are counted with their mean size.
std::uint64_t least_live_bytes(const RunSpec& spec, bool compressed);

}  // namespace spillway::load
