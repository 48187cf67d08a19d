// The tuner on made-up counters: what an epoch is, and what is not part of its cost. And a pool that tunes itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "device/emulated/emulated.h"
#include "device_small_drive.h"
#include "pool/replay.h"
#include "pool/trace.h"
#include "pool/write_back_tuner.h"
#include "ssd/structures/random.h"

namespace spillway::pool {
namespace {

// A pool whose write costs 40 us and whose batch of n costs 60 + 10 n; more than `most_useful` written at once are
// written too early, one for each.
struct MadeUpPool {
  PoolCounters counters;
  double reads_per_write = 1;
  std::uint32_t most_useful = 1000;

  void batch(std::uint32_t n, std::uint64_t reads) {
    ++counters.write_batches;
    counters.pages_written += n;
    counters.write_wait_ns += 60'000 + 10'000 * n;
    counters.pages_written_in_vain += n > most_useful ? n - most_useful : 0;
    counters.pages_read += reads;
    counters.read_wait_ns += static_cast<device::Nanos>(reads * 20'000);
  }
  void batch(std::uint32_t n) { batch(n, static_cast<std::uint64_t>(n * reads_per_write)); }
};

std::uint32_t found_by(MadeUpPool& pool, int batches) {
  WriteBackTuner tuner(1, 256);
  for (int i = 0; i < batches; ++i) pool.batch(tuner.next(pool.counters));
  return tuner.held();
}

TEST(WriteBackTuner, AnEpochIsSoManyPagesInSoManyBatches) {
  WriteBackTuner tuner(1, 256);
  MadeUpPool pool;
  std::uint64_t epochs = 0;
  std::uint64_t pages = 0;
  std::uint64_t batches = 0;
  std::uint32_t size = 0;
  for (int i = 0; i < 5000; ++i) {
    const std::uint32_t next = tuner.next(pool.counters);
    if (tuner.epochs() != epochs) {
      EXPECT_GE(pages, 192U);
      EXPECT_GE(batches, 4U);
      EXPECT_TRUE(pages - size < 192 || batches == 4) << "no longer than needed";
      epochs = tuner.epochs();
      pages = batches = 0;
    } else if (batches > 0) {
      EXPECT_EQ(next, size) << "one size in an epoch";
    }
    size = next;
    pool.batch(size);
    pages += size;
    ++batches;
  }
  EXPECT_GT(epochs, 100U);
}

// 30 + 60 / n us: a doubling gains 1 % up to n = 100 or so.
TEST(WriteBackTuner, FindsWhereABatchsOwnCostIsShared) {
  MadeUpPool pool;
  const std::uint32_t found = found_by(pool, 20000);
  EXPECT_GE(found, 48U);
  EXPECT_LE(found, 224U);
}

TEST(WriteBackTuner, PagesWrittenInVainCost) {
  MadeUpPool pool;
  pool.most_useful = 12;
  const std::uint32_t found = found_by(pool, 20000);
  EXPECT_GE(found, 8U);
  EXPECT_LE(found, 16U);
}

// How many of an epoch's victims were dirty is the trace's doing. Epochs of one size that differ by a factor of three
// in it cost the same.
TEST(WriteBackTuner, TheMixOfTheTraceIsInNoComparison) {
  ssd::Random random(5);
  MadeUpPool pool;
  WriteBackTuner tuner(1, 256);
  for (int i = 0; i < 20000; ++i) {
    const std::uint32_t n = tuner.next(pool.counters);
    pool.batch(n, n / 2 + 1 + random.below(n + 1));
  }
  EXPECT_GE(tuner.held(), 16U);
  EXPECT_LE(tuner.held(), 192U);
}

TEST(WriteBackTuner, CountersMayGoBackToZero) {
  MadeUpPool pool;
  WriteBackTuner tuner(1, 256);
  for (int i = 0; i < 20000; ++i) {
    if (i % 1000 == 500) {
      pool.counters = {};
      tuner.restart_epoch();
    }
    pool.batch(tuner.next(pool.counters));
  }
  EXPECT_GT(tuner.epochs(), 100U);
  EXPECT_GE(tuner.held(), 16U);
}

struct Replayed {
  double us_per_operation = 0;
  std::uint32_t write_back = 0;
  PoolCounters counters;
};

Replayed replayed(std::uint32_t write_back, std::uint32_t tune_most, std::uint32_t prefetch = 0) {
  // Eight dies and so much spare flash that garbage collection is not all that writes wait for.
  ssd::SsdConfig config = device::small_drive();
  config.geometry.channels = 4;
  config.capacity.spare_factor = 0.5;
  config.write_cache.bytes = 0;
  ssd::Ssd model(config, 1);
  EXPECT_TRUE(device::prepare(model, {.kind = device::InitialState::Kind::steady, .path = {}}, 1));
  const auto device = device::make_simulated(std::move(model));
  const std::uint64_t pages = device->info().capacity_bytes / 4096;
  PoolSpec spec{4096, pages, 256, write_back, prefetch};
  spec.tune_most = tune_most;
  EXPECT_TRUE(check(spec, device->info()));
  BufferPool pool(*device, spec, make_clock_sweep(256, kMostUses));
  const auto trace = make_synthetic({Pattern::uniform, pages, 0.5, 0}, 1);
  auto result = replay(*device, pool, *trace, {20000, 40000}, [](std::uint64_t) { return true; });
  EXPECT_TRUE(result) << result.status().message();
  return {static_cast<double>(result->duration_ns) / 1e3 / 40000,
          pool.tuner() == nullptr ? write_back : pool.tuner()->held(), result->counters};
}

TEST(WriteBackTuner, APoolThatTunesItselfIsNearTheBestFixedOne) {
  double best = replayed(1, 0).us_per_operation;
  for (const std::uint32_t n : {2U, 4U, 8U, 16U, 32U}) best = std::min(best, replayed(n, 0).us_per_operation);
  const Replayed tuned = replayed(1, 64);
  EXPECT_LT(tuned.us_per_operation, 1.05 * best) << "held " << tuned.write_back;
  EXPECT_GT(tuned.write_back, 1U);
}

TEST(WriteBackTuner, ItStartsWithAsManyAsItPrefetches) {
  const Replayed tuned = replayed(1, 64, /*prefetch=*/7);
  EXPECT_GE(tuned.write_back, 8U);
  EXPECT_GT(tuned.counters.pages_prefetched, 0U);
}

TEST(WriteBackTuner, SameTraceSameSizes) {
  EXPECT_EQ(replayed(1, 64).us_per_operation, replayed(1, 64).us_per_operation);
}

}  // namespace
}  // namespace spillway::pool
