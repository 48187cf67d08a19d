// When a store stalled its writers, and why: a timeline from notifications that arrive late and out of order.
//
// RocksDB notifies its listeners after a change, and a thread that stops itself reports its stop only when it continues
// (observed on 7.8.3: "stopped → normal" from the flush thread arrives before "normal → stopped" from the writer). So
// three sources are combined: the store's current properties, the state before a notification's change (a stall that
// was not observed), and the time at which the last memtable was sealed (the beginning of a stall for memtables).
//
// No clock, no lock: times are passed in and never decrease, except for sealed(), which may lag.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/engine.h"

namespace spillway::engine {

// RocksDB's causes (K1), in the order in which it tests them.
// NOLINTBEGIN(readability-identifier-naming): enumerators, of a type that all engines share.
struct RocksdbCause {
  static constexpr StallCause none = kNoStallCause;
  static constexpr StallCause memtable = 1;
  static constexpr StallCause l0 = 2;
  static constexpr StallCause pending_compaction_bytes = 3;
  static constexpr std::array names = {"none", "memtable", "l0", "pending_compaction_bytes"};
};
// NOLINTEND(readability-identifier-naming)

// What RocksDB compares with its limits.
struct StallSignals {
  std::uint64_t immutable_memtables = 0;
  std::uint64_t l0_files = 0;
  std::uint64_t pending_compaction_bytes = 0;
};

struct StallLimits {
  std::uint64_t max_write_buffer_number = 2;
  std::uint64_t min_write_buffer_number_to_merge = 1;
  std::uint64_t l0_slowdown = 20;
  std::uint64_t l0_stop = 36;
  std::uint64_t soft_pending_bytes = 0;  // 0: none
  std::uint64_t hard_pending_bytes = 0;  // 0: none
  bool compacts = true;                  // without automatic compactions only memtables hold writers back
};

// How often RocksDB has decided on each cause since the store was opened; index by RocksdbCause.
struct StallCounts {
  std::array<std::uint64_t, RocksdbCause::names.size()> delayed{};
  std::array<std::uint64_t, RocksdbCause::names.size()> stopped{};
};

// Should writers be in this state, why.
struct StallCauses {
  StallCause delayed = RocksdbCause::none;
  StallCause stopped = RocksdbCause::none;

  StallCause of(StallState state) const {
    if (state == StallState::normal) return RocksdbCause::none;
    return state == StallState::stopped ? stopped : delayed;
  }
};

// The first cause, in RocksDB's own order of tests, whose limit is reached; none when none is.
// Source: RocksDB, db/column_family.cc; K1.
StallCause cause_by_limits(StallState state, const StallSignals& signals, const StallLimits& limits);

// The same, held against what RocksDB counted since `before`: its own counts win, for signals may have moved on.
StallCauses explain(const StallSignals& signals, const StallLimits& limits, const StallCounts& before,
                    const StallCounts& now);

class StallTimeline {
 public:
  void sealed(std::int64_t at_ns) { sealed_ns_ = at_ns; }

  // At `now_ns` writers are in state `truth`. `left`, when given, is the state that a notification says was left.
  void seen(std::int64_t now_ns, StallState truth, const StallCauses& causes, std::optional<StallState> left = {});

  StallState state() const { return state_; }
  StallCause cause() const { return cause_; }
  // Oldest first. One in progress ends at now_ns.
  std::vector<Stall> stalls(std::int64_t now_ns) const;

 private:
  void enter(std::int64_t at_ns, StallState state, StallCause cause);
  static void append(std::vector<Stall>& stalls, const Stall& next);
  std::int64_t begin_of(std::int64_t now_ns, StallCause cause) const;

  StallState state_ = StallState::normal;
  StallCause cause_ = RocksdbCause::none;
  std::int64_t since_ns_ = 0;   // of the present state
  std::int64_t sealed_ns_ = 0;  // the last memtable
  std::vector<Stall> ended_;
};

}  // namespace spillway::engine
