// Detects write stalls early (K3): RocksDB's notifications at once, its properties ten times a second and after each of
// its flushes and compactions.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/listener.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "spill/compat/job_listener.h"
#include "spill/live/column_families.h"
#include "spill/stall/burst_watch.h"
#include "spill/stall/policy.h"

namespace spillway::spill {

// Reads the properties that RocksDB compares with its triggers. Returns those of the column family that is nearest to
// one of its thresholds: if any family would have writes diverted after `now`, this one would.
Signals signals_of(rocksdb::DB& db, const ColumnFamilies& families, const DivertPolicy& policy, Route now);

class Detector final : public JobListener {
 public:
  // `on_poll` is called by the detector's thread after every poll, and by the thread that noticed a stall before
  // diversion starts.
  using OnPoll = std::function<void(const Signals& signals, Route before, Route now)>;

  Detector(DivertPolicy policy, std::chrono::milliseconds interval);
  ~Detector() override;

  // What writers do, at each poll.
  using Activity = std::function<BurstWatch::Activity()>;
  // REQUIRES: stop() is called before either is destroyed.
  void start(rocksdb::DB* db, const ColumnFamilies* families, OnPoll on_poll, Activity activity = nullptr)
      EXCLUDES(report_mutex_, mutex_);
  void stop() EXCLUDES(report_mutex_, mutex_);

  // As a process exits, whose RocksDB is about to lose its static objects: polls end, at the latest after `most` or
  // with the one that the caller is called from. The object stays as it is otherwise, until stop().
  void end_polls(std::chrono::milliseconds most) EXCLUDES(mutex_);

  Route route() const { return route_.load(std::memory_order_acquire); }
  Signals signals() const EXCLUDES(mutex_);
  // Whether the burst of writes is over that the last diversion began with (BurstWatch).
  bool is_burst_over() const { return is_burst_over_.load(std::memory_order_relaxed); }
  // RocksDB refused a write (Incomplete): it is in a stall for which no notification has arrived.
  void report_refusal() EXCLUDES(report_mutex_, mutex_);
  // Polls now instead of at the next interval.
  void poll_now() EXCLUDES(mutex_);

  // RocksDB's mutex is not held here; RocksDB must not be called nevertheless.
  void OnStallConditionsChanged(const rocksdb::WriteStallInfo& info) override;

 private:
  void on_job_ended() override { poll_now(); }
  void run() EXCLUDES(report_mutex_, mutex_);
  void poll() EXCLUDES(report_mutex_, mutex_);
  void divert_now() EXCLUDES(report_mutex_, mutex_);

  const DivertPolicy policy_;
  const std::chrono::milliseconds interval_;
  rocksdb::DB* db_ = nullptr;  // this and the next: set before the thread is started
  const ColumnFamilies* families_ = nullptr;
  Mutex report_mutex_ ACQUIRED_BEFORE(mutex_);  // held during a call of on_poll_
  OnPoll on_poll_ GUARDED_BY(report_mutex_);
  Route last_reported_ GUARDED_BY(report_mutex_) = Route::main;  // the route of the last call of on_poll_
  Activity activity_ GUARDED_BY(report_mutex_);
  BurstWatch burst_ GUARDED_BY(report_mutex_);
  std::atomic<Route> route_{Route::main};
  std::atomic<bool> is_burst_over_{false};

  mutable Mutex mutex_;
  CondVar wake_;
  Signals signals_ GUARDED_BY(mutex_);
  bool poll_now_ GUARDED_BY(mutex_) = false;
  bool stopping_ GUARDED_BY(mutex_) = false;
  bool has_ended_ GUARDED_BY(mutex_) = false;
  CondVar ended_;
  std::thread thread_;
};

}  // namespace spillway::spill
