// Where the next write goes, and what the rollback does next: two pure functions of what is known.
//
// Sources: K3 (signals), K4 (routes, never throttles), K8 (rollback), K24 (when eager, when lazy).
#pragma once

#include <cstdint>

#include "spill/live/signals.h"
#include "spillway/options.h"

namespace spillway::spill {

enum class Route : std::uint8_t { main, spill };

// The thresholds that `policy` means under these limits. Like RocksDB's own stop triggers each is reached at its value,
// not beyond it; writes return below the lower ones. A threshold is never above RocksDB's own limit, nor so low that
// compactions would come to rest above it and what was diverted stay so for ever.
struct Thresholds {
  int divert_l0_files = 0;  // 0: none
  int resume_l0_files = 0;
  int divert_memtables = 0;  // immutable ones; a flush is room for a whole memtable, so writes return below the same
  std::uint64_t divert_pending = 0;  // 0: none
  std::uint64_t resume_pending = 0;
};
Thresholds thresholds_of(const Signals& signals, const DivertPolicy& policy);

// Stopped, or close to it, diverts; what began ends below lower thresholds, so that it does not flutter.
Route next_route(Route now, const Signals& signals, const DivertPolicy& policy);

// What the rollback knows.
struct RollbackState {
  Route route = Route::main;
  bool stopped = false;          // as in Signals
  bool owes_note = false;        // compactions are held until nothing is live, or the store takes a note
  bool is_awaited = false;       // by Rollback(), or a call that needs an empty spill store
  bool asked_for = false;        // by one of those, or by a write that only RocksDB can take
  bool spill_full = false;       // the store or the index takes no more
  double share_used = 0;         // of the store's capacity, or of the index's where that is more
  bool debt = false;             // pending compaction bytes alone would have writes diverted
  std::uint64_t sealed = 0;      // generations that are full, or were sealed for other reasons
  std::uint64_t live_bytes = 0;  // in all generations
  std::uint64_t live_entries = 0;
  double reads_per_s = 0;
  double writes_per_s = 0;
  double idle_s = 0;  // since the last diverted write
  int l0_room = 0;    // L0 files before the threshold of diversion
  double rest_s = 0;  // since the last rollback ended
  double last_took_s = 0;
};

// How many generations are brought back next, the oldest first.
inline constexpr std::uint64_t kAllGenerations = ~std::uint64_t{0};

// None where nothing lies; all, where compactions are held for what lies there, and where a call waits for that, as
// RocksDB's own copies and ingestions do not wait for a stall's end either; none while RocksDB is stopped. Then, in
// this order:
//   1. asked for: all, now, even though writes are still diverted.
//   2. full: one, now as well, for else the writes that have to be diverted would wait. What comes back together is
//      free together: one at a time is the first room soonest.
//   3. while writes are diverted: none (K8), unless the store is half full, RocksDB is held up by its memtables alone,
//      and the policy is not `off`: then one, better now, beside the writes, than when it is full.
//   4. where one more L0 file would have writes diverted: none.
//   5. `eager`: now. `off`: never. `lazy`: when a generation is sealed, or writes have ceased.
//   6. `adaptive`: while it costs little or helps reads, which a copy in RocksDB serves best (K24): while reads are
//      more than a twentieth of all operations, writes are few, RocksDB has taken all of them for some seconds, or from
//      half full on. In a burst of writes it waits, for all that the drive can do goes into those. While there are
//      readers, and no writes that are about to fill the store, with a rest behind each generation: the drive is
//      theirs.
// `adaptive`, and all from half full on, one at a time; else no more than leave room for an L0 file: each is one, and
// what comes back must not be a stall itself.
std::uint64_t next_rollback(const RollbackState& state, RollbackPolicy policy);

}  // namespace spillway::spill
