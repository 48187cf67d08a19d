// One thread of a phase: executes its client's operations when they are due, and records their latencies.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

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

// Shared by the workers of a phase.
struct WorkerContext {
  engine::Engine& engine;
  Clock& clock;
  const PairSpec& pairs;
  const ValueBuffer& values;
  std::uint64_t seek_nexts = 0;
  std::uint32_t read_write_percent = 90;
  std::optional<ycsb::PhaseContext> ycsb = std::nullopt;  // for a YCSB phase
};

// REQUIRES: `context.ycsb` is set for a thread of a YCSB phase.
std::unique_ptr<Client> make_client(const WorkerContext& context, const ThreadSpec& thread_spec);

class Worker {
 public:
  Worker(const WorkerContext& context, const ThreadSpec& thread_spec);

  // Runs until all operations are done, `deadline_ns` has passed, `stop` is set or an operation fails. An operation
  // that has begun is waited for and counted, however long it takes. Closed loop: latency runs from the end of the
  // previous operation, as in db_bench, so it includes making the key and costs one reading of the clock. Open loop:
  // latency runs from the intended start.
  Status run(std::int64_t begin_ns, std::int64_t deadline_ns, const std::atomic<bool>& stop);

  // A worker whose operations ThreadSpec::per_paced_operation counts; of several, all together.
  // REQUIRES: before run(); `pacer` outlives this.
  void add_pacer(const Worker& pacer) { pacers_.push_back(&pacer); }
  // A worker that shares this one's limit, itself included (ThreadSpec::shares_limit). REQUIRES: as add_pacer().
  void add_sharer(const Worker& sharer) { sharers_.push_back(&sharer); }

  // --- During run(), by other threads.
  void take(Tally& into) { tally_.take(into); }
  std::uint64_t finished() const { return finished_.load(std::memory_order_relaxed); }

  // --- After run().
  const ThreadSpec& spec() const { return thread_spec_; }
  // Open loop: operations that were due but not started when the thread ended. Their wait is in no histogram.
  std::uint64_t not_started() const { return not_started_; }

 private:
  static constexpr std::int64_t kLongestSleepNs = 50'000'000;  // longest time between checks of `stop`
  // Interval between checks of the pacers' progress, by whichever of the threads that share a limit: a tenth of the
  // interval between reads at 500 reads a second.
  static constexpr std::int64_t kPacerSleepNs = 200'000;

  std::optional<std::int64_t> wait_for(std::int64_t time_ns, std::int64_t deadline_ns, const std::atomic<bool>& stop);
  bool may_begin(std::uint64_t done) const;
  bool wait_for_pacers(std::uint64_t done, std::int64_t deadline_ns, const std::atomic<bool>& stop);
  void note(const Outcome& outcome, std::int64_t latency_ns, std::optional<std::int64_t> lag_ns);

  WorkerContext context_;
  ThreadSpec thread_spec_;
  std::unique_ptr<Client> client_;
  std::vector<const Worker*> pacers_;
  std::vector<const Worker*> sharers_;
  DoubleBufferedTally tally_;
  std::uint64_t not_started_ = 0;
  std::atomic<std::uint64_t> finished_{0};
};

}  // namespace spillway::load
