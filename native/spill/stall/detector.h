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

  // REQUIRES: stop() is called before either is destroyed.
  void start(rocksdb::DB* db, const ColumnFamilies* families, OnPoll on_poll) EXCLUDES(report_mutex_, mutex_);
  void stop() EXCLUDES(report_mutex_, mutex_);

  // As a process exits, whose RocksDB is about to lose its static objects: polls end, at the latest after `most` or
  // with the one that the caller is called from. The object stays as it is otherwise, until stop().
  void end_polls(std::chrono::milliseconds most) EXCLUDES(mutex_);

  Route route() const { return route_.load(std::memory_order_acquire); }
  Signals signals() const EXCLUDES(mutex_);
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
  std::atomic<Route> route_{Route::main};

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
