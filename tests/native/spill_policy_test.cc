// The policies as tables: each row is one situation and the expected decision.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "spill/stall/policy.h"

namespace spillway::spill {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

Signals defaults() { return {.hard_pending_compaction_bytes = 256 * kGiB}; }  // RocksDB's default

struct RouteRow {
  std::string when;
  Signals signals;
  Route from_main;
  Route from_spill;
};

Signals with_l0(int files) {
  Signals signals = defaults();
  signals.l0_files = files;
  return signals;
}

Signals with_memtables(int immutable, int most) {
  Signals signals = defaults();
  signals.immutable_memtables = immutable;
  signals.max_write_buffer_number = most;
  return signals;
}

Signals with_pending(double share) {
  Signals signals = defaults();
  signals.pending_compaction_bytes = static_cast<std::uint64_t>(share * 256 * kGiB);
  return signals;
}

Signals stopped() {
  Signals signals = defaults();
  signals.is_stalled = true;
  return signals;
}

Signals without_limits() {
  Signals signals = with_l0(1000);
  signals.l0_stop_trigger = 0;
  signals.hard_pending_compaction_bytes = 0;
  signals.pending_compaction_bytes = 1000 * kGiB;
  return signals;
}

TEST(Policy, RoutesByDefault) {
  constexpr Route main = Route::main;
  constexpr Route spill = Route::spill;
  const std::vector<RouteRow> rows = {
      {"idle", defaults(), main, main},
      {"RocksDB says that it is stopped, whatever the counts", stopped(), spill, spill},
      {"L0 below both thresholds", with_l0(18), main, main},
      {"L0 at the resume threshold, midway between 4 and 35", with_l0(19), main, spill},
      {"L0 two before the stop trigger", with_l0(34), main, spill},
      {"L0 one before the stop trigger", with_l0(35), spill, spill},
      {"L0 at the stop trigger", with_l0(36), spill, spill},
      {"one of two memtables waits", with_memtables(1, 2), main, main},
      {"two of two", with_memtables(2, 2), spill, spill},
      {"two of three", with_memtables(2, 3), main, main},
      {"three of three", with_memtables(3, 3), spill, spill},
      {"with four RocksDB would delay at three", with_memtables(3, 4), spill, spill},
      {"two of four", with_memtables(2, 4), main, main},
      {"debt below both", with_pending(0.89), main, main},
      {"debt between", with_pending(0.91), main, spill},
      {"debt close to the limit", with_pending(0.985), spill, spill},
      {"no limits, and RocksDB goes on", without_limits(), main, main},
  };
  for (const RouteRow& row : rows) {
    EXPECT_EQ(next_route(Route::main, row.signals, {}), row.from_main) << row.when;
    EXPECT_EQ(next_route(Route::spill, row.signals, {}), row.from_spill) << row.when;
  }
}

TEST(Policy, RoutesOnceEachWayWhenL0RisesAndFalls) {
  Route route = Route::main;
  int changes = 0;
  const auto look = [&](int files) {
    const Route next = next_route(route, with_l0(files), {});
    changes += next != route ? 1 : 0;
    route = next;
  };
  for (int files = 0; files < 36; ++files) look(files);
  for (int i = 0; i < 50; ++i) look(34 + i % 2);
  for (int files = 36; files >= 0; --files) look(files);
  EXPECT_EQ(changes, 2);
  EXPECT_EQ(route, Route::main);
}

struct ThresholdRow {
  std::string when;
  int trigger;
  int stop;
  DivertPolicy policy;
  int divert;
  int resume;
};

TEST(Policy, ThresholdsStayWithinRocksDbsLimits) {
  const std::vector<ThresholdRow> rows = {
      {"defaults", 4, 36, {}, 35, 19},
      {"as asked for", 4, 36, {.divert_l0_files = 20, .resume_l0_files = 10}, 20, 10},
      {"above RocksDB's own", 4, 36, {.divert_l0_files = 100}, 36, 20},
      {"returns no later than it went", 4, 36, {.divert_l0_files = 20, .resume_l0_files = 30}, 20, 20},
      {"compactions rest below four files", 4, 36, {.divert_l0_files = 2, .resume_l0_files = 1}, 4, 4},
      {"stop at the compaction trigger", 4, 4, {}, 4, 4},
      {"all at one", 1, 1, {}, 1, 1},
      {"no stop trigger", 4, 0, {.divert_l0_files = 20}, 0, 0},
  };
  for (const ThresholdRow& row : rows) {
    const Signals signals{.l0_compaction_trigger = row.trigger, .l0_stop_trigger = row.stop};
    const Thresholds found = thresholds_of(signals, row.policy);
    EXPECT_EQ(found.divert_l0_files, row.divert) << row.when;
    EXPECT_EQ(found.resume_l0_files, row.resume) << row.when;
    EXPECT_EQ(found.divert_pending, 0U) << row.when;
  }
}

TEST(Policy, ThresholdsOfDebtAreShares) {
  Signals signals;
  signals.hard_pending_compaction_bytes = 1000;
  const auto of = [&](double divert, double resume) {
    const Thresholds found = thresholds_of(signals, {.divert_pending = divert, .resume_pending = resume});
    return std::pair(found.divert_pending, found.resume_pending);
  };
  using Pair = std::pair<std::uint64_t, std::uint64_t>;
  EXPECT_EQ(of(0.98, 0.9), Pair(980, 900));
  EXPECT_EQ(of(2, 3), Pair(1000, 1000));
  EXPECT_EQ(of(0.5, 0.9), Pair(500, 500));
  EXPECT_EQ(of(0, -1), Pair(1, 1));  // without any debt it still goes to RocksDB
}

struct StepRow {
  std::string when;
  RollbackState state;
  bool eager;
  bool lazy;
  bool adaptive;
  bool off;
};

// A load of writes only, which RocksDB has just begun to accept again.
RollbackState writing() {
  return {.live_bytes = 1 << 20, .live_entries = 256, .writes_per_s = 30000, .idle_s = 0.1, .l0_room = 10};
}

RollbackState with(RollbackState state, void (*change)(RollbackState&)) {
  change(state);
  return state;
}

void expect_steps(const std::vector<StepRow>& rows) {
  for (const StepRow& row : rows) {
    const auto brings = [&](RollbackPolicy policy) { return next_rollback(row.state, policy) > 0; };
    EXPECT_EQ(brings(RollbackPolicy::eager), row.eager) << row.when;
    EXPECT_EQ(brings(RollbackPolicy::lazy), row.lazy) << row.when;
    EXPECT_EQ(brings(RollbackPolicy::adaptive), row.adaptive) << row.when;
    EXPECT_EQ(brings(RollbackPolicy::off), row.off) << row.when;
  }
}

TEST(Policy, BringsBackByPolicy) {
  const RollbackState now = writing();
  //                                                                                      eager lazy  adapt off
  expect_steps({
      {"writes alone", now, true, false, false, false},
      {"a full generation", with(now, [](auto& s) { s.sealed = 1; }), true, true, false, false},
      {"a store mostly full of them", with(now, [](auto& s) { s.sealed = 9, s.share_used = 0.7; }), true, true, true,
       false},
      {"one read in ten", with(now, [](auto& s) { s.reads_per_s = 3400; }), true, false, true, false},
      {"hardly a read", with(now, [](auto& s) { s.reads_per_s = 300; }), true, false, false, false},
      {"a burst that is over", with(now, [](auto& s) { s.burst_is_over = true; }), true, false, true, false},
      {"few writes", with(now, [](auto& s) { s.writes_per_s = 50; }), true, false, true, false},
      {"nothing was diverted for a while", with(now, [](auto& s) { s.idle_s = 3; }), true, false, true, false},
      {"writes have ceased", with(now, [](auto& s) { s.writes_per_s = 0, s.idle_s = 2; }), true, true, true, false},
      {"... a moment ago", with(now, [](auto& s) { s.writes_per_s = 0; }), true, false, true, false},
  });
}

TEST(Policy, NeverBringsBackInAStallUnlessItMust) {
  const RollbackState diverting =
      with(writing(), [](auto& s) { s.route = Route::spill, s.sealed = 3, s.reads_per_s = 1e6, s.l0_room = 0; });
  const auto asked = [](RollbackState& s) { s.rollback_requested = true; };
  const auto awaited = [](RollbackState& s) { s.rollback_requested = s.call_waits = true; };
  const auto owes = [](RollbackState& s) { s.owes_note = true; };
  const auto full = [](RollbackState& s) { s.spill_full = true; };
  const auto stop = [](RollbackState& s) { s.is_stalled = true; };
  const auto no_room = [](RollbackState& s) { s.route = Route::main; };
  expect_steps({
      {"diverting", diverting, false, false, false, false},
      {"one more file would divert", with(diverting, no_room), false, false, false, false},
      {"diverting, asked for", with(diverting, asked), true, true, true, true},
      {"diverting, full", with(diverting, full), true, true, true, true},
      {"stopped, asked for", with(with(diverting, asked), stop), false, false, false, false},
      {"stopped, awaited", with(with(diverting, awaited), stop), true, true, true, true},
      {"stopped, full", with(with(diverting, full), stop), false, false, false, false},
      {"stopped, owes a note", with(with(diverting, owes), stop), true, true, true, true},
  });
}

TEST(Policy, BringsBackDuringWritesFromMostlyFullOn) {
  const RollbackState most = with(writing(), [](auto& s) { s.route = Route::spill, s.sealed = 3, s.share_used = 0.7; });
  expect_steps({
      {"held up by memtables", most, true, true, true, false},
      {"less than that", with(most, [](auto& s) { s.share_used = 0.69; }), false, false, false, false},
      {"held up by debt", with(most, [](auto& s) { s.debt = true; }), false, false, false, false},
      {"held up by L0", with(most, [](auto& s) { s.l0_room = 0; }), false, false, false, false},
      {"held up by L0, while writers are paced", with(most, [](auto& s) { s.l0_room = 0, s.is_pacing = true; }), true,
       true, true, true},
      {"stopped, while writers are paced", with(most, [](auto& s) { s.is_stalled = s.is_pacing = true; }), false, false,
       false, false},
      {"stopped", with(most, [](auto& s) { s.is_stalled = true; }), false, false, false, false},
  });
}

TEST(Policy, AllComesBackTogetherButForWhatTheStoreHasNoRoomFor) {
  RollbackState state = with(writing(), [](auto& s) { s.sealed = 100, s.paced_group = 3; });
  const auto brings = [&] { return next_rollback(state, RollbackPolicy::eager); };
  EXPECT_EQ(brings(), kAllGenerations);
  state.l0_room = 0;
  EXPECT_EQ(brings(), 0U) << "what comes back is no stall itself";
  state.spill_full = true;
  EXPECT_EQ(brings(), 1U) << "those that have to be diverted wait";
  state.l0_room = 10;
  EXPECT_EQ(brings(), 1U);
  state.spill_full = false;
  state.is_pacing = true;
  EXPECT_EQ(brings(), 3U);
  state.burst_is_over = true;
  state.free_lasts_s = 10;
  EXPECT_EQ(brings(), 3U) << "it comes back in groups, so that there is room all the time";
  state.free_lasts_s = 60;
  EXPECT_EQ(brings(), kAllGenerations) << "pacing slows nobody any more";
  state.burst_is_over = false;
  EXPECT_EQ(brings(), 3U);
  state.l0_is_crowded = true;
  EXPECT_EQ(brings(), 0U) << "writers are slowed to what RocksDB compacts";
  state.spill_full = true;
  EXPECT_EQ(brings(), 1U);
  state.spill_full = state.l0_is_crowded = false;
  state.is_pacing = false;
  state.share_used = 0.7;
  EXPECT_EQ(brings(), 3U) << "the burst goes on";
  state.burst_is_over = true;
  EXPECT_EQ(brings(), kAllGenerations);
  state.burst_is_over = false;
  state.route = Route::spill;
  EXPECT_EQ(brings(), 3U) << "before it is full";
  state.rollback_requested = true;
  EXPECT_EQ(brings(), kAllGenerations);
}

TEST(Policy, AMixedLoadsRunLeavesRoomForWhatComesInMeanwhile) {
  RollbackState state = with(writing(), [](auto& s) { s.sealed = 9, s.paced_group = 3, s.free_lasts_s = 10; });
  const auto brings = [&] { return next_rollback(state, RollbackPolicy::eager); };
  for (const bool is_over : {false, true}) {
    state.burst_is_over = is_over;
    state.reads_per_s = state.writes_per_s / 9;
    EXPECT_EQ(brings(), 3U) << "nothing of a run is free before all of it is back";
    state.l0_is_crowded = true;
    EXPECT_EQ(brings(), 0U);
    state.l0_is_crowded = false;
    state.free_lasts_s = 20;
    EXPECT_EQ(brings(), kAllGenerations) << "there is room for a while";
    state.free_lasts_s = 10;
    state.writes_per_s = 50;
    EXPECT_EQ(brings(), kAllGenerations) << "hardly a write comes in";
    state.writes_per_s = 30000;
    state.reads_per_s = 0;
    EXPECT_EQ(brings(), kAllGenerations) << "it waits for the burst's end, or for mostly full";
  }
}

TEST(Policy, RunsTakeTheirTimeWhileWritesGoOnAndRocksdbHasL0ToCompact) {
  const RollbackState busy = with(writing(), [](auto& s) { s.l0_is_busy = true; });
  EXPECT_TRUE(takes_its_time(busy));
  EXPECT_TRUE(takes_its_time(with(busy, [](auto& s) { s.burst_is_over = true; }))) << "it came at more than twice";
  EXPECT_FALSE(takes_its_time(with(busy, [](auto& s) { s.l0_is_busy = false; }))) << "RocksDB waits for it";
  EXPECT_FALSE(takes_its_time(with(busy, [](auto& s) { s.writes_per_s = 1; }))) << "nothing is diverted meanwhile";
  EXPECT_FALSE(takes_its_time(with(busy, [](auto& s) { s.reads_per_s = s.writes_per_s; }))) << "it helps the reads";
  EXPECT_FALSE(takes_its_time(with(busy, [](auto& s) { s.spill_full = true; })));
  const RollbackState pacing = with(writing(), [](auto& s) { s.is_pacing = true; });
  EXPECT_TRUE(takes_its_time(pacing));
  for (const RollbackState& one : {busy, pacing}) {
    EXPECT_FALSE(takes_its_time(with(one, [](auto& s) { s.call_waits = true; })));
    EXPECT_FALSE(takes_its_time(with(one, [](auto& s) { s.rollback_requested = true; })));
  }
}

TEST(Policy, DivertsForAsLongAsTheBurstLasts) {
  const Signals calm{.l0_files = 0};
  const DivertPolicy policy;
  EXPECT_EQ(next_route(Route::spill, calm, policy, true), Route::spill);
  EXPECT_EQ(next_route(Route::spill, calm, policy, false), Route::main);
  EXPECT_EQ(next_route(Route::main, calm, policy, true), Route::main) << "it begins with a stall";
}

TEST(Policy, PausesBetweenRollbacksWhileThereAreReaders) {
  RollbackState state =
      with(writing(), [](auto& s) { s.sealed = 9, s.reads_per_s = 60, s.writes_per_s = 0, s.free_lasts_s = 60; });
  const auto brings = [&](RollbackPolicy policy) { return next_rollback(state, policy); };
  EXPECT_EQ(brings(RollbackPolicy::adaptive), kAllGenerations);
  EXPECT_EQ(brings(RollbackPolicy::eager), kAllGenerations);
  state.last_took_s = 1;
  state.since_last_rollback_s = 2;
  EXPECT_EQ(brings(RollbackPolicy::adaptive), 0U) << "a rest of three times as long";
  EXPECT_EQ(brings(RollbackPolicy::eager), kAllGenerations);
  state.since_last_rollback_s = 3;
  EXPECT_EQ(brings(RollbackPolicy::adaptive), kAllGenerations);
  state.since_last_rollback_s = 0;
  state.share_used = 0.7;
  EXPECT_EQ(brings(RollbackPolicy::adaptive), 0U) << "nothing fills it further";
  state.writes_per_s = 100;
  EXPECT_EQ(brings(RollbackPolicy::adaptive), 1U) << "before it is full";
  state.share_used = 0;
  EXPECT_EQ(brings(RollbackPolicy::adaptive), kAllGenerations) << "beside writes nothing rests, nearly full or not";
  state.writes_per_s = 0;
  EXPECT_EQ(brings(RollbackPolicy::adaptive), 0U);
  state.reads_per_s = 0;
  EXPECT_EQ(brings(RollbackPolicy::adaptive), kAllGenerations) << "readers may come";
}

TEST(Policy, BringsBackNothingFromAnEmptyStore) {
  RollbackState empty{.rollback_requested = true, .spill_full = true, .idle_s = 100, .l0_room = 10};
  expect_steps({{"empty", empty, false, false, false, false}});
  empty.live_bytes = 2;  // of a range tombstone
  expect_steps({{"a deleted range", empty, true, true, true, true}});
}

}  // namespace
}  // namespace spillway::spill
