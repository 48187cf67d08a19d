#include "spill/stall/divert_cause.h"

#include "spill/stall/policy.h"

namespace spillway::spill {

DivertCause divert_cause(const Signals& signals, const DivertPolicy& policy) {
  const Thresholds at = thresholds_of(signals, policy);
  if (signals.immutable_memtables >= at.divert_memtables) return DivertCause::memtable;
  if (at.divert_l0_files > 0 && signals.l0_files >= at.divert_l0_files) return DivertCause::l0;
  if (at.divert_pending > 0 && signals.pending_compaction_bytes >= at.divert_pending) {
    return DivertCause::pending_compaction_bytes;
  }
  return DivertCause::other;
}

void DivertCauses::begin(const Signals& last, bool memory_is_full) {
  if (is_open_) count(DivertCause::other);
  const DivertCause cause = memory_is_full ? DivertCause::write_buffer_manager : divert_cause(last, policy_);
  is_open_ = cause == DivertCause::other;
  if (!is_open_) count(cause);
}

void DivertCauses::poll(const Signals& now) {
  if (!is_open_) return;
  is_open_ = false;
  count(divert_cause(now, policy_));
}

void DivertCauses::count(DivertCause cause) {
  switch (cause) {
    case DivertCause::memtable:
      return increment(counts_.stalls_diverted_memtable);
    case DivertCause::l0:
      return increment(counts_.stalls_diverted_l0);
    case DivertCause::pending_compaction_bytes:
      return increment(counts_.stalls_diverted_pending_compaction_bytes);
    case DivertCause::write_buffer_manager:
      return increment(counts_.stalls_diverted_write_buffer_manager);
    case DivertCause::other:
      return increment(counts_.stalls_diverted_other);
  }
}

}  // namespace spillway::spill
