// Runs ADOC on an open RocksDB: a listener for its flushes, a thread that decides and sets.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/listener.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/engine.h"
#include "engine/rocksdb/adoc.h"

namespace spillway::engine {

class AdocTuner final : public rocksdb::EventListener {
 public:
  explicit AdocTuner(const AdocOptions& options) : options_(options) {}
  ~AdocTuner() override { stop(); }

  // REQUIRES: `db` was opened with this listener; stop() before it is closed.
  void start(rocksdb::DB* db);
  void stop();

  AdocSettings settings() const;
  // How often it looked, which rules had the last word, and what RocksDB refused.
  std::map<std::string, std::uint64_t> counters() const;
  // Each change it made since the last call, oldest first.
  std::vector<Event> take_events();

  void OnTableFileCreationStarted(const rocksdb::TableFileCreationBriefInfo& info) override;
  void OnTableFileCreated(const rocksdb::TableFileCreationInfo& info) override;

 private:
  void work();
  void tick();
  AdocSignals signals(double flush_bytes_s);
  void apply(const AdocSettings& present, const AdocDecision& decision, const AdocSignals& signals);

  const AdocOptions options_;
  rocksdb::DB* db_ = nullptr;
  // As the database was opened.
  std::uint64_t initial_buffer_bytes_ = 0;
  std::uint64_t l1_buffers_ = 0;  // L0 trigger x memtables merged by a flush: the level base, in buffers
  double l0_slowdown_ = 0;
  double soft_pending_bytes_ = 0;
  double most_flush_bytes_s_ = 0;  // of the tuning thread alone
  std::thread thread_;

  mutable std::mutex mutex_;
  std::condition_variable stopping_;
  bool stop_ = false;
  std::map<std::string, std::chrono::steady_clock::time_point> flushes_;  // under way, by their file
  double bandwidth_sum_ = 0;  // of the flushes that ended since the last tick
  std::uint64_t flushes_ended_ = 0;
  AdocSettings settings_;
  std::uint64_t ticks_ = 0;
  std::uint64_t refused_ = 0;
  std::array<std::uint64_t, 4> jobs_rules_{};    // by AdocJobsRule
  std::array<std::uint64_t, 3> buffer_rules_{};  // by AdocBufferRule
  std::vector<Event> events_;
};

}  // namespace spillway::engine
