#include "lsm/stall.h"

#include <algorithm>

namespace spillway::lsm {
namespace {

constexpr double kLeastRate = 16 * 1024;  // bytes per second
constexpr double kNearStop = 0.6;
constexpr double kMoreDebt = 0.8;
constexpr double kLessDebt = 1 / kMoreDebt;
constexpr double kRecovered = 1.4;

}  // namespace

StallController::StallController(const TreeOptions& options)
    : options_(options), rate_bytes_s_(options.delayed_write_rate) {
  // As RocksDB's SanitizeOptions: no soft limit is the hard one, and a soft limit is at most the hard one.
  double& soft = options_.soft_pending_compaction_bytes_limit;
  const double hard = options_.hard_pending_compaction_bytes_limit;
  if (soft == 0 || (hard > 0 && soft > hard)) soft = hard;
  if (!options.slowdown) {
    options_.level0_slowdown_writes_trigger = options.level0_stop_writes_trigger;
    soft = hard;
    options_.max_write_buffer_number = std::min(options.max_write_buffer_number, 3U);
  }
}

StallState StallController::classify(const StallSignals& signals) const {
  StallState state;
  const TreeOptions& o = options_;
  if (signals.immutable_memtables >= o.max_write_buffer_number) {
    state = {true, false, StallCause::memtable, 0, true};
  } else if (signals.l0_files >= o.level0_stop_writes_trigger) {
    state = {true, false, StallCause::l0, 0, true};
  } else if (o.hard_pending_compaction_bytes_limit > 0 &&
             signals.pending_bytes >= o.hard_pending_compaction_bytes_limit) {
    state = {true, false, StallCause::pending_compaction_bytes, 0, true};
  } else if (o.max_write_buffer_number > 3 && signals.immutable_memtables + 1 >= o.max_write_buffer_number) {
    state = {false, true, StallCause::memtable, 0, true};
  } else if (signals.l0_files >= o.level0_slowdown_writes_trigger) {
    state = {false, true, StallCause::l0, 0, true};
  } else if (o.soft_pending_compaction_bytes_limit > 0 &&
             signals.pending_bytes >= o.soft_pending_compaction_bytes_limit) {
    state = {false, true, StallCause::pending_compaction_bytes, 0, true};
  }
  return state;
}

void StallController::set_rate(const StallSignals& signals, bool was_stopped, bool was_delayed, bool near_stop) {
  if (!was_delayed) return;  // it starts at the last rate
  if (was_stopped || near_stop) {
    rate_bytes_s_ = std::max(kLeastRate, rate_bytes_s_ * kNearStop);
  } else if (last_pending_bytes_ > 0 && last_pending_bytes_ <= signals.pending_bytes) {
    rate_bytes_s_ = std::max(kLeastRate, rate_bytes_s_ * kMoreDebt);
  } else if (last_pending_bytes_ > signals.pending_bytes) {
    rate_bytes_s_ = std::min(options_.delayed_write_rate, rate_bytes_s_ * kLessDebt);
  }
}

const StallState& StallController::update(const StallSignals& signals) {
  const StallState before = state_;
  state_ = classify(signals);
  const TreeOptions& o = options_;
  if (state_.delayed) {
    const double gap = o.hard_pending_compaction_bytes_limit - o.soft_pending_compaction_bytes_limit;
    bool near_stop = false;
    if (state_.cause == StallCause::l0) near_stop = signals.l0_files + 2 >= o.level0_stop_writes_trigger;
    if (state_.cause == StallCause::pending_compaction_bytes) {
      near_stop = gap > 0 && signals.pending_bytes - o.soft_pending_compaction_bytes_limit > 0.75 * gap;
    }
    set_rate(signals, before.stopped, before.delayed, near_stop);
    state_.rate_bytes_s = rate_bytes_s_;
  } else if (!state_.stopped) {
    const double trigger = o.level0_file_num_compaction_trigger;
    const double slowdown = std::max(trigger, static_cast<double>(o.level0_slowdown_writes_trigger));
    const double speed_up_l0 = std::min(2 * trigger, trigger + (slowdown - trigger) / 4);
    // Without limits of the debt, always.
    state_.speed_up = static_cast<double>(signals.l0_files) >= speed_up_l0 ||
                      signals.pending_bytes >= o.soft_pending_compaction_bytes_limit / 4;
    if (before.delayed) rate_bytes_s_ = std::min(o.delayed_write_rate, rate_bytes_s_ * kRecovered);
  }
  last_pending_bytes_ = signals.pending_bytes;
  return state_;
}

}  // namespace spillway::lsm
