#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "load/client/pairs.h"
#include "load/live_keys.h"
#include "load/workload.h"

namespace spillway::load {
namespace {

using Kind = Operation::Kind;

ThreadSpec plan_of(Pattern pattern, std::uint64_t seed = 3) {
  ThreadSpec thread_spec;
  thread_spec.pattern = pattern;
  thread_spec.seed = seed;
  return thread_spec;
}

std::vector<std::uint64_t> keys_of(const ThreadSpec& thread_spec, std::uint64_t num, std::uint64_t count) {
  OperationStream stream(thread_spec, num, 90);
  std::vector<std::uint64_t> keys;
  for (std::uint64_t i = 0; i < count; ++i) keys.push_back(stream.next().key);
  return keys;
}

// Chi-square of counts against equal shares, in standard deviations from its mean (k - 1 degrees of freedom).
double chi_square_deviation(const std::vector<std::uint64_t>& counts) {
  double sum = 0;
  for (const std::uint64_t count : counts) sum += static_cast<double>(count);
  const double expected = sum / static_cast<double>(counts.size());
  double chi_square = 0;
  for (const std::uint64_t count : counts) {
    chi_square += (static_cast<double>(count) - expected) * (static_cast<double>(count) - expected) / expected;
  }
  const auto freedom = static_cast<double>(counts.size() - 1);
  return (chi_square - freedom) / std::sqrt(2 * freedom);
}

TEST(LoadKeys, NumberIsBigEndianInTheFirstEightBytesAndTheRestIsPadded) {
  KeyBuffer key(16);
  EXPECT_EQ(key.key(0x0102030405060708), std::string("\x01\x02\x03\x04\x05\x06\x07\x08", 8) + "00000000");
  EXPECT_EQ(key.key(0), std::string(8, '\0') + "00000000");
  KeyBuffer brief(3);
  EXPECT_EQ(brief.key(0x010203), std::string("\x01\x02\x03", 3));
  KeyBuffer exact(8);
  EXPECT_EQ(exact.key(1), std::string("\0\0\0\0\0\0\0\x01", 8));
}

TEST(LoadKeys, OrderOfKeysIsTheOrderOfNumbers) {
  KeyBuffer a(20);
  KeyBuffer b(20);
  for (const std::uint64_t number : {0ULL, 1ULL, 255ULL, 256ULL, 65'535ULL, 1ULL << 40}) {
    EXPECT_LT(a.key(number), b.key(number + 1));
  }
}

TEST(LoadKeys, UniformKeysFillEveryPartOfTheRangeAlike) {
  constexpr std::uint64_t kNum = 1'000'003;  // not a power of two
  std::vector<std::uint64_t> counts(1000);
  for (const std::uint64_t key : keys_of(plan_of(Pattern::put_uniform), kNum, 1'000'000)) {
    ASSERT_LT(key, kNum);
    ++counts[key * counts.size() / kNum];
  }
  EXPECT_LT(std::abs(chi_square_deviation(counts)), 5);
}

TEST(LoadKeys, InsertsToComeAreManyWhereMoreAreAskedForThanCanBeCounted) {
  PhaseSpec phase;
  phase.workload = Workload::ycsb_run;
  phase.threads = 4;
  phase.ycsb.emplace();
  phase.ycsb->insertproportion = 1;
  std::uint64_t last = 0;
  for (const int bits : {10, 40, 59, 62, 63}) {
    phase.operations = std::uint64_t{1} << bits;
    const std::uint64_t expected = make_thread_specs(phase, 1, 1, 0).front().requester.expected_inserts;
    EXPECT_EQ(expected, std::uint64_t{1} << std::min(bits + 3, 62)) << bits;  // four threads' operations, twice
    EXPECT_GE(expected, last);
    last = expected;
  }
}

TEST(LoadKeys, ThreadsAndPhasesDrawDifferentKeysAndOneSeedAlwaysTheSame) {
  PhaseSpec phase;
  phase.workload = Workload::overwrite;
  phase.threads = 2;
  const auto first = make_thread_specs(phase, 1000, 1, 0);
  const auto again = make_thread_specs(phase, 1000, 1, 0);
  const auto next_phase = make_thread_specs(phase, 1000, 1, 1);
  const auto other_seed = make_thread_specs(phase, 1000, 2, 0);
  const auto keys = keys_of(first[0], 1000, 50);
  EXPECT_EQ(keys, keys_of(again[0], 1000, 50));
  EXPECT_NE(keys, keys_of(first[1], 1000, 50));
  EXPECT_NE(keys, keys_of(next_phase[0], 1000, 50));
  EXPECT_NE(keys, keys_of(other_seed[0], 1000, 50));
}

TEST(LoadKeys, UniqueRandomIsABijectionAtEverySize) {
  for (const std::uint64_t num : {1ULL, 2ULL, 3ULL, 7ULL, 64ULL, 100ULL, 1023ULL, 1025ULL, 100'000ULL}) {
    auto keys = keys_of(plan_of(Pattern::put_unique), num, num);
    std::sort(keys.begin(), keys.end());
    for (std::uint64_t i = 0; i < num; ++i) ASSERT_EQ(keys[i], i) << "num = " << num;
  }
}

TEST(LoadKeys, UniqueRandomIsInNoOrder) {
  constexpr std::uint64_t kNum = 1'000'000;
  const auto keys = keys_of(plan_of(Pattern::put_unique), kNum, kNum);
  // Each tenth of the sequence visits every hundredth of the range equally often. Neighbours are a third of the range
  // apart on average, like two independent draws.
  std::vector<std::uint64_t> counts(100);
  for (std::uint64_t i = 0; i < kNum / 10; ++i) ++counts[keys[i] * counts.size() / kNum];
  EXPECT_LT(chi_square_deviation(counts), 5);
  double distance = 0;
  for (std::uint64_t i = 1; i < kNum; ++i) {
    distance += std::abs(static_cast<double>(keys[i]) - static_cast<double>(keys[i - 1]));
  }
  EXPECT_NEAR(distance / (kNum - 1.0) / kNum, 1.0 / 3, 0.005);
}

TEST(LoadWorkload, NamesAreThoseOfDbBenchBothWays) {
  for (const std::string& name : workload_names()) {
    const auto workload = parse_workload(name);
    ASSERT_TRUE(workload) << name;
    EXPECT_EQ(name_of(*workload), name);
  }
  for (const char* name : {"fillseq", "fillrandom", "filluniquerandom", "overwrite", "readrandom", "seekrandom",
                           "readwhilewriting", "waitforcompaction"}) {
    EXPECT_TRUE(parse_workload(name)) << name;
  }
  EXPECT_FALSE(parse_workload("fillrandum"));
}

TEST(LoadWorkload, SequentialThreadsEachWriteEveryKey) {
  PhaseSpec phase;
  phase.workload = Workload::fillseq;
  phase.threads = 3;
  phase.duration_s = 10;
  const auto thread_specs = make_thread_specs(phase, 5, 1, 0);
  ASSERT_EQ(thread_specs.size(), 3U);
  for (const ThreadSpec& thread_spec : thread_specs) {
    EXPECT_EQ(thread_spec.operations, 5U) << "a duration does not make it begin again";
    EXPECT_EQ(keys_of(thread_spec, 5, 5), (std::vector<std::uint64_t>{0, 1, 2, 3, 4}));
  }
}

TEST(LoadWorkload, ReadWhileWritingHasOneWriterMoreWhichEndsWithTheReaders) {
  PhaseSpec phase;
  phase.workload = Workload::readwhilewriting;
  phase.threads = 2;
  phase.operations = 10;
  phase.write_rate_ops_s = 500;
  const auto thread_specs = make_thread_specs(phase, 100, 1, 0);
  ASSERT_EQ(thread_specs.size(), 3U);
  for (std::size_t i = 0; i < thread_specs.size(); ++i) {
    OperationStream stream(thread_specs[i], 100, 90);
    EXPECT_EQ(stream.next().kind, i == 2 ? Kind::put : Kind::get);
    EXPECT_EQ(thread_specs[i].background, i == 2);
  }
  EXPECT_EQ(thread_specs[2].operations, std::nullopt);
  ASSERT_TRUE(thread_specs[2].arrivals);
  EXPECT_EQ(thread_specs[2].arrivals->rate_ops_s, 500);
  EXPECT_EQ(thread_specs[2].threads, 1U);
  EXPECT_FALSE(thread_specs[0].arrivals);
}

TEST(LoadWorkload, MixKeepsItsShareInEveryHundred) {
  OperationStream stream(plan_of(Pattern::mixed_uniform), 1000, 70);
  for (int hundred = 0; hundred < 3; ++hundred) {
    int gets = 0;
    for (int i = 0; i < 100; ++i) gets += stream.next().kind == Kind::get ? 1 : 0;
    EXPECT_EQ(gets, 70);
  }
}

TEST(LoadWorkload, RateIsSharedAndThreadsTakeTurns) {
  PhaseSpec phase;
  phase.workload = Workload::fillrandom;
  phase.threads = 4;
  phase.operations = 1;
  phase.rate_ops_s = 1000;
  const auto thread_specs = make_thread_specs(phase, 100, 1, 0);
  ASSERT_EQ(thread_specs.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(thread_specs[i].arrivals);
    EXPECT_EQ(thread_specs[i].arrivals->rate_ops_s, 1000) << "of all, who take turns";
    EXPECT_EQ(thread_specs[i].thread, i);
    EXPECT_EQ(thread_specs[i].threads, 4U);
  }
}

double deflated_share(const std::string& bytes) {
  auto size = ::compressBound(bytes.size());
  std::string out(size, '\0');
  const int code = ::compress2(reinterpret_cast<Bytef*>(out.data()), &size,
                               reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(), 6);
  EXPECT_EQ(code, Z_OK);
  return static_cast<double>(size) / static_cast<double>(bytes.size());
}

// As many values as an sst_block of a table would hold, without keys, because they depend on the workload.
std::string values_in_a_block(const PairSpec& pairs, std::uint64_t seed) {
  const ValueBuffer buffer(pairs, seed);
  std::string block;
  for (std::uint64_t i = 0; i < buffer.values() && block.size() < 16'384; ++i) block += buffer.value(i);
  return block;
}

// A compressor adds its headers and one reference for each repetition to the requested ratio: at most 0.06 for values
// of 100 bytes (about 5 bytes per value), at most 0.015 for values of 1000 bytes and more.
TEST(LoadValues, CompressToTheRatioAskedFor) {
  struct Case {
    std::uint32_t value_bytes;
    double most_above;
  };
  for (const Case& c : {Case{100, 0.06}, Case{128, 0.06}, Case{1000, 0.015}, Case{4096, 0.015}, Case{5000, 0.015},
                        Case{65'536, 0.015}, Case{200'000, 0.015}}) {
    for (const double ratio : {0.25, 0.5, 0.75, 1.0}) {
      const PairSpec pairs{16, c.value_bytes, ratio, 1};
      const double share = deflated_share(values_in_a_block(pairs, 9));
      EXPECT_GE(share, ratio - 0.005) << c.value_bytes << " bytes at " << ratio;
      EXPECT_LE(share, ratio + c.most_above) << c.value_bytes << " bytes at " << ratio;
    }
  }
}

TEST(LoadValues, BufferIsFilledAndItsValuesDiffer) {
  const ValueBuffer buffer({16, 100, 0.5, 1}, 9);
  std::set<std::string> different;
  for (std::uint64_t i = 0; i < buffer.values(); ++i) {
    ASSERT_EQ(buffer.value(i).size(), 100U);
    different.insert(std::string(buffer.value(i)));
  }
  EXPECT_EQ(different.size(), buffer.values());
}

TEST(LoadValues, EmptyValuesAreValuesToo) {
  const ValueBuffer buffer({16, 0, 0.5, 1}, 9);
  EXPECT_GT(buffer.values(), 0U);
  EXPECT_TRUE(buffer.value(buffer.values() - 1).empty());
}

TEST(LoadLiveKeys, CountsDistinctKeysOfAllThreadsExactly) {
  constexpr std::uint64_t kNum = 10'000;
  LiveKeys live(kNum);
  std::set<std::uint64_t> expected;
  for (const std::uint64_t seed : {1, 2, 3}) {
    live.replay(plan_of(Pattern::put_uniform, seed), kNum, 90, 4000);
    for (const std::uint64_t key : keys_of(plan_of(Pattern::put_uniform, seed), kNum, 4000)) expected.insert(key);
  }
  EXPECT_TRUE(live.is_exact());
  EXPECT_EQ(live.count(), expected.size());
  live.replay(plan_of(Pattern::get_uniform, 4), kNum, 90, 4000);
  EXPECT_EQ(live.count(), expected.size()) << "reads make nothing live";
  live.replay(plan_of(Pattern::put_sequential), kNum, 90, kNum);
  EXPECT_EQ(live.count(), kNum);
}

TEST(LoadLiveKeys, EstimatesBeyondItsBits) {
  constexpr std::uint64_t kNum = 1'000'000;
  LiveKeys live(kNum, 10'000);
  live.replay(plan_of(Pattern::put_uniform), kNum, 90, kNum);
  EXPECT_FALSE(live.is_exact());
  // num (1 - 1/e); the estimate's standard deviation is below 0.5 % of num with 10 000 tracked keys.
  EXPECT_NEAR(static_cast<double>(live.count()), kNum * (1 - std::exp(-1.0)), 0.02 * kNum);
}

}  // namespace
}  // namespace spillway::load
