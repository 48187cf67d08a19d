#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "load/run_spec.h"

namespace spillway::load {
namespace {

RunSpec good() {
  RunSpec spec;
  PhaseSpec phase;
  phase.name = "load";
  phase.operations = 10;
  spec.phases = {phase};
  return spec;
}

// A second phase, an open loop at the rate of the first.
PhaseSpec& add_open(RunSpec& spec) {
  PhaseSpec open = spec.phases[0];
  open.name = "open";
  open.workload = Workload::overwrite;
  open.operations = 10;
  open.rate_of = "load";
  return spec.phases.emplace_back(open);
}

TEST(LoadRunSpec, FindsNothingWrongWithAGoodOne) {
  EXPECT_EQ(find_problem(good()), "");
  RunSpec spec = good();
  add_open(spec).rate_share = 0.9;
  EXPECT_EQ(find_problem(spec), "");
}

TEST(LoadRunSpec, NamesTheErrorAndItsFix) {
  struct Case {
    std::function<void(RunSpec&)> spoil;
    const char* sentence;
  };
  const std::vector<Case> table = {
      {[](RunSpec& s) { s.pairs.key_bytes = 0; }, "load.key_bytes is 0: choose 1 to 65536"},
      {[](RunSpec& s) { s.pairs.value_bytes = 2'000'000'000; },
       "load.value_bytes is 2000000000: choose at most 1073741824"},
      {[](RunSpec& s) { s.pairs.compression_ratio = 0; },
       "load.compression_ratio is the compressed share of a value: choose a number above 0 and at most 1"},
      {[](RunSpec& s) { s.pairs.compression_ratio = std::nan(""); },
       "load.compression_ratio is the compressed share of a value: choose a number above 0 and at most 1"},
      {[](RunSpec& s) { s.pairs.num = 0; }, "load.num is 0: a run needs at least one key"},
      {[](RunSpec& s) { s.pairs.key_bytes = 2; },
       "load.num is 1000000, but load.key_bytes = 2 has room for 65536 different keys: use longer keys or fewer"},
      {[](RunSpec& s) { s.sample_interval_ns = 1'000'000; }, "sample_interval_ms must be at least 10"},
      {[](RunSpec& s) { s.phases.clear(); }, "phases is empty: a run needs at least one phase"},
      {[](RunSpec& s) { s.phases.push_back(s.phases[0]); },
       "phases[1].name \"load\" is taken by an earlier phase: choose another"},
      {[](RunSpec& s) { s.phases[0].name = ""; }, "phases[0].name is empty: give the phase a name"},
      {[](RunSpec& s) { s.phases[0].threads = 0; }, "phases[0].threads is 0: choose 1 to 1024"},
      {[](RunSpec& s) {
         s.phases[0].workload = Workload::filluniquerandom;
         s.phases[0].threads = 4;
       },
       "phases[0].threads is 4, but filluniquerandom writes each key once and has one thread: set it to 1 or use "
       "fillrandom"},
      {[](RunSpec& s) {
         s.phases[0].workload = Workload::readrandom;
         s.phases[0].operations = std::nullopt;
       },
       "phases[0] has no end: give operations (for each thread) or duration_s"},
      {[](RunSpec& s) { s.phases[0].operations = 0; }, "phases[0].operations is 0: give at least 1"},
      {[](RunSpec& s) { s.phases[0].duration_s = 0; }, "phases[0].duration_s must be above 0 seconds"},
      {[](RunSpec& s) {
         s.phases[0].workload = Workload::fillseq;
         s.phases[0].operations = 1'000'001;
       },
       "phases[0].operations is 1000001, but fillseq writes each of load.num = 1000000 keys once: lower it or raise "
       "load.num"},
      {[](RunSpec& s) { s.phases[0].rate_ops_s = 0; },
       "phases[0].rate_ops_s must be above 0 operations a second; null stands for a closed loop"},
      {[](RunSpec& s) { s.phases[0].rate_ops_s = -5; },
       "phases[0].rate_ops_s must be above 0 operations a second; null stands for a closed loop"},
      {[](RunSpec& s) { s.phases[0].write_rate_ops_s = 5; },
       "phases[0].write_rate_ops_s belongs to readwhilewriting: use rate_ops_s with fillrandom"},
      {[](RunSpec& s) { s.phases[0].seek_nexts = 5; },
       "phases[0].seek_nexts belongs to seekrandom: remove it from fillrandom"},
      {[](RunSpec& s) { s.phases[0].read_write_percent = 101; },
       "phases[0].read_write_percent is above 100: it is the share of reads"},
      {[](RunSpec& s) {
         s.phases[0].workload = Workload::readwhilewriting;
         s.phases[0].operations = 10;
         s.phases[0].read_write_percent = 100;
       },
       "phases[0].read_write_percent of readwhilewriting, which has both, must be above 0 and below 100"},
      {[](RunSpec& s) { s.phases[0].exact_mix = true; },
       "phases[0].exact_mix belongs to readwhilewriting with read_write_percent"},
      {[](RunSpec& s) {
         s.phases[0].workload = Workload::readwhilewriting;
         s.phases[0].exact_mix = true;
       },
       "phases[0].exact_mix belongs to readwhilewriting with read_write_percent"},
      {[](RunSpec& s) {
         s.phases[0].workload = Workload::readwhilewriting;
         s.phases[0].read_write_percent = 10;
         s.phases[0].exact_mix = true;
         s.phases[0].write_rate_ops_s = 5;
       },
       "phases[0].exact_mix and write_rate_ops_s both pace the writer: give one of them"},
      {[](RunSpec& s) { s.phases[0].rate_of = "load"; }, "phases[0].rate_of is \"load\": name a phase before this one"},
      {[](RunSpec& s) { add_open(s).rate_of = "later"; },
       "phases[1].rate_of is \"later\": name a phase before this one"},
      {[](RunSpec& s) { add_open(s).rate_ops_s = 5; },
       "phases[1].rate_of is a rate of its own, at a constant pace: remove rate_ops_s and arrivals"},
      {[](RunSpec& s) { add_open(s).arrivals.emplace().rate_ops_s = 5; },
       "phases[1].rate_of is a rate of its own, at a constant pace: remove rate_ops_s and arrivals"},
      {[](RunSpec& s) { add_open(s).rate_share = 0; }, "phases[1].rate_share must be above 0"},
      {[](RunSpec& s) { add_open(s).rate_share = std::nan(""); }, "phases[1].rate_share must be above 0"},
      {[](RunSpec& s) { add_open(s).workload = Workload::readwhilewriting; },
       "phases[1].rate_of belongs to workloads whose threads all have one rate: remove it from readwhilewriting"},
      {[](RunSpec& s) {
         s.phases[0].workload = Workload::settle;
         s.phases[0].operations = std::nullopt;
         add_open(s);
       },
       "phases[1].rate_of is \"load\", which has no operations: name a phase that has"},
      {[](RunSpec& s) { s.phases[0].workload = Workload::settle; },
       "phases[0]: settle ends by itself; remove operations, duration_s, rate_ops_s and arrivals"},
      {[](RunSpec& s) { s.phases[0].workload = Workload::waitforcompaction; },
       "phases[0]: waitforcompaction ends by itself; remove operations, duration_s, rate_ops_s and arrivals"},
  };
  for (const Case& c : table) {
    RunSpec spec = good();
    c.spoil(spec);
    EXPECT_EQ(find_problem(spec), c.sentence);
  }
}

TEST(LoadRunSpec, FillEndsAfterItsKeysByDefault) {
  RunSpec spec = good();
  spec.phases[0].operations = std::nullopt;
  EXPECT_EQ(find_problem(spec), "");
  EXPECT_EQ(make_thread_specs(spec.phases[0], 77, 1, 0)[0].operations, 77U);
  spec.phases[0].duration_s = 1;
  EXPECT_EQ(make_thread_specs(spec.phases[0], 77, 1, 0)[0].operations, std::nullopt);
}

TEST(LoadRunSpec, LeastLiveBytesFollowFromWhatIsCounted) {
  RunSpec spec = good();
  spec.pairs = {16, 84, 0.5, 1000};
  spec.phases[0].workload = Workload::fillseq;
  spec.phases[0].operations = 1000;
  EXPECT_EQ(least_live_bytes(spec, false), 1000U * 100);
  EXPECT_EQ(least_live_bytes(spec, true), 1000U * 58);
  // 1000 draws from 1000 keys leave a share of 1/e untouched.
  spec.phases[0].workload = Workload::fillrandom;
  EXPECT_NEAR(static_cast<double>(least_live_bytes(spec, false)), 100'000 * (1 - std::exp(-1.0)), 1);
  spec.phases[0].threads = 2;
  EXPECT_NEAR(static_cast<double>(least_live_bytes(spec, false)), 100'000 * (1 - std::exp(-2.0)), 1);
  spec.phases[0].duration_s = 1;
  EXPECT_EQ(least_live_bytes(spec, false), 0U) << "it may end before it has written anything";
  spec.phases[0].workload = Workload::fillseq;
  spec.phases[0].operations.reset();
  spec.phases[0].duration_s.reset();
  spec.pairs.num = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(least_live_bytes(spec, false), std::numeric_limits<std::uint64_t>::max()) << "more than 2^64 bytes";
}

}  // namespace
}  // namespace spillway::load
