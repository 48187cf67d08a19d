#include "load/worker.h"

#include <algorithm>

namespace spillway::load {

Worker::Worker(const WorkerSetting& setting, const ThreadPlan& plan)
    : setting_(setting),
      plan_(plan),
      stream_(plan, setting.pairs.num, setting.read_write_percent),
      key_(setting.pairs.key_bytes),
      next_value_(plan.seed % setting.values.values()) {}

Status Worker::run(std::int64_t begin_ns, std::int64_t deadline_ns, const std::atomic<bool>& stop) {
  const std::uint64_t limit = plan_.operations.value_or(std::numeric_limits<std::uint64_t>::max());
  std::optional<Schedule> schedule;
  if (plan_.rate_ops_s) schedule.emplace(begin_ns, *plan_.rate_ops_s, plan_.rate_phase);

  std::int64_t now = setting_.clock.now_ns();
  std::uint64_t done = 0;
  while (done < limit && now < deadline_ns && !stop.load(std::memory_order_relaxed)) {
    std::int64_t start = now;
    std::optional<std::int64_t> lag;
    if (leader_ != nullptr) {
      if (!wait_for_leader(done, deadline_ns, stop)) break;
      start = setting_.clock.now_ns();
    }
    if (schedule) {
      start = schedule->start_ns(done);
      if (now < start) {
        lag = wait_for(start, deadline_ns, stop);
        if (!lag) break;
      }
    }
    const Operation operation = stream_.next();
    if (Status status = execute(operation); !status) return status;
    now = setting_.clock.now_ns();
    note(operation, now - start, lag);
    finished_.store(++done, std::memory_order_relaxed);
  }
  if (schedule) {
    const std::uint64_t due = schedule->started_before(std::min(now, deadline_ns));
    not_started_ = std::max(std::min(due, limit), done) - done;
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

Status Worker::execute(const Operation& operation) {
  const std::string_view key = key_.key(operation.key);
  if (operation.kind == Operation::Kind::put) {
    const std::string_view value = setting_.values.value(next_value_);
    if (++next_value_ == setting_.values.values()) next_value_ = 0;
    return setting_.engine.put(key, value);
  }
  if (operation.kind == Operation::Kind::get) {
    const Result<bool> found = setting_.engine.get(key, nullptr);
    if (!found) return found.status();
    pairs_seen_ = found.value() ? 1 : 0;
    return Status::ok();
  }
  const Result<std::uint64_t> seen = setting_.engine.scan(key, setting_.seek_nexts);
  if (!seen) return seen.status();
  pairs_seen_ = seen.value();
  return Status::ok();
}

void Worker::note(const Operation& operation, std::int64_t latency_ns, std::optional<std::int64_t> lag_ns) {
  tally_.record([&](Tally& tally) {
    if (lag_ns) tally.start_lag.record(*lag_ns);
    if (operation.kind == Operation::Kind::put) {
      tally.write_latency.record(latency_ns);
      return;
    }
    tally.read_latency.record(latency_ns);
    tally.pairs_read += pairs_seen_;
    if (pairs_seen_ == 0) ++tally.not_found;
  });
}

}  // namespace spillway::load
