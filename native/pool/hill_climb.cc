#include "pool/hill_climb.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

namespace spillway::pool {
namespace {

constexpr int kStepsOfDoubling = 4;
constexpr double kErrorOfMedian = 1.253 * 1.483;  // of a normal distribution: sqrt(pi / 2), and deviation / MAD
constexpr double kSmoothing = 0.1;                // weight of the last epoch in the held size's cost. Source: guess

// 1 to 8, 10, 12, 14, 16, 20, …: kStepsOfDoubling steps for each doubling; and both ends.
std::vector<std::uint32_t> grid_between(std::uint32_t least, std::uint32_t most) {
  std::vector<std::uint32_t> grid = {least, most};
  for (std::uint64_t power = 1; power <= most; power *= 2) {
    for (std::uint64_t part = 0; part < kStepsOfDoubling; ++part) {
      const std::uint64_t size = power + power * part / kStepsOfDoubling;
      if (size >= least && size <= most) grid.push_back(static_cast<std::uint32_t>(size));
    }
  }
  std::sort(grid.begin(), grid.end());
  grid.erase(std::unique(grid.begin(), grid.end()), grid.end());
  return grid;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  const double upper = *middle;
  if (values.size() % 2 != 0) return upper;
  return (upper + *std::max_element(values.begin(), middle)) / 2;
}

}  // namespace

HillClimb::HillClimb(std::uint32_t least, std::uint32_t most) : grid_(grid_between(least, most)) {
  assert(least > 0 && least <= most);
  path_.push_back(held());
  begin_trials(/*first_direction=*/1);
}

// Pairs go A B, B A, A B, …: the first epoch of an even pair and the second of an odd one are of the held size.
bool HillClimb::tries_now() const { return phase_ == Phase::trial && (has_first_ == (pairs_ % 2 == 0)); }

void HillClimb::observe(double cost) {
  assert(cost > 0);
  ++epochs_;
  if (!tries_now()) held_cost_ = held_cost_ == 0 ? cost : held_cost_ + kSmoothing * (cost - held_cost_);
  if (phase_ == Phase::trial) {
    observe_trial(cost);
  } else {
    observe_rest(cost);
  }
}

void HillClimb::observe_trial(double cost) {
  if (!has_first_) {
    has_first_ = true;
    first_cost_ = cost;
    return;
  }
  const bool held_first = pairs_ % 2 == 0;
  const double of_held = held_first ? first_cost_ : cost;
  const double of_tried = held_first ? cost : first_cost_;
  const double gain = (of_held - of_tried) / of_held;
  has_first_ = false;
  ++pairs_;
  gains_.push_back(gain);
  bool taken = false;
  if (!decide(taken)) return;
  if (taken) {
    take();
  } else {
    begin_next_trial();
  }
}

bool HillClimb::decide(bool& taken) const {
  if (pairs_ < kLeastPairs) return false;
  const bool larger = step_ > 0;
  const double needed = larger ? kWorth * step_ : -kFree;
  const double middle = median(gains_);
  std::vector<double> off;
  for (const double gain : gains_) off.push_back(std::abs(gain - middle));
  const double error = kErrorOfMedian * median(std::move(off)) / std::sqrt(pairs_);
  const double reach = (2 + 4.0 / (pairs_ - 1)) * error;
  if (pairs_ < kMostPairs && middle - reach <= needed && middle + reach >= needed) return false;
  taken = middle - (larger ? error : 0) > needed;
  return true;
}

void HillClimb::take() {
  held_ = tried_;
  held_cost_ = 0;
  rest_ = kLeastRest;
  path_.push_back(held());
  begin_trials(step_ > 0 ? 1 : -1);
}

// The direction that was right is tried first, and large steps before small ones: 2, sqrt(2) and 2^(1/4) times as much.
void HillClimb::begin_trials(int first_direction) {
  steps_.clear();
  for (const int direction : {first_direction, -first_direction}) {
    for (int step = kStepsOfDoubling; step > 0; step /= 2) steps_.push_back(direction * step);
  }
  begin_next_trial();
}

void HillClimb::begin_next_trial() {
  has_first_ = false;
  pairs_ = 0;
  gains_.clear();
  while (!steps_.empty()) {
    step_ = steps_.front();
    steps_.erase(steps_.begin());
    const auto wanted = static_cast<std::ptrdiff_t>(held_) + step_;
    if (wanted < 0 || wanted >= static_cast<std::ptrdiff_t>(grid_.size())) continue;
    tried_ = static_cast<std::size_t>(wanted);
    phase_ = Phase::trial;
    return;
  }
  begin_rest();
}

void HillClimb::begin_rest() {
  phase_ = Phase::rest;
  rest_left_ = rest_;
  rest_ = std::min(2 * rest_, kLongestRest);
  shifted_ = 0;
}

void HillClimb::observe_rest(double cost) {
  // The smoothed cost has followed by a tenth already.
  const bool differs = std::abs(cost / held_cost_ - 1) > kShift * (1 - kSmoothing);
  shifted_ = differs ? shifted_ + 1 : 0;
  if (shifted_ >= kShiftEpochs) {
    rest_ = kLeastRest;
    held_cost_ = 0;
    begin_trials(/*first_direction=*/1);
    return;
  }
  if (--rest_left_ <= 0) begin_trials(/*first_direction=*/1);
}

}  // namespace spillway::pool
