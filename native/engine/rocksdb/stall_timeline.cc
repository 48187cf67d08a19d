#include "engine/rocksdb/stall_timeline.h"

#include <algorithm>

namespace spillway::engine {

namespace {

constexpr std::array kOrder = {RocksdbCause::memtable, RocksdbCause::l0, RocksdbCause::pending_compaction_bytes};

bool memtables_hold_back(StallState state, const StallSignals& signals, const StallLimits& limits) {
  const std::uint64_t immutable = signals.immutable_memtables;
  if (state == StallState::stopped) return immutable >= limits.max_write_buffer_number;
  return limits.max_write_buffer_number > 3 && immutable >= limits.max_write_buffer_number - 1 &&
         immutable >= limits.min_write_buffer_number_to_merge + 1;
}

bool reaches(std::uint64_t value, std::uint64_t limit) { return limit > 0 && value >= limit; }

StallCause explain_state(StallState state, const StallSignals& signals, const StallLimits& limits,
                         const std::array<std::uint64_t, 4>& before, const std::array<std::uint64_t, 4>& now) {
  const auto counted = [&](StallCause cause) { return now[cause] > before[cause]; };
  const StallCause derived = cause_by_limits(state, signals, limits);
  if (derived != RocksdbCause::none && counted(derived)) return derived;
  const auto first = std::find_if(kOrder.begin(), kOrder.end(), counted);
  return first != kOrder.end() ? *first : derived;
}

}  // namespace

StallCause cause_by_limits(StallState state, const StallSignals& signals, const StallLimits& limits) {
  if (state == StallState::normal) return RocksdbCause::none;
  if (memtables_hold_back(state, signals, limits)) return RocksdbCause::memtable;
  if (!limits.compacts) return RocksdbCause::none;
  const bool stopped = state == StallState::stopped;
  if (reaches(signals.l0_files, stopped ? limits.l0_stop : limits.l0_slowdown)) return RocksdbCause::l0;
  if (reaches(signals.pending_compaction_bytes, stopped ? limits.hard_pending_bytes : limits.soft_pending_bytes)) {
    return RocksdbCause::pending_compaction_bytes;
  }
  return RocksdbCause::none;
}

StallCauses explain(const StallSignals& signals, const StallLimits& limits, const StallCounts& before,
                    const StallCounts& now) {
  return {.delayed = explain_state(StallState::delayed, signals, limits, before.delayed, now.delayed),
          .stopped = explain_state(StallState::stopped, signals, limits, before.stopped, now.stopped)};
}

void StallTimeline::seen(std::int64_t now_ns, StallState truth, const StallCauses& causes,
                         std::optional<StallState> left) {
  // A stall that began and ended without being seen: it left no trace but this.
  if (left && *left != state_ && *left != StallState::normal) {
    enter(begin_of(now_ns, causes.of(*left)), *left, causes.of(*left));
  }
  const StallCause cause = causes.of(truth);
  if (truth != state_) {
    enter(truth == StallState::normal ? now_ns : begin_of(now_ns, cause), truth, cause);
  } else if (truth != StallState::normal && cause != RocksdbCause::none && cause != cause_) {
    enter(now_ns, truth, cause);
  }
}

std::vector<Stall> StallTimeline::stalls(std::int64_t now_ns) const {
  std::vector<Stall> all = ended_;
  if (state_ != StallState::normal) append(all, {since_ns_, std::max(now_ns, since_ns_), state_, cause_});
  return all;
}

void StallTimeline::enter(std::int64_t at_ns, StallState state, StallCause cause) {
  if (state_ != StallState::normal && at_ns > since_ns_) append(ended_, {since_ns_, at_ns, state_, cause_});
  state_ = state;
  cause_ = cause;
  since_ns_ = std::max(at_ns, since_ns_);
}

// Merges two stalls that only a late notification has separated.
void StallTimeline::append(std::vector<Stall>& stalls, const Stall& next) {
  if (!stalls.empty() && stalls.back().end_ns == next.begin_ns && stalls.back().state == next.state &&
      stalls.back().cause == next.cause) {
    stalls.back().end_ns = next.end_ns;
  } else {
    stalls.push_back(next);
  }
}

// Memtables can become too many only when one is sealed. All other stalls are reported when they begin.
std::int64_t StallTimeline::begin_of(std::int64_t now_ns, StallCause cause) const {
  return cause == RocksdbCause::memtable && sealed_ns_ > since_ns_ ? std::min(sealed_ns_, now_ns) : now_ns;
}

}  // namespace spillway::engine
