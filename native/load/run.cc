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

constexpr std::int64_t kProgressIntervalNs = 200'000'000;  // the contract: about five a second at most
constexpr std::int64_t kStopIntervalNs = 50'000'000;       // how soon a request to stop is seen

// The threads of one phase. The latch holds them until all are there, so that a phase begins for all at once.
class Crew {
 public:
  Crew(const WorkerSetting& setting, const PhaseSpec& phase, const std::vector<ThreadPlan>& plans)
      : setting_(setting), phase_(phase), start_(1) {
    for (const ThreadPlan& plan : plans) workers_.push_back(std::make_unique<Worker>(setting, plan));
    for (const auto& worker : workers_) {
      if (worker->plan().per_background_operation) worker->follow(*workers_.back());  // the writer is the last
    }
  }

  ~Crew() { end(); }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // Lets them work. Returns when the phase began.
  std::int64_t begin() {
    foreground_running_ = 0;
    for (const auto& worker : workers_) foreground_running_ += worker->plan().background ? 0 : 1;
    if (workers_.empty()) foreground_running_ = 1;
    for (const auto& worker : workers_) threads_.emplace_back([this, w = worker.get()] { work(*w); });
    if (workers_.empty()) threads_.emplace_back([this] { wait_for_store(); });
    begin_ns_ = setting_.clock.now_ns();
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

  // Of the threads that are counted down to: a background writer has no end of its own.
  std::uint64_t foreground_finished() const {
    std::uint64_t sum = 0;
    for (const auto& worker : workers_) sum += worker->plan().background ? 0 : worker->finished();
    return sum;
  }
  std::optional<std::uint64_t> foreground_operations() const {
    std::uint64_t sum = 0;
    for (const auto& worker : workers_) {
      if (worker->plan().background) continue;
      if (!worker->plan().operations) return std::nullopt;
      sum += *worker->plan().operations;
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
    if (worker.plan().arrivals) ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    start_.wait();
    note_end(worker.run(begin_ns_, deadline_ns_, stop_), worker.plan().background);
  }

  void wait_for_store() {
    start_.wait();
    engine::Engine& engine = setting_.engine;
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

  WorkerSetting setting_;
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
  PhaseRun(const RunSpec& spec, std::size_t index, Crew& crew, Recorder& recorder, RunListener& listener)
      : spec_(spec), index_(index), phase_(spec.phases[index]), crew_(crew), recorder_(recorder), listener_(listener) {}

  PhaseReport go(Clock& clock, const std::atomic<bool>& stop) {
    report_.phase = &phase_;
    begin_ns_ = last_progress_ns_ = crew_.begin();
    report_.begin_ns = recorder_.last_sample_ns() - recorder_.run_begin_ns();
    SampleTimes times(begin_ns_, spec_.sample_interval_ns, crew_.deadline_ns());
    std::int64_t now = begin_ns_;
    while (!crew_.wait(
        std::min({times.next_ns() - now, last_progress_ns_ + kProgressIntervalNs - now, kStopIntervalNs}))) {
      now = clock.now_ns();
      if (now >= times.next_ns()) {
        take_sample();
        times.pass(now);
      }
      if (now >= last_progress_ns_ + kProgressIntervalNs) tell_progress(now);
      if (stop.load(std::memory_order_relaxed)) interrupt();
      if (!report_.was_ended && listener_.ends_phase(index_)) {
        report_.was_ended = true;
        crew_.ask_to_stop();
      }
    }
    crew_.end();
    status_ = crew_.status() ? listener_.on_threads_ended(phase_) : crew_.status();
    take_sample();
    tell_progress(clock.now_ns());
    for (const auto& worker : crew_.workers()) report_.totals.not_started += worker->not_started();
    return report_;
  }

  // REQUIRES: go() has returned.
  const Status& status() const { return status_; }

 private:
  void interrupt() {
    crew_.ask_to_stop();
    report_.complete = false;
  }

  void take_sample() {
    interval_.clear();
    crew_.take(interval_);
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

  void tell_progress(std::int64_t now) {
    const std::uint64_t finished = crew_.foreground_finished();
    Progress progress;
    progress.phase = &phase_;
    const auto since_s = static_cast<double>(now - last_progress_ns_) * 1e-9;
    if (since_s > 0) progress.operations_per_s = static_cast<double>(finished - last_finished_) / since_s;
    if (const auto operations = crew_.foreground_operations(); operations && !phase_.duration_s) {
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
  Crew& crew_;
  Recorder& recorder_;
  RunListener& listener_;
  Status status_;
  PhaseReport report_;
  Tally interval_;
  std::int64_t begin_ns_ = 0;
  std::int64_t last_progress_ns_ = 0;
  std::uint64_t last_finished_ = 0;
};

// Seeds of the parts of a run that draw: the values' bytes must not follow the keys.
constexpr std::uint64_t kValueSeed = 0x76616c7565;  // "value"

// What all phases of YCSB's share: one set of records.
struct YcsbRecords {
  YcsbRecords(const RunSpec& spec, const ycsb::Properties& first, std::uint64_t inserted_by_past)
      : properties(first),
        values(ycsb::make_values(first, spec.pairs.compression_ratio, spec.seed ^ kValueSeed)),
        inserted(first.recordcount + inserted_by_past) {}

  std::uint64_t inserted_count() const { return inserted.last() + 1 - properties.recordcount; }

  const ycsb::Properties& properties;  // of the records, not of a phase's operations
  ValueBuffer values;
  ycsb::InsertedRecords inserted;
};

std::unique_ptr<YcsbRecords> make_ycsb_records(const RunSpec& spec) {
  const ycsb::Properties* first = nullptr;
  std::uint64_t inserted = 0;
  for (const DonePhase& done : spec.past) {
    if (done.phase.ycsb && first == nullptr) first = &*done.phase.ycsb;
    inserted += done.inserted;
  }
  for (const PhaseSpec& phase : spec.phases) {
    if (phase.ycsb && first == nullptr) first = &*phase.ycsb;
  }
  return first == nullptr ? nullptr : std::make_unique<YcsbRecords>(spec, *first, inserted);
}

std::vector<ThreadPlan> plans_of(const DonePhase& done) {
  return plan_threads(done.phase, done.pairs.num, done.seed, done.index, done.inserted_before);
}

// Pairs are counted with this run's size, so with a past of other values the bytes are an estimate.
void count_live_keys(const RunSpec& spec, const std::vector<DonePhase>& done, RunReport& report) {
  std::uint64_t num = spec.pairs.num;
  bool one_size = true;
  for (const DonePhase& part : done) {
    if (part.phase.ycsb) continue;
    num = std::max(num, part.pairs.num);
    one_size = one_size && part.pairs.pair_bytes() == spec.pairs.pair_bytes();
  }
  LiveKeys live_keys(num);
  for (const DonePhase& part : done) {
    if (part.phase.ycsb) continue;
    const std::vector<ThreadPlan> plans = plans_of(part);
    for (std::size_t i = 0; i < plans.size(); ++i)
      live_keys.replay(plans[i], part.pairs.num, part.phase.read_percent(), part.operations[i]);
  }
  report.live_keys = live_keys.count();
  report.live_user_bytes += report.live_keys * spec.pairs.pair_bytes();
  report.live_user_bytes_are_exact = report.live_user_bytes_are_exact && live_keys.is_exact() && one_size;
}

void count_live_records(const YcsbRecords& records, const std::vector<DonePhase>& done, RunReport& report) {
  const std::uint64_t loaded = records.properties.recordcount;
  ycsb::LiveRecords live(loaded + records.inserted_count());
  bool overwrites = false;
  for (const DonePhase& part : done) {
    if (!part.phase.ycsb) continue;
    overwrites =
        overwrites || (part.phase.workload == Workload::ycsb_run && part.phase.ycsb->update == ycsb::Update::overwrite);
    if (part.phase.workload != Workload::ycsb_load) continue;
    for (std::uint32_t thread = 0; thread < part.phase.threads; ++thread)
      live.add(part.phase.ycsb->insertstart + thread, part.phase.threads, part.operations[thread]);
  }
  // Overwriting makes a record of one that was never loaded; which ones is not followed.
  const bool followed = !overwrites || live.count() == loaded;
  live.add(loaded, 1, records.inserted_count());
  const ycsb::LiveBytes bytes = live.bytes(records.properties);
  report.live_records = live.count();
  report.live_user_bytes += bytes.bytes;
  report.live_user_bytes_are_exact = report.live_user_bytes_are_exact && bytes.exact && followed;
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

Result<RunReport> run(const RunSpec& spec, const Subject& subject, Clock& clock, const std::atomic<bool>& stop,
                      RunListener& listener) {
  const ValueBuffer values(spec.pairs, spec.seed ^ kValueSeed);
  RunReport report;
  Recorder recorder(subject, clock);
  const std::unique_ptr<YcsbRecords> ycsb_records = make_ycsb_records(spec);
  for (std::size_t i = 0; i < spec.phases.size() && report.complete; ++i) {
    if (stop.load()) {
      report.complete = false;
      break;
    }
    const PhaseSpec& phase = spec.phases[i];
    WorkerSetting setting{subject.engine, clock, spec.pairs, values, phase.seek_nexts, phase.read_percent()};
    if (phase.ycsb) setting.ycsb.emplace(*phase.ycsb, ycsb_records->values, ycsb_records->inserted);
    const std::uint64_t inserted_before = ycsb_records ? ycsb_records->inserted_count() : 0;
    DonePhase done{phase, spec.pairs, spec.seed, spec.past.size() + i, {}, inserted_before, 0};
    Crew crew(setting, phase, plans_of(done));
    PhaseRun phase_run(spec, i, crew, recorder, listener);
    const PhaseReport phase_report = phase_run.go(clock, stop);
    if (!phase_run.status()) return phase_run.status();
    for (const auto& worker : crew.workers()) done.operations.push_back(worker->finished());
    if (phase.ycsb) done.inserted = ycsb_records->inserted_count() - inserted_before;
    report.done.push_back(std::move(done));
    listener.on_phase(phase_report);
    if (phase.measured) report.measured.add(phase_report.totals);
    report.complete = phase_report.complete;
  }
  for (const engine::Stall& stall : recorder.new_stalls(true)) listener.on_stall(stall);
  for (const engine::Event& event : recorder.new_events()) listener.on_event(event);
  std::vector<DonePhase> all = spec.past;
  all.insert(all.end(), report.done.begin(), report.done.end());
  count_live_keys(spec, all, report);
  if (ycsb_records) count_live_records(*ycsb_records, all, report);
  return report;
}

}  // namespace spillway::load
