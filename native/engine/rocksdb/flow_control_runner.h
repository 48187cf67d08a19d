// Runs flow control on an open RocksDB: a listener for its flushes and compactions, a thread that judges, and the
// limiter that writers pass.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/listener.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "engine/engine.h"
#include "engine/rocksdb/flow_control.h"
#include "engine/rocksdb/write_limiter.h"

namespace spillway::engine {

class FlowControlRunner final : public rocksdb::EventListener {
 public:
  static constexpr std::chrono::milliseconds kTick{1000};  // Source: tikv/tikv, singleton_flow_controller.rs

  // `tick`: between two records of the write rate.
  explicit FlowControlRunner(const FlowControlOptions& options, std::chrono::milliseconds tick = kTick)
      : tick_(tick), control_(options), limiter_(clock_) {}
  ~FlowControlRunner() override { stop(); }

  // REQUIRES: `db` was opened with this listener; stop() before it is closed.
  void start(rocksdb::DB* db);
  // Writers that wait are let through.
  void stop();

  // Returns when a write of `bytes` may begin.
  void before_write(std::uint64_t bytes) { limiter_.admit(bytes); }

  // 0: writes are not limited.
  std::uint64_t limit_bytes_s();
  // How long writers waited, and how often each rule changed the limit.
  std::map<std::string, std::uint64_t> counters();
  // Each change of the limit since the last call, oldest first.
  std::vector<Event> take_events();

  // RocksDB is not called from these, only from the thread.
  void OnFlushCompleted(rocksdb::DB* db, const rocksdb::FlushJobInfo& info) override;
  void OnCompactionCompleted(rocksdb::DB* db, const rocksdb::CompactionJobInfo& info) override;

 private:
  enum class Change : std::uint8_t { flush, compaction, l0_compaction };

  void add(Change change);
  void work();
  void record_flow(std::chrono::steady_clock::time_point since);
  void judge(Change change);
  void apply(FlowRule rule, const StallSignals& signals);

  const std::chrono::milliseconds tick_;
  rocksdb::DB* db_ = nullptr;
  FlowControl control_;  // the thread's
  LimiterClock clock_;
  WriteLimiter limiter_;
  std::thread thread_;

  Mutex mutex_;
  CondVar wake_;
  bool stop_ GUARDED_BY(mutex_) = false;
  std::deque<Change> changes_ GUARDED_BY(mutex_);  // oldest first
  std::array<std::uint64_t, kFlowRules> rules_ GUARDED_BY(mutex_){};
  std::vector<Event> events_ GUARDED_BY(mutex_);
};

}  // namespace spillway::engine
