#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "engine/rocksdb/stall_timeline.h"
#include "load/run.h"
#include "load/sample_times.h"
#include "load_fakes.h"

namespace spillway::load {
namespace {

using testing::CountingDevice;
using testing::FakeEngine;

// Records its calls, and may act on them.
class Notes final : public RunListener {
 public:
  struct SampleNote {
    std::string phase;
    Sample sample;
    Tally tally;
  };
  std::function<void()> at_progress = [] {};
  std::vector<SampleNote> samples;
  std::vector<PhaseReport> phases;
  std::vector<engine::Stall> stalls;
  std::vector<engine::Event> events;
  std::vector<Progress> progress;

  void on_progress(const Progress& told) override {
    progress.push_back(told);
    at_progress();
  }
  void on_sample(const PhaseSpec& phase, const Sample& sample) override {
    samples.push_back({phase.name, sample, *sample.tally});
  }
  void on_stall(const engine::Stall& stall) override { stalls.push_back(stall); }
  void on_event(const engine::Event& event) override { events.push_back(event); }
  void on_phase(const PhaseReport& report) override { phases.push_back(report); }
};

class LoadRun : public ::testing::Test {
 protected:
  LoadRun() {
    spec_.pairs = {16, 100, 0.5, 500};
    spec_.sample_interval_ns = 10'000'000;
    device_.counting = [this] {
      ssd::Counters counters;
      counters.host_bytes_written = 1000 * ++looks_;
      counters.nand_bytes_programmed = {1000 * looks_, 500 * looks_, 0, 0};
      return counters;
    };
  }

  PhaseSpec& add(const std::string& name, Workload workload) {
    PhaseSpec phase;
    phase.name = name;
    phase.workload = workload;
    if (!is_wait(workload)) phase.operations = 300;
    spec_.phases.push_back(phase);
    return spec_.phases.back();
  }

  Result<RunReport> run() {
    EXPECT_EQ(find_problem(spec_), "");
    return load::run(spec_, {engine_, &device_, [] { return std::uint64_t{4096}; }}, clock_, stop_, notes_);
  }

  FakeEngine engine_;
  CountingDevice device_;
  SteadyClock clock_;
  std::atomic<bool> stop_{false};
  Notes notes_;
  RunSpec spec_;
  std::uint64_t looks_ = 0;
};

TEST(LoadSampleTimes, AreEveryIntervalFromThePhasesBegin) {
  SampleTimes times(1000, 100, kNever);
  EXPECT_EQ(times.next_ns(), 1100);
  times.pass(1103);
  EXPECT_EQ(times.next_ns(), 1200) << "a late sample does not shift those that follow";
  times.pass(1450);
  EXPECT_EQ(times.next_ns(), 1500) << "what was missed is not made up for";
  times.pass(1500);
  EXPECT_EQ(times.next_ns(), 1600);
}

TEST(LoadSampleTimes, GiveWayToTheEndOfAPhase) {
  for (const std::int64_t deadline_ns : {1260, 1300, 1340}) {
    SampleTimes times(1000, 100, deadline_ns);
    times.pass(1200);
    EXPECT_EQ(times.next_ns(), deadline_ns + 50) << "only when an operation holds the phase's end up";
    times.pass(deadline_ns + 50);
    EXPECT_EQ(times.next_ns(), 1400);
  }
  SampleTimes times(1000, 100, 1250);
  times.pass(1100);
  EXPECT_EQ(times.next_ns(), 1200) << "half an interval before the end there is one";
}

TEST_F(LoadRun, SamplesOfAPhaseAddUpToIt) {
  engine_.before = [](std::uint64_t) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    return Status::ok();
  };
  add("fill", Workload::fillrandom).threads = 3;
  add("read", Workload::readrandom).threads = 2;
  auto report = run();
  ASSERT_TRUE(report);
  ASSERT_EQ(notes_.phases.size(), 2U);
  EXPECT_EQ(notes_.phases[0].totals.tally.writes(), 900U);
  EXPECT_EQ(notes_.phases[1].totals.tally.reads(), 600U);
  EXPECT_GT(notes_.samples.size(), 2U) << "more than the ends of the phases";

  std::int64_t end_ns = 0;
  for (const auto& note : notes_.samples) {
    EXPECT_EQ(note.sample.begin_ns, end_ns) << "samples are contiguous";
    EXPECT_GT(note.sample.end_ns, note.sample.begin_ns);
    end_ns = note.sample.end_ns;
  }
  for (const PhaseReport& phase : notes_.phases) {
    Totals sums;
    for (const auto& note : notes_.samples) {
      if (note.phase != phase.phase->name) continue;
      sums.tally.merge(note.tally);
      sums.duration_ns += note.sample.end_ns - note.sample.begin_ns;
      sums.drive = sum(sums.drive, note.sample.drive->growth);
      sums.cpu_s += note.sample.cpu_s;
    }
    EXPECT_EQ(sums.tally.reads(), phase.totals.tally.reads());
    EXPECT_EQ(sums.tally.writes(), phase.totals.tally.writes());
    EXPECT_EQ(sums.tally.pairs_read, phase.totals.tally.pairs_read);
    EXPECT_EQ(sums.tally.not_found, phase.totals.tally.not_found);
    EXPECT_EQ(sums.tally.read_latency.max_ns(), phase.totals.tally.read_latency.max_ns());
    EXPECT_EQ(sums.duration_ns, phase.totals.duration_ns);
    EXPECT_EQ(sums.drive.host_bytes_written, phase.totals.drive.host_bytes_written);
    EXPECT_DOUBLE_EQ(sums.cpu_s, phase.totals.cpu_s);
  }
  EXPECT_TRUE(report->complete);
  EXPECT_EQ(report->live_keys, engine_.live());
  // The drive's counter grows by 1000 bytes with each reading, the first of which is before the run.
  EXPECT_EQ(report->measured.drive.host_bytes_written, 1000 * (looks_ - 1));
}

TEST_F(LoadRun, OnlyMeasuredPhasesAreInTheResult) {
  add("fill", Workload::fillseq).measured = false;
  add("wait", Workload::waitforcompaction).measured = false;
  add("again", Workload::overwrite);
  auto report = run();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->measured.tally.writes(), 300U);
  EXPECT_EQ(report->measured.duration_ns, notes_.phases[2].totals.duration_ns);
  EXPECT_EQ(engine_.waits(), 1U);
  EXPECT_EQ(engine_.puts(), 600U);
  EXPECT_EQ(report->live_keys, engine_.live()) << "keys of phases that are not measured live too";
}

TEST_F(LoadRun, TheWriterEndsWithTheReaders) {
  add("fill", Workload::fillseq);
  add("both", Workload::readwhilewriting).threads = 2;
  auto report = run();
  ASSERT_TRUE(report);
  EXPECT_EQ(notes_.phases[1].totals.tally.reads(), 600U);
  EXPECT_EQ(notes_.phases[1].totals.tally.writes() + 300, engine_.puts());
  EXPECT_EQ(report->live_keys, engine_.live());
}

TEST_F(LoadRun, ReadersKeepToTheirShareOfTheMix) {
  add("fill", Workload::fillseq);
  PhaseSpec& both = add("both", Workload::readwhilewriting);
  both.threads = 2;
  both.operations = 10;
  both.read_write_percent = 20;
  auto report = run();
  ASSERT_TRUE(report);
  const Tally& tally = notes_.phases[1].totals.tally;
  EXPECT_EQ(tally.reads(), 20U);
  // A reader begins its tenth read when the writer has done more than 9 / (20 / 80 / 2 readers) puts.
  EXPECT_GT(tally.writes(), 72U);
}

// Whichever side is the slow one: the other waits for it.
TEST_F(LoadRun, AnExactMixHasItsShareWhoeverIsSlow) {
  for (const bool slow_reads : {true, false}) {
    SCOPED_TRACE(slow_reads ? "slow reads" : "slow writes");
    FakeEngine engine;
    engine.before_get = [&] {
      if (slow_reads) std::this_thread::sleep_for(std::chrono::microseconds(200));
    };
    engine.before_put = [&] {
      if (!slow_reads) std::this_thread::sleep_for(std::chrono::microseconds(20));
    };
    spec_.phases.clear();
    PhaseSpec& both = add("both", Workload::readwhilewriting);
    both.threads = 3;
    both.operations = 1000;
    both.read_write_percent = 10;
    both.exact_mix = true;
    Notes notes;
    auto report = load::run(spec_, {engine, &device_, [] { return std::uint64_t{4096}; }}, clock_, stop_, notes);
    ASSERT_TRUE(report);
    const Tally& tally = notes.phases[0].totals.tally;
    EXPECT_EQ(tally.reads(), 3000U);
    // 27,000 writes belong to them. Readers that share a limit pass it by one each; the writer leads by 2000 at most,
    // and one that is in flight.
    EXPECT_GE(tally.writes(), 27'000U - 4 * 9);
    EXPECT_LE(tally.writes(), 29'001U);
  }
}

TEST_F(LoadRun, AnExactMixEndsWithItsTime) {
  PhaseSpec& both = add("both", Workload::readwhilewriting);
  both.threads = 8;
  both.operations = std::nullopt;
  both.duration_s = 0.2;
  both.read_write_percent = 50;
  both.exact_mix = true;
  ASSERT_TRUE(run());
  const Tally& tally = notes_.phases[0].totals.tally;
  EXPECT_GT(tally.reads(), 0U);
  EXPECT_LE(tally.writes(), tally.reads() + 2001);
}

// One of four readers is slow. The others do its share, so the mix goes on at their speed.
TEST_F(LoadRun, ASlowReaderHoldsNoOtherUpInAnExactMix) {
  std::atomic<int> gets{0};
  std::atomic<int> puts{0};
  std::atomic<bool> is_over{false};
  engine_.before_get = [&] {
    if (gets++ > 0) return;
    while (!is_over) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  engine_.before_put = [&] { ++puts; };
  PhaseSpec& both = add("both", Workload::readwhilewriting);
  both.threads = 4;
  both.operations = std::nullopt;
  both.duration_s = 3600;
  both.read_write_percent = 10;
  both.exact_mix = true;
  notes_.at_progress = [&] {
    if (puts < 20'000) return;
    stop_ = true;
    is_over = true;
  };
  ASSERT_TRUE(run());
  EXPECT_GE(notes_.phases[0].totals.tally.reads(), 2000U);
}

TEST_F(LoadRun, AShareOfAnEarlierPhasesRateIsAnOpenLoopAtIt) {
  engine_.before = [](std::uint64_t) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    return Status::ok();
  };
  add("closed", Workload::overwrite);
  add("wait", Workload::waitforcompaction);
  PhaseSpec& open = add("open", Workload::overwrite);
  open.rate_of = "closed";
  open.rate_share = 0.5;
  ASSERT_TRUE(run());
  const Totals& closed = notes_.phases[0].totals;
  const double rate = static_cast<double>(closed.tally.operations()) / (static_cast<double>(closed.duration_ns) * 1e-9);
  EXPECT_FALSE(notes_.phases[0].rate_ops_s);
  ASSERT_TRUE(notes_.phases[2].rate_ops_s);
  EXPECT_NEAR(*notes_.phases[2].rate_ops_s, rate / 2, rate * 1e-9);
  // The last of 300 operations is due 299 gaps after the first.
  EXPECT_GE(static_cast<double>(notes_.phases[2].totals.duration_ns) * 1e-9, 299 / *notes_.phases[2].rate_ops_s);
  EXPECT_GT(notes_.phases[2].totals.tally.start_lag.count(), 0U);
}

TEST_F(LoadRun, AShareOfNoOperationsIsNoRate) {
  PhaseSpec& none = add("none", Workload::overwrite);
  none.operations = std::nullopt;
  none.duration_s = 1e-9;
  add("open", Workload::overwrite).rate_of = "none";
  auto report = run();
  ASSERT_FALSE(report);
  EXPECT_EQ(report.status().fault(), Fault::bad_input);
}

// Each phase says it anew, before its first write; one that says nothing leaves it to the engine.
TEST_F(LoadRun, APhaseSaysWhereItsWritesGo) {
  add("half", Workload::overwrite).diversion = engine::Diversion::never;
  add("other half", Workload::overwrite).diversion = engine::Diversion::always;
  add("wait", Workload::waitforcompaction);
  ASSERT_TRUE(run());
  using engine::Diversion;
  const std::vector<std::pair<Diversion, std::uint64_t>> expected = {
      {Diversion::never, 0}, {Diversion::always, 300}, {Diversion::automatic, 600}};
  EXPECT_EQ(engine_.diversions, expected);
}

TEST_F(LoadRun, SettlingFlushesAndWaits) {
  add("fill", Workload::fillseq);
  add("settle", Workload::settle).measured = false;
  ASSERT_TRUE(run());
  EXPECT_EQ(engine_.flushes(), 1U);
  EXPECT_EQ(engine_.waits(), 1U);
}

TEST_F(LoadRun, ThePolicysEventsAreReportedOnceInTheRunsTime) {
  engine_.events = {{.at_ns = 0, .name = "adoc", .figures = {{"background_jobs", 4.0}}, .message = ""}};
  add("fill", Workload::fillseq);
  ASSERT_TRUE(run());
  ASSERT_EQ(notes_.events.size(), 1U);
  EXPECT_EQ(notes_.events[0].name, "adoc");
  EXPECT_LT(notes_.events[0].at_ns, 0);  // the clock's zero is before the run
}

TEST_F(LoadRun, EndsEarlyOnRequestAndReportsIt) {
  PhaseSpec& endless = add("endless", Workload::overwrite);
  endless.operations = std::nullopt;
  endless.duration_s = 3600;
  add("never", Workload::readrandom);
  notes_.at_progress = [this] { stop_ = true; };
  auto report = run();
  ASSERT_TRUE(report);
  EXPECT_FALSE(report->complete);
  ASSERT_EQ(notes_.phases.size(), 1U);
  EXPECT_FALSE(notes_.phases[0].complete);
  EXPECT_EQ(notes_.phases[0].totals.tally.writes(), engine_.puts());
  EXPECT_EQ(report->measured.tally.writes(), engine_.puts());
  EXPECT_EQ(report->live_keys, engine_.live());
}

TEST_F(LoadRun, EndsAWaitForCompactionEarlyWhenAskedTo) {
  engine_.never_at_rest = true;
  add("wait", Workload::waitforcompaction);
  notes_.at_progress = [this] { stop_ = true; };
  auto report = run();
  ASSERT_TRUE(report);
  EXPECT_FALSE(report->complete);
  EXPECT_EQ(engine_.waits(), 1U);
}

TEST_F(LoadRun, FailedOperationEndsTheRunWithItsReason) {
  engine_.before = [](std::uint64_t index) {
    return index < 1000 ? Status::ok() : Status::error(Fault::drive_full, "no clean erase block");
  };
  PhaseSpec& phase = add("fill", Workload::fillrandom);
  phase.operations = 1'000'000;
  phase.threads = 4;
  add("never", Workload::readrandom);
  auto report = run();
  ASSERT_FALSE(report);
  EXPECT_EQ(report.status().fault(), Fault::drive_full);
  EXPECT_EQ(report.status().message(), "no clean erase block");
  EXPECT_TRUE(notes_.phases.empty()) << "a phase that failed has no figures";
  EXPECT_FALSE(notes_.samples.empty()) << "what happened until then was told";
}

TEST_F(LoadRun, ReportsEachStallOnceAndCountsItsTimeInSamples) {
  // The store is read first at the first sample, an interval of 10 ms or more after the run began. One stall is within
  // that interval, the other reaches beyond it.
  std::vector<engine::Stall> stalls;
  engine_.script = [&] {
    if (!stalls.empty()) return stalls;
    const std::int64_t now_ns = clock_.now_ns();
    stalls = {{now_ns - 5'000'000, now_ns - 3'000'000, engine::StallState::delayed, engine::RocksdbCause::l0},
              {now_ns - 2'000'000, now_ns + 4'000'000, engine::StallState::stopped, engine::RocksdbCause::memtable}};
    return stalls;
  };
  PhaseSpec& phase = add("fill", Workload::overwrite);
  phase.operations = std::nullopt;
  phase.duration_s = 0.5;  // enough for a second sample, however late the first one is
  auto report = run();
  ASSERT_TRUE(report);
  ASSERT_EQ(notes_.stalls.size(), 2U);
  EXPECT_EQ(notes_.stalls[0].end_ns - notes_.stalls[0].begin_ns, 2'000'000);
  EXPECT_GT(notes_.samples.size(), 2U);
  StallTime sums;
  for (const auto& note : notes_.samples) sums.add(note.sample.stall_time);
  EXPECT_EQ(sums.of(engine::RocksdbCause::l0), 2'000'000);
  EXPECT_EQ(sums.of(engine::RocksdbCause::memtable), 6'000'000);
  EXPECT_EQ(report->measured.stall_time.ns, sums.ns);
  EXPECT_EQ(report->measured.stall_time.begun, 2U);
}

TEST_F(LoadRun, ProgressCountsUpToItsTotal) {
  add("fill", Workload::fillseq).threads = 2;
  PhaseSpec& timed = add("timed", Workload::readrandom);
  timed.operations = std::nullopt;
  timed.duration_s = 0.02;
  ASSERT_TRUE(run());
  // One at the end of each, and more if a busy machine makes a phase long.
  std::vector<Progress> last;
  for (const Progress& one : notes_.progress) {
    if (!last.empty() && last.back().phase == one.phase) last.pop_back();
    last.push_back(one);
  }
  ASSERT_EQ(last.size(), 2U);
  EXPECT_EQ(last[0].unit, Progress::Unit::operations);
  EXPECT_EQ(last[0].done, 600);
  EXPECT_EQ(last[0].total, 600);
  EXPECT_EQ(last[1].unit, Progress::Unit::seconds);
  EXPECT_EQ(last[1].total, 0.02);
  EXPECT_GE(last[1].done, 0.02);
}

TEST_F(LoadRun, RunsWithoutADrive) {
  add("fill", Workload::fillseq);
  auto report = load::run(spec_, {engine_, nullptr, nullptr}, clock_, stop_, notes_);
  ASSERT_TRUE(report);
  EXPECT_FALSE(notes_.samples[0].sample.drive);
  EXPECT_EQ(report->measured.drive.host_bytes_written, 0U);
}

}  // namespace
}  // namespace spillway::load
