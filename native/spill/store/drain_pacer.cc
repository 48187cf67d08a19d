#include "spill/store/drain_pacer.h"

#include <algorithm>
#include <numeric>

namespace spillway::spill {

DrainPacer::DrainPacer(double lump, Groups groups) : lump_(lump), unpaced_(unpaced_above(lump)), groups_(groups) {}

std::uint64_t DrainPacer::next_group(double free, double lump) {
  return free < kTarget * lump ? 1 : static_cast<std::uint64_t>(std::max(kMostGroup / lump, 1.0));
}

// Lumps that left long ago say nothing of the drain now, nor do those that left while nothing was slowed: no more
// leaves than has come in.
void DrainPacer::begin(Time now, bool was_paced) {
  is_pacing_ = true;
  if (was_paced && !left_.empty() && now - left_.back().first <= kPatience) return;
  left_ = {{now, 0}};
  free_at_begin_ = room_.free;
}

void DrainPacer::observe(StoreRoom room, Time now) {
  if (!is_pacing_ && room.free >= kEmpty) ended_ = {};  // all has come back since: the next burst is another one
  // Where writers were slowed lately, they soon will be again.
  const bool was_paced = is_pacing_ || (ended_ != Time{} && now - ended_ < kPatience);
  double left = groups_ == Groups::some ? returning_ - room.returning : 0;
  returning_ = room.returning;
  // When a group ends, the lumps of it are released one after the other, and the next one begins.
  if (groups_ == Groups::some && was_paced && room.returning < lump_ / 2) {
    room.returning = std::max(room.returning, lump_ * static_cast<double>(next_group(room.free, lump_)));
  }
  const double even_free = room.free - std::max(room.returning - lump_, 0.0);
  if (groups_ == Groups::none) left = even_free - even_free_;
  even_free_ = even_free;
  room_ = room;
  if (left > lump_ / 4) {  // less is space that was reserved for a moment
    left_.emplace_back(now, left);
    if (left_.size() > kLumps + 1) left_.pop_front();
  }
  if (is_pacing_ && even_free >= unpaced_) {
    is_pacing_ = false;
    ended_ = now;
  }
  if (!is_pacing_ && (!is_plenty(room, lump_) || (was_paced && even_free < unpaced_))) begin(now, was_paced);
  is_watching_ = is_pacing_ || was_paced;
}

DrainPacer::Seconds DrainPacer::mean_interval() const {
  const auto intervals = static_cast<double>(left_.size() - 1);
  return intervals == 0 ? kFirst : Seconds(left_.back().first - left_.front().first) / intervals;
}

// Nothing has left since pacing began. A part of what was free then is for the rest of the time in which the group is
// guessed to be back, which is more than half of what it has taken, however late it is.
double DrainPacer::by_guess(Seconds since_begin) const {
  const Seconds rest = std::max<Seconds>(kFirst - since_begin, since_begin / 2);
  return std::max(room_.free - (1 - kOnGuess) * free_at_begin_, 0.0) / rest.count();
}

std::optional<double> DrainPacer::limit(Time now) const {
  if (!is_pacing_) return {};
  const Seconds mean = mean_interval();
  const Seconds since_last = now - left_.back().first;
  if (since_last > std::max(kPatience, 4 * mean)) return {};
  double amount = unpaced_;
  Seconds time = kFirst;
  Seconds of_group{0};
  if (left_.size() > 1) {
    amount = std::accumulate(left_.begin() + 1, left_.end(), 0.0,
                             [](double sum, const auto& one) { return sum + one.second; });
    time = std::max<Seconds>(left_.back().first - left_.front().first, std::chrono::milliseconds(1));
    of_group = returning_ / amount * time;
  }
  const Seconds overdue = std::max(since_last - mean, Seconds(0));
  const double drain = amount / (time + overdue).count();
  const double target = unpaced_ * kTarget / kUnpaced;
  const double in_proportion = drain * std::max(even_free_ / target, room_.free / (room_.returning + target + lump_));
  const double by_time = left_.size() > 1 ? room_.free / std::max(kUseUp, of_group).count() : by_guess(since_last);
  return std::max(in_proportion, by_time);
}

}  // namespace spillway::spill
