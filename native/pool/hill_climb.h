// Finds the size at which a cost is least, while the cost is measured: one epoch at one size after another.
//
// It holds a size and tries its neighbours on a geometric grid: epochs of the held and of the tried size alternate, in
// the order A B B A, so that what drifts is common to both. The differences of the pairs, as shares of the held size's
// cost, have a median d with a standard error e (from their median absolute deviation: an epoch that met a burst of
// garbage collection is an outlier, and there are many). The neighbour is taken if d - z e exceeds what it has to gain,
// and rejected if d + z e does not reach that; until then another pair is measured, kMostPairs at most. Then d - e has
// to exceed it, of a smaller neighbour d.
//
//   z = 2 + 4 / (pairs - 1)
//
// Hysteresis: a larger size has to gain kWorth for each step of the grid, because a larger batch is a longer wait for
// one reference; a smaller size may lose kFree at most. So on a flat curve it does not go up, and on a curve
// a / n + b it stops where another step (a fourth of a doubling) would gain less than kWorth: about 1.6 % above b.
//
// If no neighbour is taken, it rests, twice as long each time. A cost that has changed by more than kShift for
// kShiftEpochs epochs ends the rest. A curve may dip between whole rounds of what a drive does at once, hence
// neighbours of up to a doubling away.
//
// Pure: no clock and no randomness; the same costs give the same sizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace spillway::pool {

class HillClimb {
 public:
  // REQUIRES: 0 < least <= most
  HillClimb(std::uint32_t least, std::uint32_t most);

  // The size of the next epoch.
  std::uint32_t size() const { return grid_[tries_now() ? tried_ : held_]; }
  // The size that it has found best so far.
  std::uint32_t held() const { return grid_[held_]; }

  // What the epoch of size() cost. REQUIRES: cost > 0
  void observe(double cost);

  std::uint64_t epochs() const { return epochs_; }
  // The sizes that it has held, one after another.
  const std::vector<std::uint32_t>& path() const { return path_; }

  static constexpr double kWorth = 0.0025;   // Source: guess; see above for what it leaves
  static constexpr double kFree = 0.001;     // Source: guess; less than a step up has to gain
  static constexpr double kShift = 0.10;     // Source: guess: twice the noise of an epoch of a pool
  static constexpr int kShiftEpochs = 3;     // Source: guess
  static constexpr int kLeastPairs = 4;      // Source: guess: two of three may be outliers of one kind
  static constexpr int kMostPairs = 12;      // Source: guess: then a difference is too small to matter
  static constexpr int kLeastRest = 32;      // epochs. Source: guess: as long as the trials before it
  static constexpr int kLongestRest = 1024;  // Source: guess

 private:
  enum class Phase : std::uint8_t { trial, rest };

  bool tries_now() const;
  void observe_trial(double cost);
  void observe_rest(double cost);
  // Whether the trial is decided; then `taken` is the decision.
  bool decide(bool& taken) const;
  void begin_trials(int first_direction);
  void begin_next_trial();
  void take();
  void begin_rest();

  std::vector<std::uint32_t> grid_;
  std::size_t held_ = 0;
  std::size_t tried_ = 0;
  Phase phase_ = Phase::trial;
  std::vector<int> steps_;  // of the grid, still to be tried from here
  int step_ = 0;            // of the trial
  // Of the trial: the first epoch of the pair, the number of pairs, and what each says.
  bool has_first_ = false;
  double first_cost_ = 0;
  int pairs_ = 0;
  std::vector<double> gains_;
  double held_cost_ = 0;  // of the last epochs at the held size, smoothed
  int rest_left_ = 0;
  int rest_ = kLeastRest;
  int shifted_ = 0;
  std::uint64_t epochs_ = 0;
  std::vector<std::uint32_t> path_;
};

}  // namespace spillway::pool
