// Listens to RocksDB and asks its properties, so that a StallTimeline knows when writers were held back, and why.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/listener.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/stall_timeline.h"

namespace spillway::engine {

// std::chrono::steady_clock, ns.
std::int64_t steady_now_ns();

class StallWatch final : public rocksdb::EventListener {
 public:
  // From now on the database's properties are asked. REQUIRES: detach() before the database is deleted.
  void attach(rocksdb::DB* db);
  void detach();

  // Looks at the database now. `signals` are its properties of this moment.
  void look(const StallSignals& signals);

  StallState state() const;
  StallCause cause() const;
  std::vector<Stall> stalls() const;

  void OnStallConditionsChanged(const rocksdb::WriteStallInfo& info) override;
  // RocksDB's lock is held here: it must not be asked for anything.
  void OnMemTableSealed(const rocksdb::MemTableInfo& info) override;

 private:
  void look(rocksdb::DB& db, const StallSignals& signals, std::optional<StallState> left);

  // Never held while RocksDB is asked: its callbacks take this lock under RocksDB's own.
  mutable std::mutex mutex_;
  StallTimeline timeline_;
  StallLimits limits_;
  StallCounts counts_;  // as of the last look
  rocksdb::DB* db_ = nullptr;
};

// The properties that RocksDB compares with its limits.
StallSignals signals_of(rocksdb::DB& db);

}  // namespace spillway::engine
