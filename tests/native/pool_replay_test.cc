// Traces and their replay: distributions against their formulas, and the pool's times against the drive's.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "device/emulated/emulated.h"
#include "device_small_drive.h"
#include "pool/replay.h"
#include "pool/trace.h"

namespace spillway::pool {
namespace {

// Chi-square of the draws against rank^-theta, over its degrees of freedom.
double misfit(std::uint64_t n, double theta, int draws) {
  const Zipf zipf(n, theta);
  ssd::Random random(3);
  std::vector<double> seen(n + 1);
  for (int i = 0; i < draws; ++i) {
    const std::uint64_t rank = zipf(random);
    EXPECT_TRUE(rank >= 1 && rank <= n);
    ++seen[rank];
  }
  double whole = 0;
  for (std::uint64_t rank = 1; rank <= n; ++rank) whole += std::pow(static_cast<double>(rank), -theta);
  double sum = 0;
  for (std::uint64_t rank = 1; rank <= n; ++rank) {
    const double wanted = draws * std::pow(static_cast<double>(rank), -theta) / whole;
    sum += (seen[rank] - wanted) * (seen[rank] - wanted) / wanted;
  }
  return sum / static_cast<double>(n - 1);
}

// With 49 degrees of freedom, chi-square / 49 is above 1.75 once in a thousand times; the seed is fixed.
TEST(Zipf, DrawsRanksInProportion) {
  for (const double theta : {0.0, 0.5, 0.99, 1.0, 1.5}) EXPECT_LT(misfit(50, theta, 100000), 1.75) << theta;
}

TEST(Trace, ReadsAndWritesComeInTheirShares) {
  for (const Pattern pattern : {Pattern::uniform, Pattern::zipfian, Pattern::sequential}) {
    const auto trace = make_synthetic({pattern, 1000, 0.3, 0.99}, 1);
    int reads = 0;
    for (int i = 0; i < 20000; ++i) {
      const auto reference = trace->next();
      ASSERT_LT(reference->page, 1000U);
      reads += reference->writes ? 0 : 1;
    }
    EXPECT_NEAR(reads / 20000.0, 0.3, 0.01);
  }
}

TEST(Trace, TheMostPopularPageIsAsPopularAsItShouldBe) {
  const auto trace = make_synthetic({Pattern::zipfian, 1000, 0.5, 0.99}, 1);
  std::vector<int> seen(1000);
  for (int i = 0; i < 100000; ++i) ++seen[trace->next()->page];
  double whole = 0;
  for (int rank = 1; rank <= 1000; ++rank) whole += std::pow(rank, -0.99);
  EXPECT_NEAR(*std::max_element(seen.begin(), seen.end()) / 100000.0, 1 / whole, 0.005);
}

TEST(Trace, SequentialBeginsAgainAtItsEnd) {
  const auto trace = make_synthetic({Pattern::sequential, 3, 1, 0}, 1);
  for (const Page page : {0, 1, 2, 0}) EXPECT_EQ(trace->next()->page, page);
}

TEST(Trace, LinesOfAFile) {
  const auto read = parse_trace("# a remark\nr 5\n  w\t7 # and another\r\n\nr 0", "t", 8);
  ASSERT_TRUE(read) << read.status().message();
  ASSERT_EQ(read.value().size(), 3U);
  EXPECT_EQ(read.value()[1].page, 7U);
  EXPECT_TRUE(read.value()[1].writes);
  EXPECT_FALSE(read.value()[2].writes);
}

TEST(Trace, BadLinesAreNamed) {
  const auto said = [](const std::string& text) { return parse_trace(text, "t.txt", 8).status().message(); };
  for (const char* bad : {"x 1", "r", "r one", "r 1 2", "r -1", "r 1.5", "r 99999999999999999999"}) {
    EXPECT_EQ(said(std::string("r 1\n") + bad), "t.txt line 2: not a reference; a line is r PAGE or w PAGE") << bad;
  }
  EXPECT_EQ(said("r 8"),
            "t.txt line 1: page 8 is not below 8, the number of pages; take a larger target or smaller pages");
  EXPECT_EQ(said("# nothing\n"), "t.txt: holds no reference; a line is r PAGE or w PAGE");
  EXPECT_EQ(read_trace("/no/such/trace", 8).status().message(),
            "workload.trace: /no/such/trace cannot be read; name a file of r PAGE and w PAGE");
}

struct Outcome {
  ReplayResult result;
  ssd::Counters drive;
};

Outcome run(std::uint32_t write_back, double read_fraction = 0.5, std::uint64_t seed = 1) {
  ssd::Ssd model(device::small_drive(), 1);
  EXPECT_TRUE(device::prepare(model, {.kind = device::InitialState::Kind::steady, .path = {}}, 1));
  const auto device = device::make_simulated(std::move(model));
  const std::uint64_t pages = device->info().capacity_bytes / 4096;
  BufferPool pool(*device, {4096, pages, 256, write_back, 0}, make_clock_sweep(256, kMostUses));
  const auto trace = make_synthetic({Pattern::uniform, pages, read_fraction, 0}, seed);
  const ssd::Counters before = device->counters();
  auto replayed = replay(*device, pool, *trace, {1024, 8192}, [](std::uint64_t) { return true; });
  EXPECT_TRUE(replayed) << replayed.status().message();
  Outcome outcome{std::move(*replayed), device->counters()};
  outcome.drive.host_bytes_written -= before.host_bytes_written;
  return outcome;
}

TEST(Replay, CountsEveryReference) {
  const ReplayResult result = run(4).result;
  EXPECT_TRUE(result.complete);
  EXPECT_EQ(result.operations, 8192U);
  EXPECT_EQ(result.counters.hits + result.counters.misses, 8192U);
  EXPECT_EQ(result.latency.count(), 8192U);
  EXPECT_EQ(result.miss_latency.count(), result.counters.misses);
  EXPECT_EQ(result.counters.pages_read, result.counters.misses);
  EXPECT_NEAR(static_cast<double>(result.writes) / 8192, 0.5, 0.03);
}

// One thread does one thing at a time: its waits add up to the whole time, and so do the misses' latencies.
TEST(Replay, WaitsAddUpToTheTime) {
  const ReplayResult result = run(4).result;
  EXPECT_EQ(result.counters.read_wait_ns + result.counters.write_wait_ns, result.duration_ns);
  const double latencies = result.latency.mean_ns() * static_cast<double>(result.latency.count());
  EXPECT_NEAR(latencies / static_cast<double>(result.duration_ns), 1.0, 1e-9);
}

TEST(Replay, SameSeedSameTime) {
  EXPECT_EQ(run(4).result.duration_ns, run(4).result.duration_ns);
  EXPECT_NE(run(4).result.duration_ns, run(4, 0.5, 2).result.duration_ns);
}

TEST(Replay, ReadsAloneWriteNothing) {
  const Outcome one = run(1, 1.0);
  const Outcome many = run(16, 1.0);
  EXPECT_EQ(one.drive.host_bytes_written, 0U);
  EXPECT_EQ(one.result.duration_ns, many.result.duration_ns);
}

// The drive has four dies and a cache of at most one page for each: four concurrent writes are faster than four
// successive ones, by the model's clock.
TEST(Replay, ABatchTakesLessThanItsWritesInARow) {
  const ReplayResult one = run(1).result;
  const ReplayResult four = run(4).result;
  EXPECT_LT(four.duration_ns, one.duration_ns);
  EXPECT_LT(four.counters.write_batches, one.counters.write_batches / 3);
  // Some pages of a batch become dirty again before their eviction: never fewer pages are written, and not many more.
  EXPECT_GE(four.counters.pages_written, one.counters.pages_written);
  EXPECT_LT(static_cast<double>(four.counters.pages_written), 1.05 * static_cast<double>(one.counters.pages_written));
}

TEST(Replay, TheWatchEndsIt) {
  ssd::Ssd model(device::small_drive(), 1);
  const auto device = device::make_simulated(std::move(model));
  BufferPool pool(*device, {4096, 64, 8, 1, 0}, make_lru(8));
  const auto trace = make_synthetic({Pattern::uniform, 64, 0.5, 0}, 1);
  const auto result = replay(*device, pool, *trace, {0, 1000000}, [](std::uint64_t done) { return done < 5000; });
  ASSERT_TRUE(result);
  EXPECT_FALSE(result.value().complete);
  EXPECT_LT(result.value().operations, 10000U);
  EXPECT_GE(result.value().operations, 5000U);
}

TEST(Replay, ATraceThatEndsIsComplete) {
  ssd::Ssd model(device::small_drive(), 1);
  const auto device = device::make_simulated(std::move(model));
  BufferPool pool(*device, {4096, 64, 8, 1, 0}, make_lru(8));
  const auto trace = make_recorded({{1, false}, {2, true}, {1, false}});
  const auto result = replay(*device, pool, *trace, {1, 100}, [](std::uint64_t) { return true; });
  ASSERT_TRUE(result);
  EXPECT_TRUE(result.value().complete);
  EXPECT_EQ(result.value().operations, 2U);
  EXPECT_EQ(result.value().counters.hits, 1U);
}

}  // namespace
}  // namespace spillway::pool
