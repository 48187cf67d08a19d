// Holds writers to a rate: each waits until a token bucket lets its bytes through.
//
// Writers are let through in the order in which they came. The first one waits in steps of a millisecond, so that a new
// limit, or the end, is seen within one.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/mutex.h"
#include "engine/rocksdb/token_bucket.h"

namespace spillway::engine {

// The limiter's time, in ns. Tests replace it. Thread-safe.
class LimiterClock {
 public:
  virtual ~LimiterClock() = default;
  virtual std::int64_t now_ns();  // std::chrono::steady_clock
  // Returns at `time_ns` or a little later.
  virtual void sleep_until(std::int64_t time_ns);
};

// Thread-safe.
class WriteLimiter {
 public:
  // REQUIRES: `clock` outlives it
  explicit WriteLimiter(LimiterClock& clock) : clock_(clock) {}

  // Returns when a write of `bytes` may begin, after stop() at once.
  void admit(std::uint64_t bytes);

  // TokenBucket::kUnlimited: nobody waits. REQUIRES: bytes_s > 0
  void set_limit(double bytes_s);
  double limit_bytes_s();

  // Bytes let through since the last call.
  std::uint64_t take_admitted_bytes() { return admitted_bytes_.exchange(0, std::memory_order_relaxed); }

  // Writers that wait, and those to come, are let through. Nothing is limited afterwards.
  void stop();

  struct Waits {
    std::uint64_t count = 0;
    std::int64_t ns = 0;          // of all writers together
    std::int64_t longest_ns = 0;  // of one
    std::uint64_t waiting = 0;    // now
  };
  Waits waits();

 private:
  void wait(std::uint64_t bytes) EXCLUDES(mutex_);

  LimiterClock& clock_;
  std::atomic<std::uint64_t> admitted_bytes_{0};
  std::atomic<bool> is_limited_{false};  // what a write looks at without the lock
  Mutex mutex_;
  CondVar next_or_stop_;
  TokenBucket bucket_ GUARDED_BY(mutex_);
  std::uint64_t came_ GUARDED_BY(mutex_) = 0;  // writers, whose number is their turn
  std::uint64_t left_ GUARDED_BY(mutex_) = 0;  // and the turn of the first that waits
  bool stopped_ GUARDED_BY(mutex_) = false;
  Waits waits_ GUARDED_BY(mutex_);
};

}  // namespace spillway::engine
