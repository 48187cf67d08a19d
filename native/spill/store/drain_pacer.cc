#include "spill/store/drain_pacer.h"

#include <algorithm>
#include <numeric>

namespace spillway::spill {

DrainPacer::DrainPacer(double lump) : lump_(lump), unpaced_(unpaced_above(lump)) {}

// Lumps that left long ago say nothing of the drain now.
void DrainPacer::begin(Time now) {
  is_pacing_ = true;
  if (left_.empty() || now - left_.back().first > kPatience) left_ = {{now, 0}};
}

void DrainPacer::observe(double free, Time now) {
  const double rise = free - free_;
  free_ = free;
  if (rise > lump_ / 4) {  // less is space that was reserved for a moment
    left_.emplace_back(now, rise);
    if (left_.size() > kLumps + 1) left_.pop_front();
  }
  if (free >= unpaced_) {
    is_pacing_ = false;
    return;
  }
  if (!is_pacing_) begin(now);
}

DrainPacer::Seconds DrainPacer::mean_interval() const {
  const auto intervals = static_cast<double>(left_.size() - 1);
  return intervals == 0 ? kFirst : Seconds(left_.back().first - left_.front().first) / intervals;
}

std::optional<double> DrainPacer::limit(Time now) const {
  if (!is_pacing_) return {};
  const Seconds mean = mean_interval();
  const Seconds since_last = now - left_.back().first;
  if (since_last > std::max(kPatience, 4 * mean)) return {};
  double amount = unpaced_;
  Seconds time = kFirst;
  if (left_.size() > 1) {
    amount = std::accumulate(left_.begin() + 1, left_.end(), 0.0,
                             [](double sum, const auto& one) { return sum + one.second; });
    time = std::max<Seconds>(left_.back().first - left_.front().first, std::chrono::milliseconds(1));
  }
  const Seconds overdue = std::max(since_last - mean, Seconds(0));
  return amount / (time + overdue).count() * free_ / (unpaced_ * kTarget / kUnpaced);
}

}  // namespace spillway::spill
