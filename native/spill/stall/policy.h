// Where the next write goes, and what the rollback does next: two pure functions of the observed state.
//
// Sources: K3 (signals), K4 (routes, never throttles), K8 (rollback), K24 (when eager, when lazy).
#pragma once

#include <cstdint>

#include "spill/live/signals.h"
#include "spillway/options.h"

namespace spillway::spill {

enum class Route : std::uint8_t { main, spill };

// The thresholds of `policy` under these limits. A threshold counts as reached at its value, as RocksDB's stop triggers
// do. Hysteresis: writes return to RocksDB below the resume thresholds. A threshold is never above RocksDB's own limit,
// and never so low that compactions could stop above it and leave diverted data in the spill store for ever.
struct Thresholds {
  int divert_l0_files = 0;  // 0: none
  int resume_l0_files = 0;
  int divert_memtables = 0;  // immutable ones; a flush frees a whole memtable, so the same value serves to resume
  std::uint64_t divert_pending = 0;  // 0: none
  std::uint64_t resume_pending = 0;
};
Thresholds thresholds_of(const Signals& signals, const DivertPolicy& policy);

// Hysteresis: diversion starts at `divert`, or when RocksDB has stopped, and ends below `resume`, but not while the
// burst of writes lasts that began it (burst_watch.h).
Route next_route(Route now, const Signals& signals, const DivertPolicy& policy, bool burst_lasts = false);

// From this share of the store on, what is there is brought back before it is full. A burst that fits in the store
// comes back as one run, so it is late; pacing begins later still, when generations already come back. Source: decision
// 0040
inline constexpr double kMostlyFull = 0.7;
// Whether reads are so many that it is a mixed load: K24 has rollback eager for those.
bool is_mixed(double reads_per_s, double writes_per_s);

// Input of next_rollback().
struct RollbackState {
  Route route = Route::main;
  bool is_stalled = false;  // as in Signals
  bool owes_note = false;   // compactions are held until nothing is live, or the store takes a note
  bool call_waits = false;  // Rollback() waits, or a call that needs an empty spill store: not even a stall is awaited
  bool rollback_requested = false;  // a call waits, or a write that only RocksDB can take: after the stall
  bool burst_is_over = false;       // of writes, with which the last diversion began
  bool spill_full = false;          // the store or the index is full
  bool is_pacing = false;           // it is about to be, and writers are slowed to what comes back
  std::uint64_t paced_group = 1;    // in a burst that goes on as many come back together, if nothing has begun
  double free_lasts_s = 0;          // what is free, for writes as they come now
  double share_used = 0;            // of the store's capacity or of the index's, the larger
  bool debt = false;                // pending compaction bytes alone would divert writes
  std::uint64_t sealed = 0;         // generations that are full or were sealed for another reason
  std::uint64_t live_bytes = 0;     // in all generations
  std::uint64_t live_entries = 0;
  double reads_per_s = 0;
  double writes_per_s = 0;
  double idle_s = 0;                 // since the last diverted write
  int l0_room = 0;                   // L0 files below the divert threshold
  bool l0_is_busy = false;           // it has as many as RocksDB begins to compact at
  bool l0_is_crowded = false;        // it has several times as many
  double since_last_rollback_s = 0;  // since the last rollback ended
  double last_took_s = 0;
};

// How many generations to bring back next, oldest first. They come back as one run, in parts; each part is a step, for
// which this is asked anew, and any number but none lets what has begun go on. A part becomes an L0 file.
inline constexpr std::uint64_t kAllGenerations = ~std::uint64_t{0};

// None if nothing is live. All if compactions are held for what is live, or if a call waits for it: such a call would
// proceed in a stall with RocksDB alone, as its copies and ingestions do. None while RocksDB is stopped. Then, in this
// order:
//   1. Requested: all, now, even while writes are diverted.
//   2. Full, or writers are slowed so that it does not fill: now, because writes that must be diverted would wait.
//      Generations that come back together free their space together, so no more than what is free lasts for: one,
//      where it is full. Writers are slowed to what RocksDB compacts, not to what L0 takes: each part waits until L0 is
//      compacted, unless the store is full. All, if the burst is over and what is free lasts for a while: pacing then
//      slows nobody.
//   3. While writes are diverted: none (K8). Exception: the store is mostly full, only memtables hold RocksDB up, and
//      the policy is not `off`. Then as in 2, because later, when the store is full, it would cost more.
//   4. If one more L0 file would divert writes: none.
//   5. `eager`: now. `off`: never. `lazy`: when a generation is sealed, or writes have ceased.
//   6. `adaptive`: when it costs little or helps reads, which are fastest from RocksDB (K24): if reads are more than a
//      twentieth of all operations, if writes are few or come at less than half the rate of the burst, if RocksDB has
//      taken all of them for some seconds, or from mostly full on. It waits during a burst of writes, which needs all
//      of the drive's bandwidth. With readers, and without writes that are about to fill the store, it pauses after
//      each generation and leaves the drive to the reads.
// All that is live then comes back together, unless the burst goes on in a store that is mostly full, or writes of a
// mixed load fill what is free before all is back: the larger the run, the less RocksDB rewrites for it. Between parts
// the policy waits for room in L0, so rollback does not cause a stall itself.
std::uint64_t next_rollback(const RollbackState& state, RollbackPolicy policy);

// Whether what is brought back takes its time (RunPace), since writes go on and RocksDB has L0 to compact. Small runs
// one after the other would fill L0, though all writes go into the store meanwhile: then nothing could come back for as
// long as RocksDB compacts all of it.
bool takes_its_time(const RollbackState& state);

}  // namespace spillway::spill
