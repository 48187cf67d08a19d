// One run: its phases one after another on an open engine, reported to a listener meanwhile.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "load/recorder.h"
#include "load/run_spec.h"
#include "load/tally.h"

namespace spillway::load {

struct Progress {
  enum class Unit : std::uint8_t { operations, seconds };
  const PhaseSpec* phase = nullptr;
  Unit unit = Unit::operations;
  double done = 0;
  std::optional<double> total;  // none: not known
  double operations_per_s = 0;  // since the last report
};

// Sums over one phase, or over all measured phases.
struct Totals {
  std::int64_t duration_ns = 0;
  Tally tally;
  std::uint64_t not_started = 0;  // open loop: operations due when the phase ended and not started; in no histogram
  ssd::Counters drive;            // growth; zeros without a drive
  StallTime stall_time;
  double cpu_s = 0;

  void add(const Totals& other);
};

struct PhaseReport {
  const PhaseSpec* phase = nullptr;
  std::int64_t begin_ns = 0;         // since the run's start
  bool complete = true;              // false: stopped by `stop`
  std::optional<double> rate_ops_s;  // of an open loop at a share of an earlier phase's rate
  bool ended_by_command = false;     // RunListener::should_end_phase ended it before its limit; still complete
  Totals totals;
};

struct RunReport {
  bool complete = true;
  Totals measured;  // over the measured phases
  // Of all phases on the database, those of earlier runs included.
  std::uint64_t live_keys = 0;                 // distinct keys written by db_bench's workloads
  std::uint64_t live_records = 0;              // distinct records inserted by YCSB's
  std::uint64_t live_user_bytes = 0;           // keys and newest values of both
  bool live_user_bytes_are_exact = true;       // see LiveKeys and ycsb::LiveRecords
  std::vector<FinishedPhase> finished_phases;  // of this run, including a stopped one
};

// Called by the thread that called run(), one call at a time.
class RunListener {
 public:
  virtual ~RunListener() = default;
  virtual void on_progress(const Progress& progress) = 0;
  virtual void on_sample(const PhaseSpec& phase, const Sample& sample) = 0;
  virtual void on_stall(const engine::Stall& stall) = 0;  // times since the run's start
  virtual void on_event(const engine::Event& event) = 0;  // time since the run's start
  virtual void on_phase(const PhaseReport& report) = 0;
  // Called twenty times a second. True ends the phase with that index as if it had reached its limit.
  virtual bool should_end_phase(std::size_t /*index*/) { return false; }
  // Called after the phase's threads have ended and before its last sample: time spent here belongs to the phase. A
  // failure ends the run.
  virtual Status on_threads_ended(const PhaseSpec& /*phase*/) { return Status::ok(); }
};

// Runs the phases of `spec` until `stop` is set; the report then has complete = false. A failed operation ends the run
// with its Status. The calling thread takes the samples and calls the listener. REQUIRES: a spec in which
// find_problem() finds none.
Result<RunReport> run(const RunSpec& spec, const MeasuredStore& store, Clock& clock, const std::atomic<bool>& stop,
                      RunListener& listener);

}  // namespace spillway::load
