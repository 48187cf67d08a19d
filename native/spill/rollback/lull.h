// Whether nobody has written for a while: then what comes back may have all of the drive.
#pragma once

#include <chrono>
#include <cstdint>

namespace spillway::spill {

// Without a clock. Not thread-safe.
class Lull {
 public:
  using Time = std::chrono::steady_clock::time_point;
  // Source: half a poll of the detector (K3), and more than twice what a write may take
  static constexpr std::chrono::milliseconds kAfter{50};

  // `writes`: that have ended, since the database was opened.
  bool lasts(std::uint64_t writes, Time now) {
    if (writes != writes_ || since_ == Time{}) since_ = now;
    writes_ = writes;
    return now - since_ >= kAfter;
  }

 private:
  std::uint64_t writes_ = 0;
  Time since_{};
};

}  // namespace spillway::spill
