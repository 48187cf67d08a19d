// The duration of the metamorphic tests, and their first seed.
//
// By default a few seconds with fixed seeds. SPILLWAY_METAMORPHIC_SECONDS=N continues with other seeds for that long,
// beginning with SPILLWAY_METAMORPHIC_SEED or else a seed from the clock. SPILLWAY_METAMORPHIC_SEED=N alone runs only
// that seed, to reproduce a failure.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <thread>

#include "spill_two_databases.h"

namespace spillway::clients {

struct Seeds {
  std::uint64_t from = 1;
  int count = 1;
  int steps = 0;           // of each run; five times as many in a long run
  double share = 1.0 / 6;  // of the requested seconds, because six tests have long runs
};

inline std::uint64_t number_of(const char* variable) {
  const char* const text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : 0;
}

// Stops at the first failure, and reports its seed.
inline void for_each_seed(const Seeds& seeds, const std::function<void(std::uint64_t seed, int steps)>& run) {
  using Clock = std::chrono::steady_clock;
  const std::uint64_t asked = number_of("SPILLWAY_METAMORPHIC_SEED");
  const double seconds = static_cast<double>(number_of("SPILLWAY_METAMORPHIC_SECONDS")) * seeds.share;
  const bool has_time_limit = seconds > 0;
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  std::uint64_t seed = asked > 0 ? asked : seeds.from;
  if (has_time_limit && asked == 0) seed = static_cast<std::uint64_t>(std::time(nullptr));
  if (has_time_limit) std::cout << "from seed " << seed << " on" << std::endl;
  int runs = 0;
  for (;; ++seed) {
    if (has_time_limit ? Clock::now() >= end : runs == (asked > 0 ? 1 : seeds.count)) break;
    run(seed, has_time_limit || asked > 0 ? 5 * seeds.steps : seeds.steps);
    ++runs;
    if (!::testing::Test::HasFailure()) continue;
    std::cout << "again: SPILLWAY_METAMORPHIC_SEED=" << seed << std::endl;
    return;
  }
  if (has_time_limit) std::cout << runs << " seeds, up to " << seed - 1 << std::endl;
}

// Brings back what was diverted, repeatedly, until it is destroyed.
class RollbackThread {
 public:
  RollbackThread(TwoDatabases& databases, std::uint64_t seed)
      : thread_([this, &databases, seed] {
          Random random(seed);
          while (!stop_) {
            std::this_thread::sleep_for(std::chrono::microseconds(random.below(5000)));
            databases.rollback();
          }
        }) {}
  ~RollbackThread() {
    stop_ = true;
    thread_.join();
  }
  RollbackThread(const RollbackThread&) = delete;
  RollbackThread& operator=(const RollbackThread&) = delete;

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace spillway::clients
