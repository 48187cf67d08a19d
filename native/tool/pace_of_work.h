// When to tell how far the work is: about twice a second, by the wall clock, which nothing but progress reads.
#pragma once

#include <chrono>
#include <string>
#include <utility>

#include "tool/events.h"

namespace spillway::tool {

class PaceOfWork {
 public:
  PaceOfWork(Events& events, std::string phase, double total, std::string unit)
      : events_(events), phase_(std::move(phase)), total_(total), unit_(std::move(unit)) {}

  // Tells it when it is time to. REQUIRES: done never falls.
  void at(double done) {
    const auto now = Clock::now();
    const std::chrono::duration<double> elapsed = now - told_;
    if (elapsed.count() < kIntervalSeconds) return;
    events_.progress(phase_, done, total_, unit_, (done - done_) / elapsed.count());
    told_ = now;
    done_ = done;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr double kIntervalSeconds = 0.5;  // contract/README.md: now and then

  Events& events_;
  std::string phase_;
  double total_;
  std::string unit_;
  Clock::time_point told_ = Clock::now();
  double done_ = 0;
};

}  // namespace spillway::tool
