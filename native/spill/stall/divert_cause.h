// Why a diversion began, in RocksDB's terms.
#pragma once

#include <cstdint>

#include "spill/live/signals.h"
#include "spill/report/telemetry.h"
#include "spillway/options.h"

namespace spillway::spill {

enum class DivertCause : std::uint8_t { memtable, l0, pending_compaction_bytes, write_buffer_manager, other };

// The threshold of diversion that these signals have reached, in the order in which RocksDB asks for its own; `other`:
// none.
DivertCause divert_cause(const Signals& signals, const DivertPolicy& policy);

// Counts every diversion under one cause. RocksDB's notification of a stall has no cause, and the signals at hand are
// of the last poll then: the cause is that of the next poll. Called by one thread at a time.
class DivertCauses {
 public:
  DivertCauses(const DivertPolicy& policy, Counts& counts) : policy_(policy), counts_(counts) {}

  // A diversion begins. `memory_is_full`: a WriteBufferManager stops writers now.
  void begin(const Signals& last, bool memory_is_full);
  // The signals of a poll after begin().
  void poll(const Signals& now);

 private:
  void count(DivertCause cause);

  const DivertPolicy policy_;
  Counts& counts_;
  bool is_open_ = false;  // the last diversion has no cause yet
};

}  // namespace spillway::spill
