#include "engine/rocksdb/flow_control.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace spillway::engine {

namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

// Source of all of these: tikv/tikv, src/storage/txn/flow_controller/singleton_flow_controller.rs
constexpr std::size_t kFlowRecords = 30;
constexpr std::size_t kFileRecords = 20;  // of memtables and L0 files
constexpr std::size_t kPendingRecords = 1024;
constexpr std::int64_t kPendingSpanNs = 60'000'000'000;  // a trend of pending compaction bytes takes this long
constexpr double kSlower = 0.8;
constexpr double kMemtableStep = 1 << 20;  // B/s
constexpr double kOldShare = 0.6;          // of the pending share, the rest is of the new one
constexpr double kFirstShare = 0.01;

// A signal that waits stops to do so when it is below its limit or rises.
bool still_waits(bool& waits, bool is_below, bool is_rising) {
  waits = waits && !is_below && !is_rising;
  return waits;
}

double log2_of(std::uint64_t bytes) { return bytes == 0 ? 0 : std::log2(static_cast<double>(bytes)); }

}  // namespace

const char* name_of(FlowRule rule) {
  constexpr std::array<const char*, kFlowRules> kNames = {"keep",
                                                          "l0_begin",
                                                          "l0_slower",
                                                          "l0_end",
                                                          "memtables_begin",
                                                          "memtables_slower",
                                                          "memtables_faster",
                                                          "memtables_end",
                                                          "memtables_repay",
                                                          "pending"};
  const auto index = static_cast<std::size_t>(rule);
  return index < kNames.size() ? kNames[index] : "?";
}

std::string find_problem(const FlowControlOptions& options) {
  if (options.soft_pending_bytes >= options.hard_pending_bytes) {
    return "engine.flow_control.soft_pending_bytes is " + std::to_string(options.soft_pending_bytes) +
           ": choose less than engine.flow_control.hard_pending_bytes = " + std::to_string(options.hard_pending_bytes);
  }
  if (options.least_bytes_s > options.most_bytes_s) {
    return "engine.flow_control.least_bytes_s is " + std::to_string(options.least_bytes_s) +
           ": choose 1 to engine.flow_control.most_bytes_s = " + std::to_string(options.most_bytes_s);
  }
  return "";
}

FlowControl::FlowControl(const FlowControlOptions& options)
    : options_(options),
      flow_(kFlowRecords),
      memtables_(kFileRecords),
      l0_files_(kFileRecords),
      pending_log2_(kPendingRecords),
      speed_bytes_s_(kUnlimited),
      pending_base_bytes_s_(kUnlimited) {}

void FlowControl::record_flow(double bytes_s, std::int64_t now_ns) {
  if (bytes_s > 0) flow_.add(bytes_s, now_ns);
}

FlowRule FlowControl::judge_memtables(const StallSignals& signals, std::int64_t now_ns) {
  const auto limit = static_cast<double>(options_.memtables);
  const auto present = static_cast<double>(signals.immutable_memtables);
  const double before = memtables_.newest();
  memtables_.add(present, now_ns);
  if (still_waits(memtables_wait_, present < limit, memtables_.is_rising())) return FlowRule::keep;
  const bool is_over = memtables_.mean() > limit;
  if (!is_limited()) {
    if (!is_over || flow_.percentile_90() == 0) return FlowRule::keep;
    memtables_set_speed_ = true;
    set_speed(flow_.percentile_90());
    return is_limited() ? FlowRule::memtables_begin : FlowRule::keep;
  }
  if (!is_over || present < limit) {
    if (memtables_set_speed_) {
      set_speed(kUnlimited);
      return FlowRule::memtables_end;
    }
    const double debt = std::exchange(memtable_debt_, 0);
    set_speed(speed_bytes_s_ + debt * kMemtableStep);
    return debt == 0 ? FlowRule::keep : FlowRule::memtables_repay;
  }
  if (present == before) return FlowRule::keep;
  const double step = present > before ? 1 : -1;
  memtable_debt_ += step;
  set_speed(speed_bytes_s_ - step * kMemtableStep);
  return step > 0 ? FlowRule::memtables_slower : FlowRule::memtables_faster;
}

FlowRule FlowControl::judge_l0(const StallSignals& signals, std::int64_t now_ns) {
  const auto limit = static_cast<double>(options_.l0_files);
  const auto present = static_cast<double>(signals.l0_files);
  l0_files_.add(present, now_ns);
  if (still_waits(l0_waits_, present < limit, l0_files_.is_rising())) return FlowRule::keep;
  if (memtables_set_speed_) return FlowRule::keep;
  const bool is_over = present > limit;
  if (!is_limited()) {
    const double speed = last_speed_bytes_s_ > 0 ? last_speed_bytes_s_ : flow_.percentile_90();
    if (!is_over || speed == 0) return FlowRule::keep;
    set_speed(speed);
    return is_limited() ? FlowRule::l0_begin : FlowRule::keep;
  }
  if (is_over) {
    set_speed(speed_bytes_s_ * kSlower);
    return FlowRule::l0_slower;
  }
  last_speed_bytes_s_ = speed_bytes_s_ / kSlower;
  set_speed(kUnlimited);
  return FlowRule::l0_end;
}

FlowRule FlowControl::judge_pending(const StallSignals& signals, std::int64_t now_ns) {
  const double soft = log2_of(options_.soft_pending_bytes);
  const double hard = log2_of(options_.hard_pending_bytes);
  const double present = log2_of(signals.pending_compaction_bytes);
  pending_log2_.add(present, now_ns);
  if (still_waits(pending_waits_, present < soft, pending_log2_.is_rising(kPendingSpanNs))) return FlowRule::keep;
  const double before = pending_share_;
  const double mean = pending_log2_.mean();
  if (mean < soft) {
    pending_share_ = 0;
  } else {
    const double share = (mean - soft) / (hard - soft);
    pending_share_ = before > 0 ? kOldShare * before + (1 - kOldShare) * share : std::min(share, kFirstShare);
    pending_share_ = std::min(pending_share_, 1.0);
  }
  if (pending_share_ == 0) {
    pending_base_bytes_s_ = kUnlimited;
  } else if (pending_base_bytes_s_ == kUnlimited && flow_.percentile_90() > 0) {
    pending_base_bytes_s_ = flow_.percentile_90();
  }
  return pending_share_ == before ? FlowRule::keep : FlowRule::pending;
}

double FlowControl::limit_bytes_s() const {
  if (pending_share_ == 0) return speed_bytes_s_;
  const double speed = std::min(speed_bytes_s_, pending_base_bytes_s_) * (1 - pending_share_);
  // No flow is known yet: infinity by any share but 1, which would be no number.
  if (pending_base_bytes_s_ == kUnlimited && !is_limited()) return kUnlimited;
  return std::max(speed, static_cast<double>(options_.least_bytes_s));
}

bool FlowControl::is_limited() const { return speed_bytes_s_ != kUnlimited; }

void FlowControl::set_speed(double bytes_s) {
  speed_bytes_s_ = std::max(bytes_s, static_cast<double>(options_.least_bytes_s));
  if (speed_bytes_s_ > static_cast<double>(options_.most_bytes_s)) speed_bytes_s_ = kUnlimited;
  if (!is_limited()) memtables_set_speed_ = false;
}

}  // namespace spillway::engine
