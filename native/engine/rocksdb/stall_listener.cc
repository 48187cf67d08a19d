#include "engine/rocksdb/stall_listener.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>

#include "spill/compat/stall_counts.h"

namespace spillway::engine {

using Properties = rocksdb::DB::Properties;

namespace {

std::uint64_t int_property(rocksdb::DB& db, const std::string& name) {
  std::uint64_t value = 0;
  return db.GetIntProperty(name, &value) ? value : 0;
}

StallState state_now(rocksdb::DB& db) {
  if (int_property(db, Properties::kIsWriteStopped) != 0) return StallState::stopped;
  return int_property(db, Properties::kActualDelayedWriteRate) != 0 ? StallState::delayed : StallState::normal;
}

StallCounts counts_of(rocksdb::DB& db) {
  StallCounts counts;
  const auto found = spill::stall_counts_of(db, db.DefaultColumnFamily());
  if (!found) return counts;
  counts.stopped = {0, found->memtable.stopped, found->l0.stopped, found->pending_compaction_bytes.stopped};
  counts.delayed = {0, found->memtable.delayed, found->l0.delayed, found->pending_compaction_bytes.delayed};
  return counts;
}

StallLimits limits_of(rocksdb::DB& db) {
  const rocksdb::Options options = db.GetOptions();
  const auto positive = [](int value) { return static_cast<std::uint64_t>(std::max(value, 0)); };
  return {.max_write_buffer_number = positive(options.max_write_buffer_number),
          .min_write_buffer_number_to_merge = positive(options.min_write_buffer_number_to_merge),
          .l0_slowdown = positive(options.level0_slowdown_writes_trigger),
          .l0_stop = positive(options.level0_stop_writes_trigger),
          .soft_pending_bytes = options.soft_pending_compaction_bytes_limit,
          .hard_pending_bytes = options.hard_pending_compaction_bytes_limit,
          .compacts = !options.disable_auto_compactions};
}

StallState state_of(rocksdb::WriteStallCondition condition) {
  switch (condition) {
    case rocksdb::WriteStallCondition::kStopped:
      return StallState::stopped;
    case rocksdb::WriteStallCondition::kDelayed:
      return StallState::delayed;
    default:
      return StallState::normal;
  }
}

}  // namespace

StallSignals signals_of(rocksdb::DB& db) {
  StallSignals signals;
  signals.immutable_memtables = int_property(db, Properties::kNumImmutableMemTable);
  signals.pending_compaction_bytes = int_property(db, Properties::kEstimatePendingCompactionBytes);
  std::string files;
  if (db.GetProperty(Properties::kNumFilesAtLevelPrefix + "0", &files)) {
    signals.l0_files = std::strtoull(files.c_str(), nullptr, 10);
  }
  return signals;
}

void StallListener::attach(rocksdb::DB* db) {
  const StallLimits limits = limits_of(*db);
  const StallCounts counts = counts_of(*db);
  const std::lock_guard lock(mutex_);
  limits_ = limits;
  counts_ = counts;
  db_ = db;
  thread_ = std::thread([this] { run(); });
}

void StallListener::detach() {
  {
    const std::lock_guard lock(mutex_);
    db_ = nullptr;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void StallListener::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return db_ == nullptr || !left_states_.empty(); });
    if (db_ == nullptr) return;
    rocksdb::DB* const db = db_;
    const StallState left = left_states_.front();
    left_states_.pop_front();
    lock.unlock();
    poll(*db, signals_of(*db), left);
    lock.lock();
  }
}

void StallListener::poll(const StallSignals& signals) {
  rocksdb::DB* db = nullptr;
  {
    const std::lock_guard lock(mutex_);
    db = db_;
  }
  if (db != nullptr) poll(*db, signals, std::nullopt);
}

void StallListener::poll(rocksdb::DB& db, const StallSignals& signals, std::optional<StallState> left) {
  const StallState current = state_now(db);
  {
    const std::lock_guard lock(mutex_);
    const bool quiet = current == StallState::normal && timeline_.state() == StallState::normal;
    if (quiet && !left) return;  // RocksDB's counts are expensive to read, and there is nothing to explain
  }
  const StallCounts counts = counts_of(db);
  const std::lock_guard lock(mutex_);
  timeline_.seen(steady_now_ns(), current, explain(signals, limits_, counts_, counts), left);
  counts_ = counts;
}

StallState StallListener::state() const {
  const std::lock_guard lock(mutex_);
  return timeline_.state();
}

StallCause StallListener::cause() const {
  const std::lock_guard lock(mutex_);
  return timeline_.cause();
}

std::vector<Stall> StallListener::stalls() const {
  const std::lock_guard lock(mutex_);
  return timeline_.stalls(steady_now_ns());
}

void StallListener::OnStallConditionsChanged(const rocksdb::WriteStallInfo& info) {
  const std::lock_guard lock(mutex_);
  if (db_ == nullptr) return;
  left_states_.push_back(state_of(info.condition.prev));
  wake_.notify_one();
}

void StallListener::OnMemTableSealed(const rocksdb::MemTableInfo& /*info*/) {
  const std::lock_guard lock(mutex_);
  timeline_.sealed(steady_now_ns());
}

}  // namespace spillway::engine
