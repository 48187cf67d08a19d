// RocksDB's write stalls: when writers are stopped or delayed, and at which rate.
//
// As ColumnFamilyData::GetWriteStallConditionAndCause, RecalculateWriteStallConditions and SetupDelay.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lsm/spec.h"

namespace spillway::lsm {

enum class StallCause : std::uint8_t { none, memtable, l0, pending_compaction_bytes };
inline constexpr std::size_t kStallCauses = 4;

struct StallState {
  bool stopped = false;
  bool delayed = false;
  StallCause cause = StallCause::none;
  double rate_bytes_s = 0;  // while delayed
  bool speed_up = false;    // compactions may run side by side
};

// What it depends on.
struct StallSignals {
  std::size_t immutable_memtables = 0;
  std::size_t l0_files = 0;  // Tree::stall_runs()
  double pending_bytes = 0;
};

class StallController {
 public:
  explicit StallController(const TreeOptions& options);

  // After every flush, compaction and switch of memtables.
  const StallState& update(const StallSignals& signals);
  const StallState& state() const { return state_; }

 private:
  StallState classify(const StallSignals& signals) const;
  void set_rate(const StallSignals& signals, bool was_stopped, bool was_delayed, bool near_stop);

  TreeOptions options_;
  StallState state_;
  double rate_bytes_s_;
  double last_pending_bytes_ = 0;
};

}  // namespace spillway::lsm
