#include "spill/stall/policy.h"

#include <algorithm>

namespace spillway::spill {
namespace {

// Reads that are more than this share of all operations make it a mixed load:
// the least mixed of the paper's (K20, B) has one read in ten. Source: guess, half of that
constexpr double kMixedReads = 0.05;
constexpr double kFewWritesPerS = 100;   // a rollback hardly meets them. Source: guess
constexpr double kCeasedWritesPerS = 1;  // Source: guess
constexpr double kCeasedS = 1;           // ten polls of the detector (K3) without a diverted write. Source: guess
constexpr double kKeptUpS = 3;           // many flushes at any rate that stalls. Source: guess
// A store comes back in so long, mostly. Source: guess; of workload B's, one of 740 MB took 14 s
constexpr double kLastsS = 20;
constexpr double kReadsPerS = 1;  // reads are in progress. Source: guess
// With readers and hardly a write, rollback takes at most a quarter of the time. The compactions that it causes come on
// top. Source: guess
constexpr double kPauses = 3;

std::uint64_t share_of(std::uint64_t limit, double share) {
  return static_cast<std::uint64_t>(static_cast<double>(limit) * std::clamp(share, 0.0, 1.0));
}

// RocksDB delays writes by the last memtable but one where it has more than three, and that cannot be switched off;
// else it stops them by the last. Source: db/column_family.cc, GetWriteStallConditionAndCause
int memtables_at_limit(const Signals& signals) {
  return signals.max_write_buffer_number > 3 ? signals.max_write_buffer_number - 1 : signals.max_write_buffer_number;
}

bool writes_have_ceased(const RollbackState& state) {
  return state.writes_per_s < kCeasedWritesPerS && state.idle_s >= kCeasedS;
}

bool is_time_for_lazy(const RollbackState& state) { return state.sealed > 0 || writes_have_ceased(state); }

bool is_mostly_full(const RollbackState& state) { return state.share_used >= kMostlyFull; }

bool costs_little_or_helps(const RollbackState& state) {
  return is_mixed(state.reads_per_s, state.writes_per_s) || state.writes_per_s < kFewWritesPerS ||
         state.burst_is_over || state.idle_s >= kKeptUpS || is_mostly_full(state);
}

// Reads are in progress and hardly a write fills the store: they need the drive's bandwidth more than a rollback does.
// Beside writes they do not: what stays in the store comes back in smaller runs later (docs/decisions/0043).
bool readers_come_first(const RollbackState& state) {
  return state.reads_per_s > kReadsPerS && state.writes_per_s < kFewWritesPerS;
}

// A mixed load's rollback does not wait for writes to cease: what comes in meanwhile must find room until all is back.
bool would_fill_meanwhile(const RollbackState& state) {
  return is_mixed(state.reads_per_s, state.writes_per_s) && state.writes_per_s >= kFewWritesPerS &&
         state.free_lasts_s < kLastsS;
}

bool is_time(const RollbackState& state, RollbackPolicy policy) {
  switch (policy) {
    case RollbackPolicy::eager:
      return true;
    case RollbackPolicy::lazy:
      return is_time_for_lazy(state);
    case RollbackPolicy::adaptive:
      return costs_little_or_helps(state) &&
             (!readers_come_first(state) || state.since_last_rollback_s >= kPauses * state.last_took_s);
    case RollbackPolicy::off:
      return false;
  }
  return false;
}

}  // namespace

bool is_mixed(double reads_per_s, double writes_per_s) {
  return reads_per_s > kMixedReads * (reads_per_s + writes_per_s);
}

Thresholds thresholds_of(const Signals& signals, const DivertPolicy& policy) {
  Thresholds result;
  if (signals.l0_stop_trigger > 0) {
    // L0 may keep fewer files than the compaction trigger for ever.
    const int lowest = std::min(std::max(signals.l0_compaction_trigger, 1), signals.l0_stop_trigger);
    const int divert = policy.divert_l0_files > 0 ? policy.divert_l0_files : signals.l0_stop_trigger - 1;
    result.divert_l0_files = std::clamp(divert, lowest, signals.l0_stop_trigger);
    const int resume =
        policy.resume_l0_files > 0 ? policy.resume_l0_files : lowest + (result.divert_l0_files - lowest) / 2;
    result.resume_l0_files = std::clamp(resume, lowest, result.divert_l0_files);
  }
  result.divert_memtables = memtables_at_limit(signals);
  if (signals.hard_pending_compaction_bytes > 0) {
    const std::uint64_t limit = signals.hard_pending_compaction_bytes;
    result.divert_pending = std::max<std::uint64_t>(share_of(limit, policy.divert_pending), 1);
    const std::uint64_t resume = share_of(limit, policy.resume_pending);
    result.resume_pending = std::clamp<std::uint64_t>(resume, 1, result.divert_pending);
  }
  return result;
}

Route next_route(Route now, const Signals& signals, const DivertPolicy& policy, bool burst_lasts) {
  if (signals.is_stalled || (now == Route::spill && burst_lasts)) return Route::spill;
  const Thresholds thresholds = thresholds_of(signals, policy);
  const bool diverted = now == Route::spill;
  const int l0_limit = diverted ? thresholds.resume_l0_files : thresholds.divert_l0_files;
  const std::uint64_t pending_limit = diverted ? thresholds.resume_pending : thresholds.divert_pending;
  const bool close = (l0_limit > 0 && signals.l0_files >= l0_limit) ||
                     signals.immutable_memtables >= thresholds.divert_memtables ||
                     (pending_limit > 0 && signals.pending_compaction_bytes >= pending_limit);
  return close ? Route::spill : Route::main;
}

bool takes_its_time(const RollbackState& state) {
  if (state.call_waits || state.rollback_requested) return false;
  const bool goes_on =
      state.writes_per_s >= kFewWritesPerS && !is_mixed(state.reads_per_s, state.writes_per_s) && !state.spill_full;
  return state.is_pacing || (goes_on && state.l0_is_busy);
}

std::uint64_t next_rollback(const RollbackState& state, RollbackPolicy policy) {
  const bool empty = state.live_entries == 0 && state.live_bytes == 0;
  if (empty) return 0;
  if (state.owes_note) return kAllGenerations;  // a stopped RocksDB resumes when its compactions do
  if (state.call_waits) return kAllGenerations;
  if (state.is_stalled) return 0;
  if (state.rollback_requested) return kAllGenerations;
  if (state.spill_full) return 1;
  const std::uint64_t group = state.l0_is_crowded ? 0 : state.paced_group;  // in a burst that goes on
  const bool is_calm = state.burst_is_over && state.free_lasts_s >= kLastsS;
  if (state.is_pacing) return is_calm && state.l0_room > 0 ? kAllGenerations : group;
  if (state.l0_room < 1) return 0;
  if (state.route == Route::spill) {
    return policy != RollbackPolicy::off && is_mostly_full(state) && !state.debt ? group : 0;
  }
  if (!is_time(state, policy)) return 0;
  const bool goes_on = !state.burst_is_over && state.writes_per_s >= kFewWritesPerS;
  return would_fill_meanwhile(state) || (goes_on && is_mostly_full(state)) ? group : kAllGenerations;
}

}  // namespace spillway::spill
