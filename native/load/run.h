// One run: phases one after another on one open store, told to a listener while they happen.
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
  std::optional<double> total;  // none: the end is not known
  double operations_per_s = 0;  // since the last progress
};

// What happened over a stretch of the run: one phase, or all that are measured.
struct Totals {
  std::int64_t duration_ns = 0;
  Tally tally;
  std::uint64_t not_started = 0;  // of open loops: due when the phase ended, and in no histogram
  ssd::Counters drive;            // growth; zeros without a drive
  StallTime stall_time;
  double cpu_s = 0;

  void add(const Totals& other);
};

struct PhaseReport {
  const PhaseSpec* phase = nullptr;
  std::int64_t begin_ns = 0;  // since the run's start
  bool complete = true;       // false: the run was asked to stop
  bool was_ended = false;     // it was asked to end before its limit (RunListener::ends_phase), and is complete
  Totals totals;
};

struct RunReport {
  bool complete = true;
  Totals measured;  // over the measured phases
  // Of all phases of the database, those of earlier runs too.
  std::uint64_t live_keys = 0;            // distinct keys written by db_bench's workloads
  std::uint64_t live_records = 0;         // distinct records inserted by YCSB's
  std::uint64_t live_user_bytes = 0;      // keys and newest values of both
  bool live_user_bytes_are_exact = true;  // see LiveKeys and ycsb::LiveRecords
  std::vector<DonePhase> done;            // this run's phases, also one that was ended early
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
  // The phase's threads have ended, and its last sample is not yet taken: what is done here takes time of this phase,
  // and a failure ends the run.
  // Asked some twenty times a second: whether the phase with that index is to end now, as if it were at its end.
  virtual bool ends_phase(std::size_t /*index*/) { return false; }
  virtual Status on_threads_ended(const PhaseSpec& /*phase*/) { return Status::ok(); }
};

// Runs every phase of `spec`, or as many as there are until `stop` is set; then the report says complete = false.
// An operation that fails ends the run with its Status; what was told to the listener until then stands.
// The calling thread is the recorder. REQUIRES: a spec in which find_problem() finds none.
Result<RunReport> run(const RunSpec& spec, const Subject& subject, Clock& clock, const std::atomic<bool>& stop,
                      RunListener& listener);

}  // namespace spillway::load
