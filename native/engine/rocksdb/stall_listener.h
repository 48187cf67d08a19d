// Feeds a StallTimeline from RocksDB's notifications and properties.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/listener.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "engine/rocksdb/stall_timeline.h"
#include "engine/writer_stalls.h"

namespace spillway::engine {

class StallListener final : public rocksdb::EventListener {
 public:
  StallListener() = default;
  ~StallListener() override { detach(); }

  // Starts to read the database's properties. REQUIRES: detach() before the database is closed.
  void attach(rocksdb::DB* db);
  void detach();

  // Reads the database's stall state now. `signals`: its properties at this moment.
  void poll(const StallSignals& signals);

  StallState state() const;
  StallCause cause() const;
  std::vector<Stall> stalls() const;

  // RocksDB may hold its lock here, so these do not call it. (For the first one its documentation says that the lock is
  // not held; 7.8.3 holds it while it reserves file numbers for an ingestion.)
  void OnStallConditionsChanged(const rocksdb::WriteStallInfo& info) override;
  void OnMemTableSealed(const rocksdb::MemTableInfo& info) override;

 private:
  void poll(rocksdb::DB& db, const StallSignals& signals, std::optional<StallState> left);
  void run();

  // Never held during a call of RocksDB, whose callbacks take this lock under RocksDB's own.
  mutable std::mutex mutex_;
  StallTimeline timeline_;
  StallLimits limits_;
  StallCounts counts_;  // as of the last poll
  rocksdb::DB* db_ = nullptr;

  // Polls after each notification, in a thread that may call RocksDB.
  std::condition_variable wake_;
  std::deque<StallState> left_states_;  // reported by notifications, oldest first
  std::thread thread_;
};

// The properties that RocksDB compares with its limits.
StallSignals signals_of(rocksdb::DB& db);

}  // namespace spillway::engine
