#include "engine/rocksdb/adoc_tuner.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "engine/rocksdb/stall_listener.h"

namespace spillway::engine {

namespace {

constexpr double kBytesPerMegabyte = 1e6;

std::size_t index_of(AdocJobsRule rule) { return static_cast<std::size_t>(rule); }
std::size_t index_of(AdocBufferRule rule) { return static_cast<std::size_t>(rule); }

}  // namespace

void AdocTuner::start(rocksdb::DB* db) {
  const rocksdb::Options options = db->GetOptions();
  db_ = db;
  initial_buffer_bytes_ = options.write_buffer_size;
  l1_buffers_ = static_cast<std::uint64_t>(std::max(options.level0_file_num_compaction_trigger, 1)) *
                static_cast<std::uint64_t>(std::max(options.min_write_buffer_number_to_merge, 1));
  l0_slowdown_ = std::max(options.level0_slowdown_writes_trigger, 1);
  soft_pending_bytes_ = static_cast<double>(options.soft_pending_compaction_bytes_limit);
  {
    const std::lock_guard lock(mutex_);
    settings_ = {static_cast<std::uint32_t>(std::max(options.max_background_jobs, 1)), options.write_buffer_size};
  }
  thread_ = std::thread([this] { work(); });
}

void AdocTuner::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stopping_.notify_all();
  if (thread_.joinable()) thread_.join();
}

AdocSettings AdocTuner::settings() const {
  const std::lock_guard lock(mutex_);
  return settings_;
}

std::map<std::string, std::uint64_t> AdocTuner::counters() const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, std::uint64_t> counters = {{"adoc.ticks", ticks_}, {"adoc.refused", refused_}};
  for (std::size_t i = 0; i < jobs_rules_.size(); ++i) {
    counters[std::string("adoc.jobs.") + name_of(static_cast<AdocJobsRule>(i))] = jobs_rules_[i];
  }
  for (std::size_t i = 0; i < buffer_rules_.size(); ++i) {
    counters[std::string("adoc.buffer.") + name_of(static_cast<AdocBufferRule>(i))] = buffer_rules_[i];
  }
  return counters;
}

std::vector<Event> AdocTuner::take_events() {
  const std::lock_guard lock(mutex_);
  return std::exchange(events_, {});
}

// A flush is timed while it writes its table, so that what comes before and after, the manifest above all, does not
// look like a slow drive.
void AdocTuner::OnTableFileCreationStarted(const rocksdb::TableFileCreationBriefInfo& info) {
  if (info.reason != rocksdb::TableFileCreationReason::kFlush) return;
  const auto now = std::chrono::steady_clock::now();
  const std::lock_guard lock(mutex_);
  flushes_[info.file_path] = now;
}

void AdocTuner::OnTableFileCreated(const rocksdb::TableFileCreationInfo& info) {
  if (info.reason != rocksdb::TableFileCreationReason::kFlush) return;
  const auto now = std::chrono::steady_clock::now();
  const std::lock_guard lock(mutex_);
  const auto begun = flushes_.extract(info.file_path);
  if (begun.empty() || !info.status.ok() || info.file_size == 0) return;
  const double seconds = std::chrono::duration<double>(now - begun.mapped()).count();
  if (seconds <= 0) return;
  bandwidth_sum_ += static_cast<double>(info.file_size) / seconds;
  ++flushes_ended_;
}

void AdocTuner::work() {
  std::unique_lock lock(mutex_);
  auto next = std::chrono::steady_clock::now();
  while (!stop_) {
    next += std::chrono::milliseconds(options_.interval_ms);
    if (stopping_.wait_until(lock, next, [this] { return stop_; })) return;
    lock.unlock();
    tick();
    lock.lock();
  }
}

void AdocTuner::tick() {
  double flush_bytes_s = 0;
  AdocSettings present;
  {
    const std::lock_guard lock(mutex_);
    ++ticks_;
    if (flushes_ended_ == 0) return;
    flush_bytes_s = bandwidth_sum_ / static_cast<double>(flushes_ended_);
    bandwidth_sum_ = 0;
    flushes_ended_ = 0;
    present = settings_;
  }
  most_flush_bytes_s_ = std::max(most_flush_bytes_s_, flush_bytes_s);
  const AdocSignals seen = signals(flush_bytes_s);
  apply(present, decide(seen, present, options_, initial_buffer_bytes_), seen);
}

AdocSignals AdocTuner::signals(double flush_bytes_s) {
  const StallSignals seen = signals_of(*db_);
  const auto pending = static_cast<double>(seen.pending_compaction_bytes);
  return {.flush_bytes_s = flush_bytes_s,
          .most_flush_bytes_s = most_flush_bytes_s_,
          .immutable_memtables = seen.immutable_memtables,
          .l0_share = static_cast<double>(seen.l0_files) / l0_slowdown_,
          .pending_share = soft_pending_bytes_ > 0 ? pending / soft_pending_bytes_ : 0};
}

void AdocTuner::apply(const AdocSettings& present, const AdocDecision& decision, const AdocSignals& signals) {
  using Changes = std::unordered_map<std::string, std::string>;
  const AdocSettings& wanted = decision.settings;
  AdocSettings reached = present;
  std::uint64_t refused = 0;
  if (wanted.jobs != present.jobs) {
    const bool taken = db_->SetDBOptions(Changes{{"max_background_jobs", std::to_string(wanted.jobs)}}).ok();
    taken ? reached.jobs = wanted.jobs : ++refused;
  }
  if (wanted.buffer_bytes != present.buffer_bytes) {
    const std::string bytes = std::to_string(wanted.buffer_bytes);
    const bool taken =
        db_->SetOptions(Changes{{"write_buffer_size", bytes},
                                {"target_file_size_base", bytes},
                                {"max_bytes_for_level_base", std::to_string(l1_buffers_ * wanted.buffer_bytes)}})
            .ok();
    taken ? reached.buffer_bytes = wanted.buffer_bytes : ++refused;
  }
  const std::lock_guard lock(mutex_);
  refused_ += refused;
  ++jobs_rules_[index_of(decision.jobs_rule)];
  ++buffer_rules_[index_of(decision.buffer_rule)];
  settings_ = reached;
  if (reached == present) return;
  events_.push_back({steady_now_ns(),
                     "adoc",
                     {{"background_jobs", reached.jobs},
                      {"write_buffer_bytes", static_cast<double>(reached.buffer_bytes)},
                      {"flush_mb_s", signals.flush_bytes_s / kBytesPerMegabyte},
                      {"most_flush_mb_s", signals.most_flush_bytes_s / kBytesPerMegabyte},
                      {"immutable_memtables", static_cast<double>(signals.immutable_memtables)},
                      {"l0_share", signals.l0_share},
                      {"pending_share", signals.pending_share}},
                     std::string(name_of(decision.jobs_rule)) + "; buffer " + name_of(decision.buffer_rule)});
}

}  // namespace spillway::engine
