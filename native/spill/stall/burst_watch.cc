#include "spill/stall/burst_watch.h"

namespace spillway::spill {
bool BurstWatch::lasts(const Activity& activity, Route route, Time now) {
  if (since_ == Time{}) {
    since_ = now;
    at_since_ = activity;
  }
  if (route_ == Route::main && route == Route::spill) began_with_ = writes_per_s_;  // before it began
  route_ = route;
  if (now - since_ >= kWindow) {
    const double seconds = std::chrono::duration<double>(now - since_).count();
    writes_per_s_ = static_cast<double>(activity.writes - at_since_.writes) / seconds;
    reads_per_s_ = static_cast<double>(activity.reads - at_since_.reads) / seconds;
    since_ = now;
    at_since_ = activity;
  }
  return route == Route::spill && began_with_ > 0 && writes_per_s_ >= kLasting * began_with_ &&
         !is_mixed(reads_per_s_, writes_per_s_) && activity.share_used < kHalfFull;
}

}  // namespace spillway::spill
