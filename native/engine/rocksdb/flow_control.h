// TiKV's flow control, for comparison: RocksDB's own write stalls are off, and a limit on the rate of writes, set here,
// takes their place.
//
// Signals s are immutable memtables m, L0 files l and pending compaction bytes p, each with a limit of its own. F is
// the 90th percentile of the last 30 records of the write rate, one a second; zeros are no records. v is the limit that
// L0 and memtables set [B/s].
//   L0, after each flush and L0 compaction, unless memtables set v:
//     l > limit:  v = the last v or F, if writes are not limited; 0.8 v if they are
//     else:       not limited; v / 0.8 is remembered as the last v
//   memtables, after each flush, with M the mean of the last 20 m:
//     M > limit:  v = F, if writes are not limited; else, while m >= limit, 1 MiB/s less (more) if m has grown
//     (shrunk),
//                 which is a debt
//     else:       not limited, if memtables set v; else v plus the debt
//   v below the least rate is the least, v above the most is no limit.
//   pending compaction bytes, after each compaction, with P the mean of the last 1024 log2 p:
//     share = (P - log2 soft) / (log2 hard - log2 soft), at first at most 0.01, then 0.6 old + 0.4 new; 0 below soft
// Source: tikv/tikv, src/storage/txn/flow_controller/singleton_flow_controller.rs; TiKV issue 10137.
//
// Different here: TiKV refuses the share of the writes, and its clients try again; no client of this seam does, so
// writes are limited to (1 - share) of v. Where v is no limit, F of the moment at which the share began takes its
// place. That memtables set v ends with the limit. A trend is between halves of the records, not of their time.
//
// A signal that is over its limit when a database is opened counts once it has been below it, or rises.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/rocksdb/flow_window.h"
#include "engine/rocksdb/stall_timeline.h"

namespace spillway::engine {

// Settings of a plan; defaults are TiKV's. A plan with smaller memtables has to scale the bytes.
struct FlowControlOptions {
  std::uint64_t memtables = 5;                       // Source: TiKV, storage.flow-control
  std::uint64_t l0_files = 20;                       // Source: as above
  std::uint64_t soft_pending_bytes = 192ULL << 30;   // Source: as above
  std::uint64_t hard_pending_bytes = 1024ULL << 30;  // Source: as above
  std::uint64_t least_bytes_s = 16ULL << 10;         // Source: TiKV's code
  std::uint64_t most_bytes_s = 200ULL << 20;         // Source: TiKV's code
};

// The first relation that does not hold, as a sentence; "" when there is none.
std::string find_problem(const FlowControlOptions& options);

enum class FlowRule : std::uint8_t {
  keep,
  l0_begin,
  l0_slower,
  l0_end,
  memtables_begin,
  memtables_slower,
  memtables_faster,
  memtables_end,
  memtables_repay,
  pending,
};
inline constexpr std::size_t kFlowRules = 10;
const char* name_of(FlowRule rule);

// Deterministic: times, ns of any one clock, are passed in and never decrease.
class FlowControl {
 public:
  // REQUIRES: find_problem(options) is empty
  explicit FlowControl(const FlowControlOptions& options);

  // The rate of writes over the last second.
  void record_flow(double bytes_s, std::int64_t now_ns);

  // Each judges one signal and returns the rule that changed the limit; `keep` if none did.
  FlowRule judge_memtables(const StallSignals& signals, std::int64_t now_ns);
  FlowRule judge_l0(const StallSignals& signals, std::int64_t now_ns);
  FlowRule judge_pending(const StallSignals& signals, std::int64_t now_ns);

  // What writes are limited to; infinity: they are not.
  double limit_bytes_s() const;
  // By which pending compaction bytes slow writers down, 0 to 1.
  double pending_share() const { return pending_share_; }

 private:
  bool is_limited() const;
  void set_speed(double bytes_s);

  const FlowControlOptions options_;
  FlowWindow flow_;
  FlowWindow memtables_;
  FlowWindow l0_files_;
  FlowWindow pending_log2_;
  double speed_bytes_s_;  // v
  double last_speed_bytes_s_ = 0;
  double memtable_debt_ = 0;  // in steps
  bool memtables_set_speed_ = false;
  double pending_share_ = 0;
  double pending_base_bytes_s_;  // F when the share began; infinity: no flow was known, or there is no share
  // Over its limit since the database was opened.
  bool memtables_wait_ = true;
  bool l0_waits_ = true;
  bool pending_waits_ = true;
};

}  // namespace spillway::engine
