#include "spill/stall/detector.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace spillway::spill {
namespace {

using Properties = rocksdb::DB::Properties;

std::uint64_t int_property(rocksdb::DB& db, rocksdb::ColumnFamilyHandle* family, const std::string& name) {
  std::uint64_t value = 0;
  return db.GetIntProperty(family, name, &value) ? value : 0;
}

int l0_files_of(rocksdb::DB& db, rocksdb::ColumnFamilyHandle* family) {
  const std::string name = Properties::kNumFilesAtLevelPrefix + "0";  // not static: the program may be exiting
  std::string text;
  return db.GetProperty(family, name, &text) ? std::atoi(text.c_str()) : 0;
}

// How near a family is to the nearest threshold that applies after `now`; 1: reached.
double nearness(const Signals& signals, const DivertPolicy& policy, Route now) {
  const Thresholds at = thresholds_of(signals, policy);
  const bool diverted = now == Route::spill;
  const auto share = [](auto value, auto limit) {
    return limit == 0 ? 0 : static_cast<double>(value) / static_cast<double>(limit);
  };
  return std::max({share(signals.l0_files, diverted ? at.resume_l0_files : at.divert_l0_files),
                   share(signals.immutable_memtables, at.divert_memtables),
                   share(signals.pending_compaction_bytes, diverted ? at.resume_pending : at.divert_pending)});
}

}  // namespace

Signals signals_of(rocksdb::DB& db, const ColumnFamilies& families, const DivertPolicy& policy, Route now) {
  Signals worst;
  rocksdb::ColumnFamilyHandle* const any = db.DefaultColumnFamily();
  worst.is_stalled = int_property(db, any, Properties::kIsWriteStopped) != 0 ||
                     int_property(db, any, Properties::kActualDelayedWriteRate) != 0;
  double worst_nearness = -1;
  families.for_each([&](const ColumnFamily& family) {
    if (family.handle == nullptr) return;
    Signals one = family.limits;
    one.is_stalled = worst.is_stalled;
    one.l0_files = l0_files_of(db, family.handle);
    one.immutable_memtables = static_cast<int>(int_property(db, family.handle, Properties::kNumImmutableMemTable));
    one.pending_compaction_bytes = int_property(db, family.handle, Properties::kEstimatePendingCompactionBytes);
    const double near = nearness(one, policy, now);
    if (near <= worst_nearness) return;
    worst = one;
    worst_nearness = near;
  });
  return worst;
}

Detector::Detector(DivertPolicy policy, std::chrono::milliseconds interval) : policy_(policy), interval_(interval) {}

Detector::~Detector() { stop(); }

void Detector::start(rocksdb::DB* db, const ColumnFamilies* families, OnPoll on_poll, Activity activity) {
  db_ = db;
  families_ = families;
  {
    const MutexLock reporting(report_mutex_);
    on_poll_ = std::move(on_poll);
    activity_ = std::move(activity);
    last_reported_ = Route::main;  // the stall of a database that is just opened has not been reported
  }
  {
    const MutexLock lock(mutex_);
    stopping_ = false;
    has_ended_ = false;
  }
  thread_ = std::thread([this] { run(); });
}

void Detector::stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  const MutexLock reporting(report_mutex_);
  on_poll_ = nullptr;
  activity_ = nullptr;
}

void Detector::end_polls(std::chrono::milliseconds most) {
  const auto until = std::chrono::steady_clock::now() + most;
  MutexLock lock(mutex_);
  stopping_ = true;
  wake_.notify_all();
  if (std::this_thread::get_id() == thread_.get_id()) return;
  while (!has_ended_ && std::chrono::steady_clock::now() < until) ended_.wait_until(mutex_, until);
}

Signals Detector::signals() const {
  const MutexLock lock(mutex_);
  return signals_;
}

// Reports the change before the first write is diverted.
void Detector::divert_now() {
  if (route_.load(std::memory_order_relaxed) != Route::spill) {
    const MutexLock reporting(report_mutex_);
    const Route before = std::exchange(last_reported_, Route::spill);
    if (before != Route::spill && on_poll_) on_poll_(signals(), before, Route::spill);
    route_.store(Route::spill, std::memory_order_release);
  }
  poll_now();
}

void Detector::report_refusal() { divert_now(); }

void Detector::poll_now() {
  {
    const MutexLock lock(mutex_);
    poll_now_ = true;
  }
  wake_.notify_one();
}

// Two threads may report two changes in any order, so the last report need not be the current state. A report only
// triggers a poll, and diverts until that is done.
void Detector::OnStallConditionsChanged(const rocksdb::WriteStallInfo& info) {
  info.condition.cur == rocksdb::WriteStallCondition::kNormal ? poll_now() : divert_now();
}

void Detector::poll() {
  const Signals signals = signals_of(*db_, *families_, policy_, route());
  const MutexLock reporting(report_mutex_);
  const Route route = route_.load(std::memory_order_relaxed);
  const bool burst_lasts = activity_ && burst_.lasts(activity_(), route, std::chrono::steady_clock::now());
  const Route now = next_route(route, signals, policy_, burst_lasts);
  is_burst_over_.store(burst_.is_over(), std::memory_order_relaxed);
  {
    const MutexLock lock(mutex_);
    signals_ = signals;
  }
  const Route before = std::exchange(last_reported_, now);
  if (now == Route::spill) on_poll_(signals, before, now);
  route_.store(now, std::memory_order_release);
  if (now == Route::main) on_poll_(signals, before, now);
}

void Detector::run() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    poll_now_ = false;
    lock.unlock();
    poll();
    lock.lock();
    const auto next = std::chrono::steady_clock::now() + interval_;
    while (!stopping_ && !poll_now_ && std::chrono::steady_clock::now() < next) wake_.wait_until(mutex_, next);
  }
  has_ended_ = true;
  ended_.notify_all();
}

}  // namespace spillway::spill
