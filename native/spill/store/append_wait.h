// How long appends of a spill store have waited for the drive.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace spillway::spill {

// Thread-safe.
class AppendWait {
 public:
  std::chrono::nanoseconds total() const {
    return std::chrono::nanoseconds(nanoseconds_.load(std::memory_order_relaxed));
  }
  void add(std::chrono::nanoseconds waited) { nanoseconds_.fetch_add(waited.count(), std::memory_order_relaxed); }

  // Adds the time for which it lives.
  class Measure {
   public:
    explicit Measure(AppendWait& wait) : wait_(wait) {}
    ~Measure() { wait_.add(std::chrono::steady_clock::now() - began_); }
    Measure(const Measure&) = delete;
    Measure& operator=(const Measure&) = delete;

   private:
    AppendWait& wait_;
    const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  };

 private:
  std::atomic<std::int64_t> nanoseconds_{0};
};

}  // namespace spillway::spill
