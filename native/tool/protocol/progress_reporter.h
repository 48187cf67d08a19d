// Reports the progress of one phase of a command about twice a second, by the wall clock.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "tool/protocol/events.h"

namespace spillway::tool {

class ProgressReporter {
 public:
  ProgressReporter(Events& events, std::string phase, std::string unit)
      : events_(events), phase_(std::move(phase)), unit_(std::move(unit)) {}

  // Writes a progress event if the last one is at least half a second old. No `total`: unknown.
  // REQUIRES: `done` never falls.
  void report(std::uint64_t done, std::optional<std::uint64_t> total) {
    const auto now = Clock::now();
    const std::chrono::duration<double> elapsed = now - reported_at_;
    if (elapsed.count() < kIntervalSeconds) return;
    const double rate_per_s = static_cast<double>(done - reported_done_) / elapsed.count();
    events_.progress(phase_, static_cast<double>(done), total ? static_cast<double>(*total) : -1, unit_, rate_per_s);
    reported_at_ = now;
    reported_done_ = done;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr double kIntervalSeconds = 0.5;  // contract/README.md: at intervals

  Events& events_;
  std::string phase_;
  std::string unit_;
  Clock::time_point reported_at_ = Clock::now();
  std::uint64_t reported_done_ = 0;
};

}  // namespace spillway::tool
