#include "spill/rollback/rollback_scheduler.h"

#include <algorithm>

namespace spillway::spill {
namespace {

// Pause before a rollback that RocksDB refused is retried.
constexpr std::chrono::milliseconds kRetry{20};
// The pause doubles with each failed rollback, up to this. Source: guess, long enough to keep a log of failures
// readable, short enough to notice a repair soon.
constexpr std::chrono::milliseconds kLongestPause{10'000};

double seconds(RollbackScheduler::Time from, RollbackScheduler::Time to) {
  return std::chrono::duration<double>(to - from).count();
}

double per_second(std::uint64_t now, std::uint64_t before, double seconds) {
  return static_cast<double>(now - before) / seconds;
}

}  // namespace

void RollbackScheduler::await(GenerationId last) {
  awaited_until_ = std::max(awaited_until_, last);
  ask_for(last);
}

void RollbackScheduler::ask_for(GenerationId last) { asked_until_ = std::max(asked_until_, last); }

void RollbackScheduler::wake(bool insists) { is_due_ = is_due_ || insists || failure_pause_.count() == 0; }

std::chrono::milliseconds RollbackScheduler::pause() const {
  if (failure_pause_.count() > 0) return failure_pause_;
  return is_retried_soon_ ? kRetry : poll_interval_;
}

void RollbackScheduler::observe(const Activity& activity, GenerationId oldest, Time now, RollbackState* state) {
  const double since = seconds(observed_.at, now);
  if (activity.diverted != diverted_) last_diverted_ = now;
  diverted_ = activity.diverted;
  if (since >= kLeastWindow.count()) {
    observed_ = {now, activity, per_second(activity.reads, observed_.activity.reads, since),
                 per_second(activity.writes, observed_.activity.writes, since)};
  }
  state->reads_per_s = observed_.reads_per_s;
  state->writes_per_s = observed_.writes_per_s;
  state->idle_s = seconds(last_diverted_, now);
  state->since_last_rollback_s = seconds(last_ended_, now);
  state->last_took_s = last_took_s_;
  state->call_waits = oldest <= awaited_until_;
  state->rollback_requested = oldest <= asked_until_;
}

bool RollbackScheduler::end(const Outcome& outcome, Time now, bool is_stopping) {
  const bool is_done = outcome.generations > 0 && outcome.status.ok();
  if (is_done) {
    last_ended_ = now;
    last_took_s_ = seconds(outcome.began, now);
    failure_pause_ = {};
  }
  is_due_ = is_due_ || outcome.has_more;
  retries_by_itself_ = outcome.status.IsTryAgain() || outcome.is_paused;  // after its pause
  is_retried_soon_ = outcome.status.IsTryAgain() || is_done;              // more may be left to bring back
  if (outcome.status.ok() || outcome.status.IsTryAgain() || is_stopping) return false;
  last_failure_ = outcome.status;
  ++failures_;
  failure_pause_ = std::clamp(2 * failure_pause_, kRetry, kLongestPause);
  return true;
}

}  // namespace spillway::spill
