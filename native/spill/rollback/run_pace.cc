#include "spill/rollback/run_pace.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace spillway::spill {

void RunPace::observe(int l0_files, Time now) {
  if (at_ == Time{} || now - at_ > kWindow) {
    mean_files_ = l0_files;
    left_.clear();
    since_ = now;
  } else {
    const double old = std::exp(-Seconds(now - at_).count() / kMean.count());
    mean_files_ = old * mean_files_ + (1 - old) * l0_files;
    if (l0_files < files_) left_.emplace_back(now, files_ - l0_files);
  }
  files_ = l0_files;
  at_ = now;
  while (!left_.empty() && now - left_.front().first > kWindow) {
    since_ = left_.front().first;
    left_.pop_front();
  }
}

std::optional<RunPace::Seconds> RunPace::seconds_of_run(int l0_compaction_trigger) const {
  if (left_.empty()) return {};
  const int left =
      std::accumulate(left_.begin(), left_.end(), 0, [](int sum, const auto& one) { return sum + one.second; });
  const double target = std::max(kTarget * l0_compaction_trigger, 1.0);
  return std::min<Seconds>(Seconds(at_ - since_) / left * (mean_files_ / target), kLongest);
}

}  // namespace spillway::spill
