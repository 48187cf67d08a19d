#include "load/worker.h"

#include <algorithm>

#include "load/db_bench_client.h"

namespace spillway::load {

std::unique_ptr<Client> make_client(const WorkerContext& context, const ThreadSpec& thread_spec) {
  if (thread_spec.pattern == Pattern::ycsb_load) {
    return std::make_unique<ycsb::Loader>(context.engine, *context.ycsb, thread_spec.requester, thread_spec.seed);
  }
  if (thread_spec.pattern == Pattern::ycsb_run) {
    return std::make_unique<ycsb::Transactions>(context.engine, *context.ycsb, thread_spec.requester, thread_spec.seed);
  }
  return std::make_unique<DbBenchClient>(context.engine, context.pairs, context.values, thread_spec, context.seek_nexts,
                                         context.read_write_percent);
}

Worker::Worker(const WorkerContext& context, const ThreadSpec& thread_spec)
    : context_(context), thread_spec_(thread_spec), client_(make_client(context, thread_spec)) {}

Status Worker::run(std::int64_t begin_ns, std::int64_t deadline_ns, const std::atomic<bool>& stop) {
  const std::uint64_t limit = thread_spec_.operations.value_or(std::numeric_limits<std::uint64_t>::max());
  std::unique_ptr<Arrivals> arrivals;
  if (thread_spec_.arrivals)
    arrivals = make_arrivals(*thread_spec_.arrivals, begin_ns, thread_spec_.thread, thread_spec_.threads,
                             thread_spec_.arrival_seed);
  std::int64_t due_ns = arrivals ? arrivals->next_ns() : 0;

  std::int64_t now = context_.clock.now_ns();
  std::uint64_t done = 0;
  while (done < limit && now < deadline_ns && !stop.load(std::memory_order_relaxed)) {
    std::int64_t start = now;
    std::optional<std::int64_t> lag;
    if (!pacers_.empty()) {
      if (!wait_for_pacers(done, deadline_ns, stop)) break;
      start = context_.clock.now_ns();
    }
    if (arrivals) {
      if (due_ns == Arrivals::kNever) break;
      start = due_ns;
      if (now < start) {
        lag = wait_for(start, deadline_ns, stop);
        if (!lag) break;
      }
    }
    const Result<Outcome> outcome = client_->execute();
    if (!outcome) return outcome.status();
    now = context_.clock.now_ns();
    note(outcome.value(), now - start, lag);
    finished_.store(++done, std::memory_order_relaxed);
    if (arrivals) due_ns = arrivals->next_ns();
  }
  if (arrivals) {
    const std::int64_t end_ns = std::min(now, deadline_ns);
    const std::uint64_t due = due_ns < end_ns ? 1 + arrivals->rest_before(end_ns) : 0;
    not_started_ = std::min(due, limit - done);
  }
  return Status::ok();
}

// How late the operation due at `time_ns` starts; none if it must not start any more.
std::optional<std::int64_t> Worker::wait_for(std::int64_t time_ns, std::int64_t deadline_ns,
                                             const std::atomic<bool>& stop) {
  const std::int64_t wake_ns = std::min(time_ns, deadline_ns);
  std::int64_t now = context_.clock.now_ns();
  while (now < wake_ns) {
    if (stop.load(std::memory_order_relaxed)) return std::nullopt;
    context_.clock.sleep_until(std::min(wake_ns, now + kLongestSleepNs));
    now = context_.clock.now_ns();
  }
  if (time_ns >= deadline_ns) return std::nullopt;
  return now - time_ns;
}

// Whether the pacers' progress allows one more operation. Threads that share a limit may each pass it at once, by one.
bool Worker::may_begin(std::uint64_t done) const {
  const auto finished_by = [](const std::vector<const Worker*>& workers) {
    std::uint64_t sum = 0;
    for (const Worker* worker : workers) sum += worker->finished();
    return static_cast<double>(sum);
  };
  const double so_far = sharers_.empty() ? static_cast<double>(done) : finished_by(sharers_);
  return so_far < *thread_spec_.per_paced_operation * finished_by(pacers_) + thread_spec_.lead;
}

// False if the phase ends first. No latency includes this wait: it keeps the mix of operations, and the engine does not
// cause it.
bool Worker::wait_for_pacers(std::uint64_t done, std::int64_t deadline_ns, const std::atomic<bool>& stop) {
  const std::int64_t sleep_ns = kPacerSleepNs * std::max<std::int64_t>(1, std::ssize(sharers_));
  while (!may_begin(done)) {
    const std::int64_t now = context_.clock.now_ns();
    if (now >= deadline_ns || stop.load(std::memory_order_relaxed)) return false;
    context_.clock.sleep_until(std::min(deadline_ns, now + sleep_ns));
  }
  return true;
}

void Worker::note(const Outcome& outcome, std::int64_t latency_ns, std::optional<std::int64_t> lag_ns) {
  tally_.record([&](Tally& tally) {
    if (lag_ns) tally.start_lag.record(*lag_ns);
    (outcome.is_write ? tally.write_latency : tally.read_latency).record(latency_ns);
    if (outcome.kind) tally.of_kind(*outcome.kind).record(latency_ns);
    tally.pairs_read += outcome.pairs_read;
    tally.not_found += outcome.not_found ? 1 : 0;
    tally.user_bytes_written += outcome.user_bytes_written;
    tally.user_bytes_read += outcome.user_bytes_read;
  });
}

}  // namespace spillway::load
