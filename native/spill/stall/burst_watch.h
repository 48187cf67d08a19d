// Whether the burst of writes that began a diversion still lasts. RocksDB may have caught up meanwhile, for it was
// given nothing: writes that went back to it would make it stall at once, and what it flushes it rewrites many times.
#pragma once

#include <chrono>
#include <cstdint>

#include "spill/stall/policy.h"

namespace spillway::spill {

// Without a clock or a thread. Not thread-safe.
class BurstWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;
  // Rates are taken over this long at least. Source: two polls of the detector (K3)
  static constexpr std::chrono::milliseconds kWindow{200};

  // Of the rate when the diversion began. Source: guess
  static constexpr double kLasting = 0.5;

  // With a smaller share of a window in which writers wait for the drive, their rate is that of the rest of it. Source:
  // guess
  static constexpr double kWaiting = 0.5;

  // Since the database was opened, and how full the store is.
  struct Activity {
    std::uint64_t writes = 0;
    std::uint64_t reads = 0;
    double share_used = 0;
    std::uint64_t pauses = 0;         // of writers that were slowed: the rate is this library's then, and tells nothing
    bool waits_for_rollback = false;  // a writer, now: the same
    // How long appends to the spill store waited for the drive, whose rate it was then. One thread at a time appends.
    std::chrono::microseconds waited{0};
  };
  // `route`: of writes since the last call. True: they come at half the rate or more that they came at before the
  // diversion began or when it had just begun, with few reads, and the store is not mostly full. Then there is room for
  // more of the burst.
  bool lasts(const Activity& activity, Route route, Time now);
  // Whether writes came at less than that rate lately: RocksDB has time for what the burst has left.
  bool is_over() const { return is_over_; }

 private:
  void begin_window(const Activity& activity, Time now);

  Time since_{};
  Activity at_since_;
  double writes_per_s_ = 0;
  double reads_per_s_ = 0;
  Route route_ = Route::main;
  double began_with_ = 0;  // writes per second
  bool is_first_window_ = false;
  bool is_over_ = false;
};

}  // namespace spillway::spill
