// Workloads by db_bench's names and meaning, as a pure stream of operations per thread. The threads of YCSB's phases
// (load/ycsb) are specified here too.
//
// A stream is a function of its seed alone, so a thread's writes can be replayed from the number of its finished
// operations (load/live_keys.h). A new mix of operations is one more Pattern.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "load/arrivals.h"
#include "load/ycsb/properties.h"
#include "load/ycsb/requests.h"
#include "ssd/structures/random.h"

namespace spillway::load {

enum class Workload : std::uint8_t {
  fillseq,                // put keys 0, 1, 2, …; every thread all of them
  fillrandom,             // put uniform random keys, with replacement
  filluniquerandom,       // put each key once, in random order; one thread
  overwrite,              // as fillrandom, on existing data
  readrandom,             // get uniform random keys
  seekrandom,             // seek to uniform random keys, then seek_nexts steps
  readwhilewriting,       // `threads` readers, and one more thread that puts until they are done
  readrandomwriterandom,  // of each hundred operations, read_write_percent gets and then puts
  waitforcompaction,      // no operations: wait until the store has nothing left to compact
  settle,                 // no operations: roll back the spill store, flush, then as waitforcompaction
  ycsb_load,              // insert the records of YCSB's properties, each once
  ycsb_run,               // YCSB's operations on them
};

const char* name_of(Workload workload);
std::optional<Workload> parse_workload(std::string_view name);
std::vector<std::string> workload_names();
// Writes each of num keys once and then ends: fillseq, filluniquerandom.
bool each_key_once(Workload workload);
// Only puts; by default num of them for each thread: the two above, fillrandom, overwrite.
bool is_fill(Workload workload);
// Has YCSB's properties.
bool is_ycsb(Workload workload);
// Has no operations and ends by itself: waitforcompaction, settle.
bool is_wait(Workload workload);

// One phase of a run.
struct PhaseSpec {
  std::string name;
  Workload workload = Workload::fillrandom;
  std::uint32_t threads = 1;
  std::optional<std::uint64_t> operations;  // per thread, as db_bench counts
  std::optional<double> duration_s;         // with operations: whichever ends first
  std::optional<double> rate_ops_s;         // open loop, over all foreground threads; none: closed loop
  std::optional<ArrivalSpec> arrivals;      // of the open loop; none: at a constant rate
  std::optional<std::string> rate_of;       // open loop at `rate_share` of this earlier phase's operations a second
  double rate_share = 1;
  std::optional<double> write_rate_ops_s;  // readwhilewriting: open loop of the writer
  bool measured = true;
  engine::Diversion diversion = engine::Diversion::automatic;  // of its writes, in an engine with a spill store
  std::uint64_t seek_nexts = 0;
  // Reads per hundred operations. readrandomwriterandom: default 90. readwhilewriting: limits the speed of the readers;
  // none: no limit.
  std::optional<std::uint32_t> read_write_percent;
  bool exact_mix = false;                // readwhilewriting: the writer waits for the readers too, so the share is met
  std::optional<ycsb::Properties> ycsb;  // for ycsb-load and ycsb-run

  // none: no time limit
  std::optional<double> time_limit_s() const;
  bool ends_with_trace() const { return arrivals && arrivals->process == ArrivalSpec::Process::trace; }
  bool is_open_loop() const { return rate_ops_s || rate_of || arrivals || write_rate_ops_s; }
  std::uint32_t read_percent() const { return read_write_percent.value_or(90); }
};

struct Operation {
  enum class Kind : std::uint8_t { put, get, scan };
  Kind kind = Kind::put;
  std::uint64_t key = 0;
};

enum class Pattern : std::uint8_t {
  put_sequential,
  put_uniform,
  put_unique,
  get_uniform,
  scan_uniform,
  mixed_uniform,
  ycsb_load,  // these two have their own clients, and no OperationStream
  ycsb_run,
};

// The work of one thread of a phase.
struct ThreadSpec {
  Pattern pattern = Pattern::put_uniform;
  std::uint64_t seed = 0;
  std::optional<std::uint64_t> operations;
  std::optional<ArrivalSpec> arrivals;  // of all `threads` together, which take turns
  std::uint32_t thread = 0;             // of `threads`
  std::uint32_t threads = 1;
  std::uint64_t arrival_seed = 0;
  bool background = false;  // runs until all foreground threads are done
  // Of a foreground thread: operations allowed for each operation of the background thread. Of the background thread:
  // operations allowed for each operation of all foreground threads, besides a `lead`. None: no limit.
  std::optional<double> per_paced_operation;
  double lead = 0;
  bool shares_limit = false;  // the limit is of all foreground threads together, so that a slow one holds no other up
  ycsb::Requester requester;  // of the YCSB patterns
};

// The threads of a phase, its background thread last; none for one that only waits. `phase_index` gives equal phases
// different seeds.
// `inserted_before`: records beyond recordcount that earlier YCSB phases have inserted.
std::vector<ThreadSpec> make_thread_specs(const PhaseSpec& phase, std::uint64_t num, std::uint64_t seed,
                                          std::uint64_t phase_index, std::uint64_t inserted_before = 0);

class OperationStream {
 public:
  // REQUIRES: num > 0; read_write_percent <= 100; a pattern that is not YCSB's
  OperationStream(const ThreadSpec& thread_spec, std::uint64_t num, std::uint32_t read_write_percent);

  // REQUIRES: put_sequential and put_unique are asked for at most num operations.
  Operation next() {
    const std::uint64_t index = next_index_++;
    switch (pattern_) {
      case Pattern::put_sequential:
        return {Operation::Kind::put, index};
      case Pattern::put_unique:
        return {Operation::Kind::put, order_(index)};
      case Pattern::put_uniform:
        return {Operation::Kind::put, random_.below(num_)};
      case Pattern::get_uniform:
        return {Operation::Kind::get, random_.below(num_)};
      case Pattern::scan_uniform:
        return {Operation::Kind::scan, random_.below(num_)};
      case Pattern::mixed_uniform:
      case Pattern::ycsb_load:
      case Pattern::ycsb_run:
        break;
    }
    return {index % 100 < read_write_percent_ ? Operation::Kind::get : Operation::Kind::put, random_.below(num_)};
  }

 private:
  Pattern pattern_;
  std::uint64_t num_;
  std::uint32_t read_write_percent_;
  std::uint64_t next_index_ = 0;
  ssd::Random random_;
  ssd::Permutation order_;
};

}  // namespace spillway::load
