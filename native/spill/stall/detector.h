// Sees stalls come (K3): RocksDB's own word at once, its properties ten times a second.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/listener.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "spill/live/column_families.h"
#include "spill/stall/policy.h"

namespace spillway::spill {

// Reads the properties that RocksDB compares with its triggers. Of all column families that which is nearest to a
// threshold of its own: if any would have writes diverted after `now`, this one would.
Signals signals_of(rocksdb::DB& db, const ColumnFamilies& families, const DivertPolicy& policy, Route now);

class Detector final : public rocksdb::EventListener {
 public:
  // `on_look` is called after every look from the detector's thread, and before a stall diverts at once, from whoever
  // saw it.
  using OnLook = std::function<void(const Signals& signals, Route before, Route now)>;

  Detector(DivertPolicy policy, std::chrono::milliseconds interval);
  ~Detector() override;

  // REQUIRES: stop() before either is gone.
  void start(rocksdb::DB* db, const ColumnFamilies* families, OnLook on_look);
  void stop();

  Route route() const { return route_.load(std::memory_order_acquire); }
  Signals signals() const;
  // RocksDB refused a write (Incomplete): there is a stall that nobody has told of yet.
  void refused();
  // Looks now instead of at the next interval.
  void look_soon();

  // RocksDB's mutex is not held here, but it must not be asked for anything all the same.
  void OnStallConditionsChanged(const rocksdb::WriteStallInfo& info) override;

 private:
  void run();
  void look();
  void divert_now();

  const DivertPolicy policy_;
  const std::chrono::milliseconds interval_;
  rocksdb::DB* db_ = nullptr;
  const ColumnFamilies* families_ = nullptr;
  std::mutex telling_mutex_;  // on_look_ hears one change after the other
  OnLook on_look_;
  Route told_ = Route::main;  // what it last heard
  std::atomic<Route> route_{Route::main};

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  Signals signals_;
  bool look_soon_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace spillway::spill
