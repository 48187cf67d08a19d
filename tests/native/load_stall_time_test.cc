#include <gtest/gtest.h>

#include <vector>

#include "engine/rocksdb/stall_timeline.h"
#include "load/stall_time.h"

namespace spillway::load {
namespace {

using engine::RocksdbCause;
using engine::Stall;
using engine::StallState;

constexpr auto kDelayed = StallState::delayed;
constexpr auto kStopped = StallState::stopped;
constexpr auto kMemtable = RocksdbCause::memtable;
constexpr auto kL0 = RocksdbCause::l0;
constexpr auto kPending = RocksdbCause::pending_compaction_bytes;

struct Case {
  const char* what;
  std::vector<Stall> stalls;
  std::int64_t begin_ns;
  std::int64_t end_ns;
  std::int64_t memtable_ns;
  std::int64_t l0_ns;
  std::int64_t pending_ns;
  std::uint64_t begun;
};

TEST(LoadStallTime, IsThePartWithinTheInterval) {
  const std::vector<Case> table = {
      {"no stalls", {}, 0, 100, 0, 0, 0, 0},
      {"inside", {{20, 50, kDelayed, kL0}}, 0, 100, 0, 30, 0, 1},
      {"before", {{20, 50, kDelayed, kL0}}, 50, 100, 0, 0, 0, 0},
      {"after", {{100, 150, kDelayed, kL0}}, 0, 100, 0, 0, 0, 0},
      {"reaches in", {{20, 150, kStopped, kMemtable}}, 100, 200, 50, 0, 0, 0},
      {"reaches out", {{180, 250, kStopped, kMemtable}}, 100, 200, 20, 0, 0, 1},
      {"all of it", {{0, 1000, kStopped, kPending}}, 100, 200, 0, 0, 100, 0},
      {"one after another",
       {{0, 40, kDelayed, kL0}, {40, 60, kStopped, kL0}, {60, 90, kDelayed, kPending}},
       10,
       80,
       0,
       50,
       20,
       2},
      {"an overlap counts for the first",
       {{0, 50, kDelayed, kL0}, {30, 80, kStopped, kMemtable}},
       0,
       100,
       30,
       50,
       0,
       2},
      {"one within another counts once", {{0, 90, kDelayed, kL0}, {30, 40, kStopped, kMemtable}}, 0, 100, 0, 90, 0, 2},
      {"normal is no stall", {{0, 90, StallState::normal, RocksdbCause::none}}, 0, 100, 0, 0, 0, 0},
      {"an empty interval", {{0, 90, kDelayed, kL0}}, 50, 50, 0, 0, 0, 0},
  };
  for (const Case& c : table) {
    const StallTime time = stall_time_within(c.stalls, c.begin_ns, c.end_ns);
    EXPECT_EQ(time.of(kMemtable), c.memtable_ns) << c.what;
    EXPECT_EQ(time.of(kL0), c.l0_ns) << c.what;
    EXPECT_EQ(time.of(kPending), c.pending_ns) << c.what;
    EXPECT_EQ(time.total_ns(), c.memtable_ns + c.l0_ns + c.pending_ns) << c.what;
    EXPECT_EQ(time.begun, c.begun) << c.what;
  }
}

TEST(LoadStallTime, OfConsecutiveIntervalsAddsUpToTheWhole) {
  const std::vector<Stall> stalls = {
      {5, 47, kDelayed, kL0}, {47, 48, kStopped, kMemtable}, {60, 333, kDelayed, kPending}};
  StallTime parts;
  for (std::int64_t at = 0; at < 400; at += 7) parts.add(stall_time_within(stalls, at, at + 7));
  const StallTime whole = stall_time_within(stalls, 0, 406);
  EXPECT_EQ(parts.ns, whole.ns);
  EXPECT_EQ(parts.begun, whole.begun);
  EXPECT_EQ(whole.total_ns(), 42 + 1 + 273);
}

}  // namespace
}  // namespace spillway::load
