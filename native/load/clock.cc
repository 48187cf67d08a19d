#include "load/clock.h"

#include <chrono>
#include <thread>

namespace spillway::load {

std::int64_t SteadyClock::now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void SteadyClock::sleep_until(std::int64_t time_ns) {
  std::this_thread::sleep_until(std::chrono::steady_clock::time_point(std::chrono::nanoseconds(time_ns)));
}

}  // namespace spillway::load
