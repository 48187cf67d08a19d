// One thread of a phase: has its client execute operations, when they are due, and records what they took.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "engine/engine.h"
#include "load/arrivals.h"
#include "load/client/client.h"
#include "load/client/pairs.h"
#include "load/clock.h"
#include "load/tally.h"
#include "load/workload.h"
#include "load/ycsb/client.h"

namespace spillway::load {

// What the workers of a phase share.
struct WorkerSetting {
  engine::Engine& engine;
  Clock& clock;
  const PairSpec& pairs;
  const ValueBuffer& values;
  std::uint64_t seek_nexts = 0;
  std::uint32_t read_write_percent = 90;
  std::optional<ycsb::PhaseSetting> ycsb = std::nullopt;  // of a phase of YCSB's
};

// What a thread with this plan does. REQUIRES: `setting.ycsb` where the plan is of a phase of YCSB's.
std::unique_ptr<Client> make_client(const WorkerSetting& setting, const ThreadPlan& plan);

class Worker {
 public:
  Worker(const WorkerSetting& setting, const ThreadPlan& plan);

  // Works until the plan's operations are done, `deadline_ns` has passed, `stop` is set or an operation fails.
  // An operation that has begun is waited for and counted, however long it takes.
  // Latency in a closed loop runs from the end of the operation before, as db_bench's histogram does: one reading of
  // the clock per operation, the making of its key included. In an open loop it runs from the intended start.
  Status run(std::int64_t begin_ns, std::int64_t deadline_ns, const std::atomic<bool>& stop);

  // REQUIRES: before run(); `leader` outlives it. What plan.per_background_operation counts against.
  void follow(const Worker& leader) { leader_ = &leader; }

  // --- While it runs, from other threads.
  void take(Tally& into) { tally_.take(into); }
  std::uint64_t finished() const { return finished_.load(std::memory_order_relaxed); }

  // --- After it has run.
  const ThreadPlan& plan() const { return plan_; }
  // Operations of an open loop that were due but not started when the thread ended: their wait is in no histogram.
  std::uint64_t not_started() const { return not_started_; }

 private:
  static constexpr std::int64_t kLongestSleepNs = 50'000'000;  // between looks at `stop`
  // Between looks at how far the leader is: a tenth of the time between two reads at 500 of them a second.
  static constexpr std::int64_t kFollowSleepNs = 200'000;

  std::optional<std::int64_t> wait_for(std::int64_t time_ns, std::int64_t deadline_ns, const std::atomic<bool>& stop);
  bool wait_for_leader(std::uint64_t done, std::int64_t deadline_ns, const std::atomic<bool>& stop);
  void note(const Outcome& outcome, std::int64_t latency_ns, std::optional<std::int64_t> lag_ns);

  WorkerSetting setting_;
  ThreadPlan plan_;
  std::unique_ptr<Client> client_;
  const Worker* leader_ = nullptr;
  HandoverTally tally_;
  std::uint64_t not_started_ = 0;
  std::atomic<std::uint64_t> finished_{0};
};

}  // namespace spillway::load
