#include "spill/stall/burst_watch.h"

#include <algorithm>
#include <utility>

namespace spillway::spill {
void BurstWatch::begin_window(const Activity& activity, Time now) {
  since_ = now;
  at_since_ = activity;
}

bool BurstWatch::lasts(const Activity& activity, Route route, Time now) {
  if (since_ == Time{}) begin_window(activity, now);
  const bool begins = route_ == Route::main && route == Route::spill;
  route_ = route;
  if (begins) {
    began_with_ = writes_per_s_;
    is_first_window_ = true;
    is_over_ = false;
    begin_window(activity, now);
  } else if (now - since_ >= kWindow) {
    const double seconds = std::chrono::duration<double>(now - since_).count();
    writes_per_s_ = static_cast<double>(activity.writes - at_since_.writes) / seconds;
    reads_per_s_ = static_cast<double>(activity.reads - at_since_.reads) / seconds;
    // The diversion may have begun with the burst.
    if (std::exchange(is_first_window_, false)) began_with_ = std::max(began_with_, writes_per_s_);
    const bool is_paced = activity.pauses != at_since_.pauses || activity.waits_for_rollback;
    const double waited = std::chrono::duration<double>(activity.waited - at_since_.waited).count() / seconds;
    const double unheld_per_s = writes_per_s_ / (1 - std::min(waited, kWaiting));
    if (is_paced || waited < kWaiting) is_over_ = !is_paced && began_with_ > 0 && unheld_per_s < kLasting * began_with_;
    begin_window(activity, now);
  }
  return route == Route::spill && began_with_ > 0 && !is_over_ && !is_mixed(reads_per_s_, writes_per_s_) &&
         activity.share_used < kMostlyFull;
}

}  // namespace spillway::spill
