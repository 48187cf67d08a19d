#include <gtest/gtest.h>

#include "engine/rocksdb/stall_timeline.h"

namespace spillway::engine {

// For gtest's messages, and for EXPECT_EQ on lists.
bool operator==(const Stall& a, const Stall& b) {
  return a.begin_ns == b.begin_ns && a.end_ns == b.end_ns && a.state == b.state && a.cause == b.cause;
}
void PrintTo(const Stall& stall, std::ostream* out) {
  *out << stall.begin_ns << ".." << stall.end_ns << " " << name_of(stall.state) << " "
       << RocksdbCause::names[stall.cause];
}

namespace {

using enum StallState;
using Stalls = std::vector<Stall>;

constexpr StallLimits kDefaults = {.soft_pending_bytes = 64ULL << 30, .hard_pending_bytes = 256ULL << 30};

// --- RocksDB's order of checks, stop before delay (K1)

TEST(CauseByLimits, StopsInRocksdbsOrder) {
  EXPECT_EQ(cause_by_limits(stopped, {.immutable_memtables = 2, .l0_files = 36}, kDefaults), RocksdbCause::memtable);
  EXPECT_EQ(cause_by_limits(stopped, {.immutable_memtables = 1, .l0_files = 36}, kDefaults), RocksdbCause::l0);
  EXPECT_EQ(cause_by_limits(stopped, {.l0_files = 35, .pending_compaction_bytes = 256ULL << 30}, kDefaults),
            RocksdbCause::pending_compaction_bytes);
  EXPECT_EQ(cause_by_limits(stopped, {.l0_files = 35}, kDefaults), RocksdbCause::none);
}

TEST(CauseByLimits, DelaysForMemtablesOnlyWhenThereAreMoreThanThree) {
  StallLimits limits = kDefaults;
  limits.max_write_buffer_number = 3;
  EXPECT_EQ(cause_by_limits(delayed, {.immutable_memtables = 2}, limits), RocksdbCause::none);
  limits.max_write_buffer_number = 4;
  EXPECT_EQ(cause_by_limits(delayed, {.immutable_memtables = 3}, limits), RocksdbCause::memtable);
  EXPECT_EQ(cause_by_limits(delayed, {.immutable_memtables = 2}, limits), RocksdbCause::none);
}

TEST(CauseByLimits, DelaysForFilesAndBytes) {
  EXPECT_EQ(cause_by_limits(delayed, {.l0_files = 20}, kDefaults), RocksdbCause::l0);
  EXPECT_EQ(cause_by_limits(delayed, {.l0_files = 19, .pending_compaction_bytes = 64ULL << 30}, kDefaults),
            RocksdbCause::pending_compaction_bytes);
}

TEST(CauseByLimits, WithoutCompactionOnlyMemtablesHoldBack) {
  StallLimits limits = kDefaults;
  limits.compacts = false;
  EXPECT_EQ(cause_by_limits(stopped, {.l0_files = 100}, limits), RocksdbCause::none);
  EXPECT_EQ(cause_by_limits(stopped, {.immutable_memtables = 2, .l0_files = 100}, limits), RocksdbCause::memtable);
}

TEST(CauseByLimits, ALimitOfZeroIsNone) {
  StallLimits limits = kDefaults;
  limits.soft_pending_bytes = 0;
  EXPECT_EQ(cause_by_limits(delayed, {.pending_compaction_bytes = 1ULL << 50}, limits), RocksdbCause::none);
}

TEST(Explain, RocksdbsOwnCountsWinOverSignalsThatMovedOn) {
  StallCounts before;
  StallCounts now;
  now.stopped[static_cast<std::size_t>(RocksdbCause::memtable)] = 1;
  // The flush is over: no memtable is waiting any more, and there are many files.
  const StallCauses causes = explain({.l0_files = 40}, kDefaults, before, now);
  EXPECT_EQ(causes.stopped, RocksdbCause::memtable);
  EXPECT_EQ(causes.delayed, RocksdbCause::l0);  // not counted, so the limits decide
}

TEST(Explain, SignalsChooseAmongSeveralThatCounted) {
  StallCounts now;
  now.stopped[static_cast<std::size_t>(RocksdbCause::memtable)] = 1;
  now.stopped[static_cast<std::size_t>(RocksdbCause::l0)] = 1;
  EXPECT_EQ(explain({.l0_files = 40}, kDefaults, {}, now).stopped, RocksdbCause::l0);
}

// --- The timeline

constexpr StallCauses kMemtable = {.delayed = RocksdbCause::memtable, .stopped = RocksdbCause::memtable};
constexpr StallCauses kL0 = {.delayed = RocksdbCause::l0, .stopped = RocksdbCause::l0};

TEST(StallTimeline, InOrder) {
  StallTimeline timeline;
  timeline.seen(100, delayed, kL0, normal);
  timeline.seen(200, stopped, kL0, delayed);
  timeline.seen(300, normal, {}, stopped);
  EXPECT_EQ(timeline.stalls(400),
            (Stalls{{100, 200, delayed, RocksdbCause::l0}, {200, 300, stopped, RocksdbCause::l0}}));
}

TEST(StallTimeline, OneInProgressEndsNow) {
  StallTimeline timeline;
  timeline.seen(100, stopped, kL0);
  EXPECT_EQ(timeline.stalls(170), (Stalls{{100, 170, stopped, RocksdbCause::l0}}));
  EXPECT_EQ(timeline.stalls(180), (Stalls{{100, 180, stopped, RocksdbCause::l0}}));
}

// The order observed on 7.8.3: the writer stops itself when it seals a memtable, the flush thread reports the end, and
// only then the continuing writer reports the beginning.
TEST(StallTimeline, AStopReportedAfterItsEndBeganWhenTheMemtableWasSealed) {
  StallTimeline timeline;
  timeline.sealed(100);
  timeline.seen(300, normal, kMemtable, stopped);
  timeline.seen(310, normal, kMemtable, normal);  // the late "normal → stopped": the current state is normal
  EXPECT_EQ(timeline.state(), normal);
  EXPECT_EQ(timeline.stalls(400), (Stalls{{100, 300, stopped, RocksdbCause::memtable}}));
}

TEST(StallTimeline, APollDuringSuchAStopSeesIt) {
  StallTimeline timeline;
  timeline.sealed(100);
  timeline.seen(150, stopped, kMemtable);
  EXPECT_EQ(timeline.state(), stopped);
  EXPECT_EQ(timeline.cause(), RocksdbCause::memtable);
  timeline.seen(300, normal, {}, stopped);
  timeline.seen(310, normal, {}, normal);
  EXPECT_EQ(timeline.stalls(400), (Stalls{{100, 300, stopped, RocksdbCause::memtable}}));
}

TEST(StallTimeline, StallsForFilesDoNotReachBackToTheLastSeal) {
  StallTimeline timeline;
  timeline.sealed(100);
  timeline.seen(900, delayed, kL0, normal);
  EXPECT_EQ(timeline.stalls(1000), (Stalls{{900, 1000, delayed, RocksdbCause::l0}}));
}

TEST(StallTimeline, ALateNotificationDoesNotCountAStallTwice) {
  StallTimeline timeline;
  timeline.sealed(100);
  timeline.seen(300, normal, kMemtable, stopped);
  timeline.seen(320, normal, kMemtable, stopped);
  EXPECT_EQ(timeline.stalls(400), (Stalls{{100, 300, stopped, RocksdbCause::memtable}}));
}

TEST(StallTimeline, ACauseThatChangesDuringAStallSplitsIt) {
  StallTimeline timeline;
  timeline.seen(100, delayed, kL0);
  timeline.seen(200, delayed, {.delayed = RocksdbCause::pending_compaction_bytes, .stopped = RocksdbCause::none});
  timeline.seen(250, delayed, {});  // no explanation means no change
  timeline.seen(300, normal, {});
  EXPECT_EQ(timeline.stalls(400), (Stalls{{100, 200, delayed, RocksdbCause::l0},
                                          {200, 300, delayed, RocksdbCause::pending_compaction_bytes}}));
}

TEST(StallTimeline, ALateNotificationDoesNotCutAStallInTwo) {
  StallTimeline timeline;
  timeline.seen(100, delayed, kL0);
  timeline.seen(200, delayed, kL0, stopped);
  timeline.seen(300, normal, {}, delayed);
  EXPECT_EQ(timeline.stalls(400), (Stalls{{100, 300, delayed, RocksdbCause::l0}}));
}

}  // namespace
}  // namespace spillway::engine
