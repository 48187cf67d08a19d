#include "engine/rocksdb/flow_control_runner.h"

#include <utility>

#include "engine/rocksdb/stall_listener.h"

namespace spillway::engine {

namespace {

constexpr double kBytesPerMb = 1e6;
constexpr std::int64_t kNsPerUs = 1000;

std::uint64_t whole_us(std::int64_t ns) { return static_cast<std::uint64_t>(ns / kNsPerUs); }

// 0: there is none.
double finite(double limit_bytes_s) { return limit_bytes_s == TokenBucket::kUnlimited ? 0 : limit_bytes_s; }

}  // namespace

void FlowControlRunner::start(rocksdb::DB* db) {
  db_ = db;
  thread_ = std::thread([this] { work(); });
}

void FlowControlRunner::stop() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  limiter_.stop();
}

std::uint64_t FlowControlRunner::limit_bytes_s() {
  return static_cast<std::uint64_t>(finite(limiter_.limit_bytes_s()));
}

std::map<std::string, std::uint64_t> FlowControlRunner::counters() {
  const WriteLimiter::Waits waits = limiter_.waits();
  std::map<std::string, std::uint64_t> counters = {{"flow_control.waits", waits.count},
                                                   {"flow_control.wait_us", whole_us(waits.ns)},
                                                   {"flow_control.longest_wait_us", whole_us(waits.longest_ns)}};
  const MutexLock lock(mutex_);
  for (std::size_t i = 1; i < rules_.size(); ++i) {  // without `keep`
    counters[std::string("flow_control.") + name_of(static_cast<FlowRule>(i))] = rules_[i];
  }
  return counters;
}

std::vector<Event> FlowControlRunner::take_events() {
  const MutexLock lock(mutex_);
  return std::exchange(events_, {});
}

void FlowControlRunner::OnFlushCompleted(rocksdb::DB* /*db*/, const rocksdb::FlushJobInfo& /*info*/) {
  add(Change::flush);
}

// A compaction within L0 counts as one of L0 if it made L0 smaller. Source: tikv/tikv,
// components/engine_rocks/src/flow_listener.rs
void FlowControlRunner::OnCompactionCompleted(rocksdb::DB* /*db*/, const rocksdb::CompactionJobInfo& info) {
  if (!info.status.ok()) return;
  const bool shrank = info.stats.total_output_bytes < info.stats.total_input_bytes;
  const bool is_of_l0 = info.base_input_level == 0 && (info.output_level != 0 || shrank);
  add(is_of_l0 ? Change::l0_compaction : Change::compaction);
}

void FlowControlRunner::add(Change change) {
  {
    const MutexLock lock(mutex_);
    if (stop_) return;
    changes_.push_back(change);
  }
  wake_.notify_all();
}

void FlowControlRunner::work() {
  auto recorded = std::chrono::steady_clock::now();
  MutexLock lock(mutex_);
  while (!stop_) {
    if (!changes_.empty()) {
      const Change change = changes_.front();
      changes_.pop_front();
      lock.unlock();
      judge(change);
      lock.lock();
    } else if (std::chrono::steady_clock::now() < recorded + tick_) {
      wake_.wait_until(mutex_, recorded + tick_);
      continue;
    }
    if (std::chrono::steady_clock::now() < recorded + tick_) continue;
    lock.unlock();
    record_flow(std::exchange(recorded, std::chrono::steady_clock::now()));
    lock.lock();
  }
}

void FlowControlRunner::record_flow(std::chrono::steady_clock::time_point since) {
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - since;
  if (seconds.count() <= 0) return;
  control_.record_flow(static_cast<double>(limiter_.take_admitted_bytes()) / seconds.count(), clock_.now_ns());
}

void FlowControlRunner::judge(Change change) {
  const StallSignals signals = signals_of(*db_);
  const std::int64_t now_ns = clock_.now_ns();
  if (change == Change::flush) apply(control_.judge_memtables(signals, now_ns), signals);
  if (change != Change::compaction) apply(control_.judge_l0(signals, now_ns), signals);
  if (change != Change::flush) apply(control_.judge_pending(signals, now_ns), signals);
}

void FlowControlRunner::apply(FlowRule rule, const StallSignals& signals) {
  if (rule == FlowRule::keep) return;
  const double limit = control_.limit_bytes_s();
  limiter_.set_limit(limit);
  const MutexLock lock(mutex_);
  ++rules_[static_cast<std::size_t>(rule)];
  events_.push_back({steady_now_ns(),
                     "flow_control",
                     {{"limit_mb_s", finite(limit) / kBytesPerMb},
                      {"immutable_memtables", static_cast<double>(signals.immutable_memtables)},
                      {"l0_files", static_cast<double>(signals.l0_files)},
                      {"pending_compaction_bytes", static_cast<double>(signals.pending_compaction_bytes)},
                      {"pending_share", control_.pending_share()}},
                     name_of(rule)});
}

}  // namespace spillway::engine
