// The clock of workers and recorder. Tests replace it.
#pragma once

#include <cstdint>

namespace spillway::load {

class Clock {
 public:
  virtual ~Clock() = default;
  // Monotonic, in nanoseconds.
  virtual std::int64_t now_ns() = 0;
  // Returns at `time_ns` or a little later.
  virtual void sleep_until(std::int64_t time_ns) = 0;
};

// std::chrono::steady_clock, which engine::Stall uses too.
class SteadyClock final : public Clock {
 public:
  std::int64_t now_ns() override;
  void sleep_until(std::int64_t time_ns) override;
};

}  // namespace spillway::load
