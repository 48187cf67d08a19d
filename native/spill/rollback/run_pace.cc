#include "spill/rollback/run_pace.h"

#include <algorithm>
#include <cmath>

namespace spillway::spill {

void RunPace::observe(int l0_files, int l0_compaction_trigger, Time now) {
  if (at_ == Time{} || now - at_ > kWindow) {
    mean_files_ = l0_files;
    steps_.clear();
    busy_ = {};
    left_ = 0;
  } else {
    const Seconds since = now - at_;
    const double old = std::exp(-since / kMean);
    mean_files_ = old * mean_files_ + (1 - old) * l0_files;
    const bool was_busy = files_ >= std::max(l0_compaction_trigger, 1);
    const Step& step = steps_.emplace_back(Step{now, was_busy ? since : Seconds(0), std::max(files_ - l0_files, 0)});
    busy_ += step.busy;
    left_ += step.left;
  }
  files_ = l0_files;
  at_ = now;
  while (!steps_.empty() && now - steps_.front().at > kWindow) {
    busy_ -= steps_.front().busy;
    left_ -= steps_.front().left;
    steps_.pop_front();
  }
}

std::optional<RunPace::Seconds> RunPace::seconds_of_run(int l0_compaction_trigger) const {
  if (left_ == 0) return {};
  const double target = std::max(kTarget * l0_compaction_trigger, 1.0);
  const double easy = kEasy * std::max(l0_compaction_trigger, 1);
  // The mean is behind where compactions become slower, and L0 would be crowded before it has followed.
  const double crowd = files_ > easy ? 1 + kSlower * (files_ / easy - 1) : 0;
  return std::min<Seconds>(busy_ / left_ * std::max(mean_files_ / target, crowd), kLongest);
}

}  // namespace spillway::spill
