// The same random operations on spillway::DB and on plain RocksDB give the same answers, whatever is diverted and
// whenever it is brought back.
//
// A few seconds with fixed seeds. spill_metamorphic.h says how to run it longer, or with one seed.
#include "spill_metamorphic.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "spill_two_databases.h"
#include "spill_walker.h"

namespace spillway::clients {
namespace {

using rocksdb::ColumnFamilyHandle;
using rocksdb::Iterator;

void expect_same_checkpoints(TwoDatabases& databases) {
  Both<TwoDatabases::Handles> handles;
  const auto copies = databases.open_checkpoints(handles);
  for (std::size_t i = 0; i < handles[kPlain].size() && !::testing::Test::HasFailure(); ++i) {
    expect_same_contents(*copies[kPlain], handles[kPlain][i], *copies[kSpill], handles[kSpill][i]);
  }
  for (const Side side : {kPlain, kSpill}) {
    for (ColumnFamilyHandle* handle : handles[side]) {
      EXPECT_TRUE(copies[side]->DestroyColumnFamilyHandle(handle).ok());
    }
  }
}

// One walker with all operations, or several at once, which do not reopen the databases or change their families.
void run(std::uint64_t seed, int walkers, int steps) {
  SCOPED_TRACE("seed " + std::to_string(seed) + ", walkers " + std::to_string(walkers));
  TwoDatabases databases(seed);
  if (::testing::Test::HasFailure()) return;
  {
    std::vector<std::thread> threads;
    std::optional<RollbackThread> rollback;
    if (seed % 3 != 0) rollback.emplace(databases, seed);
    threads.reserve(static_cast<std::size_t>(walkers));
    for (int i = 0; i < walkers; ++i) {
      threads.emplace_back([&, i] {
        const std::string own = walkers == 1 ? "" : std::to_string(i) + " walks: ";
        Walker(databases, seed + static_cast<std::uint64_t>(i) * 1000, own, walkers == 1).run(steps);
      });
    }
    for (std::thread& one : threads) one.join();
  }
  if (::testing::Test::HasFailure()) return;
  EXPECT_GT(databases.diverted(), 0U);
  for (const Family& each : databases.families()) {
    expect_same_contents(databases.of(kPlain), each.handles[kPlain], databases.of(kSpill), each.handles[kSpill]);
  }
  if (!::testing::Test::HasFailure()) expect_same_checkpoints(databases);
}

TEST(SpillMetamorphic, OneThreadIsAnsweredAsByRocksdb) {
  for_each_seed({.from = 1, .count = 7, .steps = 600}, [](std::uint64_t seed, int steps) { run(seed, 1, steps); });
}

TEST(SpillMetamorphic, ThreadsWithKeysOfTheirOwnAreAnsweredAsByRocksdb) {
  for_each_seed({.from = 1, .count = 2, .steps = 400}, [](std::uint64_t seed, int steps) { run(seed, 3, steps); });
}

}  // namespace
}  // namespace spillway::clients
