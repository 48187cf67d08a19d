#include "spill/store/drain_pacer.h"

#include <algorithm>
#include <numeric>

namespace spillway::spill {

DrainPacer::DrainPacer(double lump, double largest_group)
    : lump_(lump), unpaced_(unpaced_above(lump)), largest_group_(largest_group) {}

std::uint64_t DrainPacer::largest_group(double lump) {
  return static_cast<std::uint64_t>(std::max(kMostGroup / lump, 1.0));
}

// Then two and a half lumps are free, which is the most that is when one lump leaves at a time.
std::uint64_t DrainPacer::next_group(double free, double lump) {
  return std::clamp<std::uint64_t>(static_cast<std::uint64_t>(std::max(free / lump - 1.5, 0.0)), 1,
                                   largest_group(lump));
}

// Lumps that left long ago say nothing of the drain now.
void DrainPacer::begin(Time now) {
  is_pacing_ = true;
  if (left_.empty() || now - left_.back().first > kPatience) left_ = {{now, 0}};
}

void DrainPacer::observe(StoreRoom room, Time now) {
  const double even_free = room.free - std::max(room.returning - lump_, 0.0);
  const double rise = even_free - even_free_;
  if (room.returning > room_.returning) group_ = room.returning;
  even_free_ = even_free;
  room_ = room;
  if (rise > lump_ / 4) {  // less is space that was reserved for a moment
    // When a group has left and the next has not begun, more seems to be free.
    left_.emplace_back(now, largest_group_ > 0 ? std::min(rise, lump_) : rise);
    if (left_.size() > kLumps + 1) left_.pop_front();
  }
  if (is_pacing_ && even_free >= unpaced_ + (is_growing() ? lump_ : 0)) is_pacing_ = false;
  if (!is_pacing_ && !is_plenty(room, lump_)) begin(now);
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
  const double drain = amount / (time + overdue).count();
  const double target = unpaced_ * kTarget / kUnpaced;
  double share = even_free_ / target;
  if (is_growing()) share = std::min(share, kGrowing);
  // Where a large group began with little free, what is free is spread over what has yet to come back.
  return drain * std::max(share, room_.free / (room_.returning + target + lump_));
}

}  // namespace spillway::spill
