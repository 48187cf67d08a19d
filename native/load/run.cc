#include "load/run.h"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <latch>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "load/live_keys.h"
#include "load/sample_times.h"
#include "load/worker.h"
#include "load/ycsb/live_records.h"

namespace spillway::load {
namespace {

constexpr std::int64_t kProgressIntervalNs = 200'000'000;  // the contract: at most about five a second
constexpr std::int64_t kStopIntervalNs = 50'000'000;       // latency of a request to stop

// The threads of one phase. They wait at a latch until all are started, so that all begin the phase at the same time.
class PhaseThreads {
 public:
  PhaseThreads(const WorkerContext& context, const PhaseSpec& phase, const std::vector<ThreadSpec>& thread_specs)
      : context_(context), phase_(phase), start_(1) {
    for (const ThreadSpec& thread_spec : thread_specs)
      workers_.push_back(std::make_unique<Worker>(context, thread_spec));
    for (const auto& worker : workers_) {
      if (!worker->spec().per_paced_operation) continue;
      for (const auto& other : workers_) {
        const bool is_other_side = other->spec().background != worker->spec().background;
        if (is_other_side) worker->add_pacer(*other);
        if (!is_other_side && worker->spec().shares_limit) worker->add_sharer(*other);
      }
    }
  }

  ~PhaseThreads() { end(); }
  PhaseThreads(const PhaseThreads&) = delete;
  PhaseThreads& operator=(const PhaseThreads&) = delete;

  // Starts the threads. Returns the time at which the phase began.
  std::int64_t begin() {
    foreground_running_ = 0;
    for (const auto& worker : workers_) foreground_running_ += worker->spec().background ? 0 : 1;
    if (workers_.empty()) foreground_running_ = 1;
    for (const auto& worker : workers_) threads_.emplace_back([this, w = worker.get()] { work(*w); });
    if (workers_.empty()) threads_.emplace_back([this] { wait_for_store(); });
    begin_ns_ = context_.clock.now_ns();
    if (const auto limit_s = phase_.time_limit_s()) {
      deadline_ns_ = begin_ns_ + static_cast<std::int64_t>(*limit_s * 1e9);
    }
    start_.count_down();
    return begin_ns_;
  }

  // Waits for the end of the foreground threads, at most `time_ns` long. Returns whether they have ended.
  bool wait(std::int64_t time_ns) {
    std::unique_lock lock(mutex_);
    return ended_.wait_for(lock, std::chrono::nanoseconds(std::max<std::int64_t>(time_ns, 0)),
                           [this] { return foreground_running_ == 0; });
  }

  void ask_to_stop() { stop_.store(true, std::memory_order_relaxed); }

  void end() {
    ask_to_stop();
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }

  void take(Tally& into) {
    for (const auto& worker : workers_) worker->take(into);
  }

  // Finished operations of the foreground threads, which end the phase; a background writer does not.
  std::uint64_t foreground_finished() const {
    std::uint64_t sum = 0;
    for (const auto& worker : workers_) sum += worker->spec().background ? 0 : worker->finished();
    return sum;
  }
  std::optional<std::uint64_t> foreground_operations() const {
    std::uint64_t sum = 0;
    for (const auto& worker : workers_) {
      if (worker->spec().background) continue;
      if (!worker->spec().operations) return std::nullopt;
      sum += *worker->spec().operations;
    }
    return workers_.empty() ? std::nullopt : std::optional(sum);
  }

  std::int64_t deadline_ns() const { return deadline_ns_; }
  const std::vector<std::unique_ptr<Worker>>& workers() const { return workers_; }
  // REQUIRES: end() was called.
  const Status& status() const { return status_; }

 private:
  void work(Worker& worker) {
    // An open loop's sleep should end when it is due, not up to the default slack of 50 us later (prctl(2)).
    if (worker.spec().arrivals) ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    start_.wait();
    note_end(worker.run(begin_ns_, deadline_ns_, stop_), worker.spec().background);
  }

  void wait_for_store() {
    start_.wait();
    engine::Engine& engine = context_.engine;
    note_end(phase_.workload == Workload::settle ? engine.settle(stop_) : engine.wait_for_compaction(stop_), false);
  }

  void note_end(Status status, bool background) {
    const std::lock_guard lock(mutex_);
    if (!status && status_) {
      status_ = std::move(status);
      ask_to_stop();
    }
    if (!background) --foreground_running_;
    ended_.notify_all();
  }

  WorkerContext context_;
  const PhaseSpec& phase_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::thread> threads_;
  std::latch start_;
  std::int64_t begin_ns_ = 0;
  std::int64_t deadline_ns_ = kNever;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable ended_;
  std::uint32_t foreground_running_ = 0;
  Status status_;
};

class PhaseRun {
 public:
  PhaseRun(const RunSpec& spec, std::size_t index, PhaseThreads& phase_threads, Recorder& recorder,
           RunListener& listener)
      : spec_(spec),
        index_(index),
        phase_(spec.phases[index]),
        phase_threads_(phase_threads),
        recorder_(recorder),
        listener_(listener) {}

  // `rate_ops_s`: of an open loop at the rate of an earlier phase.
  PhaseReport run(Clock& clock, const std::atomic<bool>& stop, std::optional<double> rate_ops_s) {
    report_.phase = &phase_;
    report_.rate_ops_s = rate_ops_s;
    begin_ns_ = last_progress_ns_ = phase_threads_.begin();
    report_.begin_ns = recorder_.last_sample_ns() - recorder_.run_begin_ns();
    SampleTimes times(begin_ns_, spec_.sample_interval_ns, phase_threads_.deadline_ns());
    std::int64_t now = begin_ns_;
    while (!phase_threads_.wait(
        std::min({times.next_ns() - now, last_progress_ns_ + kProgressIntervalNs - now, kStopIntervalNs}))) {
      now = clock.now_ns();
      if (now >= times.next_ns()) {
        take_sample();
        times.pass(now);
      }
      if (now >= last_progress_ns_ + kProgressIntervalNs) report_progress(now);
      if (stop.load(std::memory_order_relaxed)) interrupt();
      if (!report_.ended_by_command && listener_.should_end_phase(index_)) {
        report_.ended_by_command = true;
        phase_threads_.ask_to_stop();
      }
    }
    phase_threads_.end();
    status_ = phase_threads_.status() ? listener_.on_threads_ended(phase_) : phase_threads_.status();
    take_sample();
    report_progress(clock.now_ns());
    for (const auto& worker : phase_threads_.workers()) report_.totals.not_started += worker->not_started();
    return report_;
  }

  // REQUIRES: run() has returned.
  const Status& status() const { return status_; }

 private:
  void interrupt() {
    phase_threads_.ask_to_stop();
    report_.complete = false;
  }

  void take_sample() {
    interval_.clear();
    phase_threads_.take(interval_);
    const Sample sample = recorder_.sample(interval_);
    Totals& totals = report_.totals;
    totals.duration_ns += sample.end_ns - sample.begin_ns;
    totals.tally.merge(interval_);
    if (sample.drive) totals.drive = sum(totals.drive, sample.drive->growth);
    totals.stall_time.add(sample.stall_time);
    totals.cpu_s += sample.cpu_s;
    listener_.on_sample(phase_, sample);
    for (const engine::Stall& stall : recorder_.new_stalls(false)) listener_.on_stall(stall);
    for (const engine::Event& event : recorder_.new_events()) listener_.on_event(event);
  }

  void report_progress(std::int64_t now) {
    const std::uint64_t finished = phase_threads_.foreground_finished();
    Progress progress;
    progress.phase = &phase_;
    const auto since_s = static_cast<double>(now - last_progress_ns_) * 1e-9;
    if (since_s > 0) progress.operations_per_s = static_cast<double>(finished - last_finished_) / since_s;
    if (const auto operations = phase_threads_.foreground_operations(); operations && !phase_.duration_s) {
      progress.done = static_cast<double>(finished);
      progress.total = static_cast<double>(*operations);
    } else {
      progress.unit = Progress::Unit::seconds;
      progress.done = static_cast<double>(now - begin_ns_) * 1e-9;
      progress.total = phase_.duration_s;
    }
    listener_.on_progress(progress);
    last_progress_ns_ = now;
    last_finished_ = finished;
  }

  const RunSpec& spec_;
  const std::size_t index_;
  const PhaseSpec& phase_;
  PhaseThreads& phase_threads_;
  Recorder& recorder_;
  RunListener& listener_;
  Status status_;
  PhaseReport report_;
  Tally interval_;
  std::int64_t begin_ns_ = 0;
  std::int64_t last_progress_ns_ = 0;
  std::uint64_t last_finished_ = 0;
};

// The rate of a phase that has a share of an earlier one's; none of another. `reports`: of the phases before it.
std::optional<double> rate_of_earlier(const PhaseSpec& phase, const std::vector<PhaseReport>& reports) {
  if (!phase.rate_of) return std::nullopt;
  for (const PhaseReport& report : reports) {
    if (report.phase->name != *phase.rate_of) continue;
    const double seconds = static_cast<double>(report.totals.duration_ns) * 1e-9;
    const auto operations = static_cast<double>(report.totals.tally.operations());
    return seconds > 0 ? phase.rate_share * operations / seconds : 0;
  }
  return std::nullopt;
}

// Mixed into the seed, so that the bytes of values are independent of the keys.
constexpr std::uint64_t kValueSeed = 0x76616c7565;  // "value"

// One set of records, which all YCSB phases share.
struct YcsbRecords {
  YcsbRecords(const RunSpec& spec, const ycsb::Properties& first, std::uint64_t inserted_by_past)
      : properties(first),
        values(ycsb::make_values(first, spec.pairs.compression_ratio, spec.seed ^ kValueSeed)),
        inserted(first.recordcount + inserted_by_past) {}

  std::uint64_t inserted_count() const { return inserted.last() + 1 - properties.recordcount; }

  const ycsb::Properties& properties;  // of the records; a phase has its own for its operations
  ValueBuffer values;
  ycsb::InsertedRecords inserted;
};

std::unique_ptr<YcsbRecords> make_ycsb_records(const RunSpec& spec) {
  const ycsb::Properties* first = nullptr;
  std::uint64_t inserted = 0;
  for (const FinishedPhase& done : spec.earlier_phases) {
    if (done.phase.ycsb && first == nullptr) first = &*done.phase.ycsb;
    inserted += done.inserted;
  }
  for (const PhaseSpec& phase : spec.phases) {
    if (phase.ycsb && first == nullptr) first = &*phase.ycsb;
  }
  return first == nullptr ? nullptr : std::make_unique<YcsbRecords>(spec, *first, inserted);
}

std::vector<ThreadSpec> thread_specs_of(const FinishedPhase& done) {
  return make_thread_specs(done.phase, done.pairs.num, done.seed, done.index, done.inserted_before);
}

// Pairs are counted with this run's size. The bytes are an estimate where earlier phases wrote other sizes.
void count_live_keys(const RunSpec& spec, const std::vector<FinishedPhase>& done, RunReport& report) {
  std::uint64_t num = spec.pairs.num;
  bool one_size = true;
  for (const FinishedPhase& part : done) {
    if (part.phase.ycsb) continue;
    num = std::max(num, part.pairs.num);
    one_size = one_size && part.pairs.pair_bytes() == spec.pairs.pair_bytes();
  }
  LiveKeys live_keys(num);
  for (const FinishedPhase& part : done) {
    if (part.phase.ycsb) continue;
    const std::vector<ThreadSpec> thread_specs = thread_specs_of(part);
    for (std::size_t i = 0; i < thread_specs.size(); ++i)
      live_keys.replay(thread_specs[i], part.pairs.num, part.phase.read_percent(), part.operations[i]);
  }
  report.live_keys = live_keys.count();
  report.live_user_bytes += report.live_keys * spec.pairs.pair_bytes();
  report.live_user_bytes_are_exact = report.live_user_bytes_are_exact && live_keys.is_exact() && one_size;
}

void count_live_records(const YcsbRecords& records, const std::vector<FinishedPhase>& done, RunReport& report) {
  const std::uint64_t loaded = records.properties.recordcount;
  ycsb::LiveRecords live(loaded + records.inserted_count());
  bool overwrites = false;
  for (const FinishedPhase& part : done) {
    if (!part.phase.ycsb) continue;
    overwrites =
        overwrites || (part.phase.workload == Workload::ycsb_run && part.phase.ycsb->update == ycsb::Update::overwrite);
    if (part.phase.workload != Workload::ycsb_load) continue;
    for (std::uint32_t thread = 0; thread < part.phase.threads; ++thread)
      live.add(part.phase.ycsb->insertstart + thread, part.phase.threads, part.operations[thread]);
  }
  // An overwrite creates a record that was not loaded. Which ones is not tracked.
  const bool is_tracked = !overwrites || live.count() == loaded;
  live.add(loaded, 1, records.inserted_count());
  const ycsb::LiveBytes bytes = live.bytes(records.properties);
  report.live_records = live.count();
  report.live_user_bytes += bytes.bytes;
  report.live_user_bytes_are_exact = report.live_user_bytes_are_exact && bytes.exact && is_tracked;
}

}  // namespace

void Totals::add(const Totals& other) {
  duration_ns += other.duration_ns;
  tally.merge(other.tally);
  not_started += other.not_started;
  drive = sum(drive, other.drive);
  stall_time.add(other.stall_time);
  cpu_s += other.cpu_s;
}

Result<RunReport> run(const RunSpec& spec, const MeasuredStore& store, Clock& clock, const std::atomic<bool>& stop,
                      RunListener& listener) {
  const ValueBuffer values(spec.pairs, spec.seed ^ kValueSeed);
  RunReport report;
  Recorder recorder(store, clock);
  const std::unique_ptr<YcsbRecords> ycsb_records = make_ycsb_records(spec);
  std::vector<PhaseReport> phase_reports;
  for (std::size_t i = 0; i < spec.phases.size() && report.complete; ++i) {
    if (stop.load()) {
      report.complete = false;
      break;
    }
    const PhaseSpec& phase = spec.phases[i];
    WorkerContext context{store.engine, clock, spec.pairs, values, phase.seek_nexts, phase.read_percent()};
    if (phase.ycsb) {
      context.ycsb.emplace(ycsb::PhaseContext{*phase.ycsb, ycsb_records->values, ycsb_records->inserted});
    }
    const std::uint64_t inserted_before = ycsb_records ? ycsb_records->inserted_count() : 0;
    FinishedPhase done{phase, spec.pairs, spec.seed, spec.earlier_phases.size() + i, {}, inserted_before, 0};
    const std::optional<double> rate_ops_s = rate_of_earlier(phase, phase_reports);
    if (rate_ops_s && *rate_ops_s <= 0) {
      return Status::bad_input("phases." + phase.name + ".rate_of: no operation ended in " + *phase.rate_of +
                               ", so there is no rate to have a share of");
    }
    if (rate_ops_s) done.phase.rate_ops_s = rate_ops_s;
    store.engine.set_diversion(phase.diversion);
    PhaseThreads phase_threads(context, phase, thread_specs_of(done));
    PhaseRun phase_run(spec, i, phase_threads, recorder, listener);
    const PhaseReport phase_report = phase_run.run(clock, stop, rate_ops_s);
    if (!phase_run.status()) return phase_run.status();
    for (const auto& worker : phase_threads.workers()) done.operations.push_back(worker->finished());
    if (phase.ycsb) done.inserted = ycsb_records->inserted_count() - inserted_before;
    report.finished_phases.push_back(std::move(done));
    phase_reports.push_back(phase_report);
    listener.on_phase(phase_report);
    if (phase.measured) report.measured.add(phase_report.totals);
    report.complete = phase_report.complete;
  }
  for (const engine::Stall& stall : recorder.new_stalls(true)) listener.on_stall(stall);
  for (const engine::Event& event : recorder.new_events()) listener.on_event(event);
  std::vector<FinishedPhase> all = spec.earlier_phases;
  all.insert(all.end(), report.finished_phases.begin(), report.finished_phases.end());
  count_live_keys(spec, all, report);
  if (ycsb_records) count_live_records(*ycsb_records, all, report);
  return report;
}

}  // namespace spillway::load
