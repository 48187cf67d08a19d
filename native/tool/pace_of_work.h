// When to tell how far the work is: about twice a second, by the wall clock, which nothing but progress reads.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "tool/events.h"

namespace spillway::tool {

class PaceOfWork {
 public:
  PaceOfWork(Events& events, std::string phase, std::string unit)
      : events_(events), phase_(std::move(phase)), unit_(std::move(unit)) {}

  // Tells it when it is time to; without a total where none is known. REQUIRES: done never falls.
  void at(std::uint64_t done, std::optional<std::uint64_t> total) {
    const auto now = Clock::now();
    const std::chrono::duration<double> elapsed = now - told_;
    if (elapsed.count() < kIntervalSeconds) return;
    const double rate_per_s = static_cast<double>(done - done_) / elapsed.count();
    events_.progress(phase_, static_cast<double>(done), total ? static_cast<double>(*total) : -1, unit_, rate_per_s);
    told_ = now;
    done_ = done;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr double kIntervalSeconds = 0.5;  // contract/README.md: now and then

  Events& events_;
  std::string phase_;
  std::string unit_;
  Clock::time_point told_ = Clock::now();
  std::uint64_t done_ = 0;
};

}  // namespace spillway::tool
