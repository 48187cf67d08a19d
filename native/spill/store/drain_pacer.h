// A proportional controller for the rate of writes into a store whose space is released in lumps, such as generations.
//
// While much is free the rate is not limited. Below that it is drain * free / target, where the drain is the measured
// rate of release. It settles where writes equal releases, with `target` free; free space then varies by one lump about
// the target, and the rate in proportion. A lump that is overdue lowers the drain, so that free space is not used up
// before the lump is released. If nothing is released for long, pacing cannot help, and it ends.
#pragma once

#include <algorithm>
#include <chrono>
#include <deque>
#include <optional>
#include <utility>

namespace spillway::spill {

// Not thread-safe. Amounts are shares of the store.
class DrainPacer {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Seconds = std::chrono::duration<double>;

  // Of lumps. Below `kUnpaced` free ones writers are slowed, `kTarget` are free when what comes in equals what leaves.
  // Source: spill_drain_pacer_test.cc; the rate swings by a quarter to each side.
  static constexpr double kUnpaced = 3;
  static constexpr double kTarget = 2;
  static constexpr double kMostUnpaced = 0.4;  // of a store of few lumps
  // The drain is the mean over so many lumps. Source: guess, some seconds of a loaded drive
  static constexpr std::size_t kLumps = 6;
  // Before one has left: the time for what is free when pacing begins. Source: guess, of the order of a rollback
  static constexpr Seconds kFirst{4};
  // After this long, or four times the mean, without a lump nothing is slowed any more. Source: guess
  static constexpr Seconds kPatience{10};

  // `lump`: the most that leaves together.
  explicit DrainPacer(double lump);

  // So much is free now.
  void observe(double free, Time now);
  // From this free share on nothing is slowed.
  static double unpaced_above(double lump) { return std::min(kUnpaced * lump, kMostUnpaced); }
  // How much may come in a second; nothing: as much as will.
  std::optional<double> limit(Time now) const;

 private:
  void begin(Time now);
  Seconds mean_interval() const;

  const double lump_;
  const double unpaced_;
  bool is_pacing_ = false;
  double free_ = 1;
  // What has left, with its time; the first only begins the time.
  std::deque<std::pair<Time, double>> left_;
};

}  // namespace spillway::spill
