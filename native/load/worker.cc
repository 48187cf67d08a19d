#include "load/worker.h"

#include <algorithm>

#include "load/db_bench_client.h"

namespace spillway::load {

std::unique_ptr<Client> make_client(const WorkerSetting& setting, const ThreadPlan& plan) {
  if (plan.pattern == Pattern::ycsb_load) {
    return std::make_unique<ycsb::Loader>(setting.engine, *setting.ycsb, plan.requester, plan.seed);
  }
  if (plan.pattern == Pattern::ycsb_run) {
    return std::make_unique<ycsb::Transactions>(setting.engine, *setting.ycsb, plan.requester, plan.seed);
  }
  return std::make_unique<DbBenchClient>(setting.engine, setting.pairs, setting.values, plan, setting.seek_nexts,
                                         setting.read_write_percent);
}

Worker::Worker(const WorkerSetting& setting, const ThreadPlan& plan)
    : setting_(setting), plan_(plan), client_(make_client(setting, plan)) {}

Status Worker::run(std::int64_t begin_ns, std::int64_t deadline_ns, const std::atomic<bool>& stop) {
  const std::uint64_t limit = plan_.operations.value_or(std::numeric_limits<std::uint64_t>::max());
  std::unique_ptr<Arrivals> arrivals;
  if (plan_.arrivals) arrivals = make_arrivals(*plan_.arrivals, begin_ns, plan_.turn, plan_.turns, plan_.arrival_seed);
  std::int64_t due_ns = arrivals ? arrivals->next_ns() : 0;

  std::int64_t now = setting_.clock.now_ns();
  std::uint64_t done = 0;
  while (done < limit && now < deadline_ns && !stop.load(std::memory_order_relaxed)) {
    std::int64_t start = now;
    std::optional<std::int64_t> lag;
    if (leader_ != nullptr) {
      if (!wait_for_leader(done, deadline_ns, stop)) break;
      start = setting_.clock.now_ns();
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
    now = setting_.clock.now_ns();
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

// How late it is when the operation meant for `time_ns` is started; nothing when it is not to be started any more.
std::optional<std::int64_t> Worker::wait_for(std::int64_t time_ns, std::int64_t deadline_ns,
                                             const std::atomic<bool>& stop) {
  const std::int64_t wake_ns = std::min(time_ns, deadline_ns);
  std::int64_t now = setting_.clock.now_ns();
  while (now < wake_ns) {
    if (stop.load(std::memory_order_relaxed)) return std::nullopt;
    setting_.clock.sleep_until(std::min(wake_ns, now + kLongestSleepNs));
    now = setting_.clock.now_ns();
  }
  if (time_ns >= deadline_ns) return std::nullopt;
  return now - time_ns;
}

// False when the end comes first. The wait is in no latency: it belongs to the mix, not to the store.
bool Worker::wait_for_leader(std::uint64_t done, std::int64_t deadline_ns, const std::atomic<bool>& stop) {
  const double share = *plan_.per_background_operation;
  while (static_cast<double>(done) >= share * static_cast<double>(leader_->finished())) {
    const std::int64_t now = setting_.clock.now_ns();
    if (now >= deadline_ns || stop.load(std::memory_order_relaxed)) return false;
    setting_.clock.sleep_until(std::min(deadline_ns, now + kFollowSleepNs));
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
