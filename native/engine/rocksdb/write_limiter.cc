#include "engine/rocksdb/write_limiter.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "engine/writer_stalls.h"

namespace spillway::engine {

std::int64_t LimiterClock::now_ns() { return steady_now_ns(); }

void LimiterClock::sleep_until(std::int64_t time_ns) {
  std::this_thread::sleep_until(std::chrono::steady_clock::time_point(std::chrono::nanoseconds(time_ns)));
}

void WriteLimiter::admit(std::uint64_t bytes) {
  if (is_limited_.load(std::memory_order_relaxed)) wait(bytes);
  admitted_bytes_.fetch_add(bytes, std::memory_order_relaxed);
}

void WriteLimiter::wait(std::uint64_t bytes) {
  const std::int64_t began_ns = clock_.now_ns();
  MutexLock lock(mutex_);
  const std::uint64_t turn = came_++;
  bool waited = left_ != turn;
  while (left_ != turn) next_or_stop_.wait(mutex_);
  while (!stopped_ && !bucket_.try_take(bytes, clock_.now_ns())) {
    waited = true;
    lock.unlock();
    clock_.sleep_until(clock_.now_ns() + TokenBucket::kRefillNs);
    lock.lock();
  }
  ++left_;
  next_or_stop_.notify_all();
  if (!waited) return;
  const std::int64_t waited_ns = clock_.now_ns() - began_ns;
  ++waits_.count;
  waits_.ns += waited_ns;
  waits_.longest_ns = std::max(waits_.longest_ns, waited_ns);
}

void WriteLimiter::set_limit(double bytes_s) {
  const MutexLock lock(mutex_);
  if (stopped_) return;
  bucket_.set_rate(bytes_s, clock_.now_ns());
  is_limited_.store(bytes_s != TokenBucket::kUnlimited, std::memory_order_relaxed);
}

double WriteLimiter::limit_bytes_s() {
  const MutexLock lock(mutex_);
  return bucket_.rate_bytes_s();
}

void WriteLimiter::stop() {
  const MutexLock lock(mutex_);
  stopped_ = true;
  bucket_.set_rate(TokenBucket::kUnlimited, clock_.now_ns());
  is_limited_.store(false, std::memory_order_relaxed);
}

WriteLimiter::Waits WriteLimiter::waits() {
  const MutexLock lock(mutex_);
  Waits waits = waits_;
  waits.waiting = came_ - left_;
  return waits;
}

}  // namespace spillway::engine
