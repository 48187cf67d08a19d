// Listens to RocksDB and asks its properties, so that a StallTimeline knows when writers were held back, and why.
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

class StallWatch final : public rocksdb::EventListener {
 public:
  StallWatch() = default;
  ~StallWatch() override { detach(); }

  // From now on the database's properties are asked. REQUIRES: detach() before the database is closed.
  void attach(rocksdb::DB* db);
  void detach();

  // Looks at the database now. `signals` are its properties of this moment.
  void look(const StallSignals& signals);

  StallState state() const;
  StallCause cause() const;
  std::vector<Stall> stalls() const;

  // RocksDB's lock is held here, or may be: it must not be asked for anything. (Of the first its documentation says
  // that it is not, but 7.8.3 holds it while it reserves file numbers for an ingestion.)
  void OnStallConditionsChanged(const rocksdb::WriteStallInfo& info) override;
  void OnMemTableSealed(const rocksdb::MemTableInfo& info) override;

 private:
  void look(rocksdb::DB& db, const StallSignals& signals, std::optional<StallState> left);
  void run();

  // Never held while RocksDB is asked: its callbacks take this lock under RocksDB's own.
  mutable std::mutex mutex_;
  StallTimeline timeline_;
  StallLimits limits_;
  StallCounts counts_;  // as of the last look
  rocksdb::DB* db_ = nullptr;

  // Looks at what it is told of, at once, where RocksDB may be asked.
  std::condition_variable told_;
  std::deque<StallState> left_;  // states that notifications say were left, the oldest first
  std::thread thread_;
};

// The properties that RocksDB compares with its limits.
StallSignals signals_of(rocksdb::DB& db);

}  // namespace spillway::engine
