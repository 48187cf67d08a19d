// YCSB's phases as runs on a store in memory: what is inserted, requested, counted and refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <vector>

#include "load/run.h"
#include "load/ycsb/records.h"
#include "load_fakes.h"

namespace spillway::load {
namespace {

using testing::FakeEngine;
using ycsb::Kind;

class LastPhases final : public RunListener {
 public:
  std::vector<PhaseReport> phases;

  void on_progress(const Progress&) override {}
  void on_sample(const PhaseSpec&, const Sample&) override {}
  void on_stall(const engine::Stall&) override {}
  void on_event(const engine::Event&) override {}
  void on_phase(const PhaseReport& report) override { phases.push_back(report); }
};

class LoadYcsbRun : public ::testing::Test {
 protected:
  LoadYcsbRun() {
    properties_.recordcount = 1000;
    properties_.operationcount = 2000;
    properties_.fieldcount = 5;
    properties_.fieldlength = 20;
    spec_.pairs.num = 1;
    engine_.keeps_calls = true;
  }

  PhaseSpec& add(Workload workload, std::uint32_t threads = 1) {
    PhaseSpec phase;
    phase.name = name_of(workload) + std::to_string(spec_.phases.size());
    phase.workload = workload;
    phase.threads = threads;
    phase.ycsb = properties_;
    spec_.phases.push_back(phase);
    return spec_.phases.back();
  }

  RunReport run() {
    EXPECT_EQ(find_problem(spec_), "");
    LastPhases notes;
    auto report = load::run(spec_, {engine_, nullptr, [] { return std::uint64_t{0}; }}, clock_, stop_, notes);
    EXPECT_TRUE(report) << report.status().message();
    phases_ = notes.phases;
    return report.value();
  }

  const Tally& tally(std::size_t phase) const { return phases_[phase].totals.tally; }
  std::uint64_t count(std::size_t phase, Kind kind) const {
    const auto& kinds = tally(phase).kind_latency;
    const auto at = static_cast<std::size_t>(kind);
    return at < kinds.size() ? kinds[at].count() : 0;
  }

  void mix(double read, double update, double insert, double scan, double readmodifywrite) {
    properties_.readproportion = read;
    properties_.updateproportion = update;
    properties_.insertproportion = insert;
    properties_.scanproportion = scan;
    properties_.readmodifywriteproportion = readmodifywrite;
  }

  FakeEngine engine_;
  SteadyClock clock_;
  std::atomic<bool> stop_{false};
  ycsb::Properties properties_;
  RunSpec spec_;
  std::vector<PhaseReport> phases_;
};

TEST_F(LoadYcsbRun, TheLoadInsertsEachRecordOnce) {
  add(Workload::ycsb_load, 3);  // 1000 is not divisible by 3
  const RunReport report = run();
  EXPECT_EQ(engine_.puts(), 1000U);
  EXPECT_EQ(engine_.live(), 1000U);
  std::vector<std::string> wanted;
  ycsb::KeyNames names(properties_);
  for (std::uint64_t record = 0; record < 1000; ++record) wanted.push_back("p" + std::string(names.key(record)));
  std::vector<std::string> put = engine_.take_calls();
  std::sort(wanted.begin(), wanted.end());
  std::sort(put.begin(), put.end());
  EXPECT_EQ(put, wanted);
  EXPECT_EQ(report.live_records, 1000U);
  EXPECT_EQ(report.live_user_bytes, engine_.live_bytes());
  EXPECT_TRUE(report.live_user_bytes_are_exact);
  EXPECT_EQ(report.live_keys, 0U);
  EXPECT_EQ(tally(0).user_bytes_written, engine_.bytes_put());
}

TEST_F(LoadYcsbRun, LoadsInPartsAreAddedUp) {
  properties_.insertcount = 600;
  add(Workload::ycsb_load, 2);
  properties_.insertstart = 500;
  properties_.insertcount = 500;
  add(Workload::ycsb_load);
  const RunReport report = run();
  EXPECT_EQ(engine_.puts(), 1100U);
  EXPECT_EQ(report.live_records, 1000U);
  EXPECT_EQ(report.live_user_bytes, engine_.live_bytes());
}

TEST_F(LoadYcsbRun, OperationsAreOverAllThreadsAndInTheirProportions) {
  mix(0.4, 0.3, 0.1, 0.1, 0.1);
  properties_.requestdistribution = ycsb::Request::zipfian;
  properties_.operationcount = 10'001;
  add(Workload::ycsb_load);
  add(Workload::ycsb_run, 4);
  const RunReport report = run();
  EXPECT_EQ(tally(1).operations(), 10'001U);
  EXPECT_NEAR(static_cast<double>(count(1, Kind::read)), 4000, 250);
  EXPECT_NEAR(static_cast<double>(count(1, Kind::update)), 3000, 250);
  EXPECT_NEAR(static_cast<double>(count(1, Kind::insert)), 1000, 160);
  EXPECT_EQ(tally(1).reads(), count(1, Kind::read) + count(1, Kind::scan));
  EXPECT_EQ(tally(1).writes(), count(1, Kind::update) + count(1, Kind::insert) + count(1, Kind::readmodifywrite));
  EXPECT_EQ(engine_.puts(), 1000 + tally(1).writes()) << "each of them puts once";
  EXPECT_EQ(tally(0).user_bytes_written + tally(1).user_bytes_written, engine_.bytes_put());
  EXPECT_EQ(report.live_records, 1000 + count(1, Kind::insert));
  EXPECT_EQ(report.live_user_bytes, engine_.live_bytes());
}

TEST_F(LoadYcsbRun, ReadsOfTheLatestFindWhatOthersInsert) {
  mix(0.9, 0, 0.1, 0, 0);
  properties_.requestdistribution = ycsb::Request::latest;
  properties_.operationcount = 20'000;
  add(Workload::ycsb_load);
  add(Workload::ycsb_run, 4);
  add(Workload::ycsb_run, 2);
  run();
  EXPECT_EQ(tally(1).not_found + tally(2).not_found, 0U);
  EXPECT_GT(count(2, Kind::insert), 1500U);
  EXPECT_EQ(engine_.live(), 1000 + count(1, Kind::insert) + count(2, Kind::insert)) << "no record is inserted twice";
}

TEST_F(LoadYcsbRun, AnUpdateReadsTheOldRecordOrDoesNot) {
  mix(0, 0.5, 0, 0, 0.5);
  for (const auto update : {ycsb::Update::merge, ycsb::Update::overwrite}) {
    for (const bool all : {false, true}) {
      properties_.update = update;
      properties_.writeallfields = all;
      spec_.phases.clear();
      add(Workload::ycsb_load);
      add(Workload::ycsb_run);
      engine_.take_calls();
      run();
      const auto calls = engine_.take_calls();
      const auto gets = static_cast<std::uint64_t>(
          std::count_if(calls.begin(), calls.end(), [](const auto& call) { return call[0] == 'g'; }));
      const std::uint64_t reads = count(1, Kind::readmodifywrite);
      EXPECT_EQ(gets, reads + (update == ycsb::Update::merge ? 2000 : 0)) << "as YCSB-cpp's binding, or unseen";
      EXPECT_EQ(tally(1).pairs_read, reads) << "the store's own look is no read of the user's";
    }
  }
}

TEST_F(LoadYcsbRun, AnUpdateOfNoRecordMakesOneOnlyWhereItOverwrites) {
  mix(0, 1, 0, 0, 0);
  for (const auto update : {ycsb::Update::merge, ycsb::Update::overwrite}) {
    FakeEngine empty;
    properties_.update = update;
    spec_.phases.clear();
    add(Workload::ycsb_load).operations = 10;
    add(Workload::ycsb_run);
    LastPhases notes;
    auto report = load::run(spec_, {empty, nullptr, [] { return std::uint64_t{0}; }}, clock_, stop_, notes);
    ASSERT_TRUE(report);
    const Tally& done = notes.phases[1].totals.tally;
    const bool merges = update == ycsb::Update::merge;
    EXPECT_EQ(report->live_user_bytes_are_exact, merges);
    EXPECT_EQ(empty.live() == 10, merges);
    EXPECT_EQ(done.writes(), 2000U);
    EXPECT_EQ(done.not_found > 0, merges);
    EXPECT_EQ(notes.phases[0].totals.tally.user_bytes_written + done.user_bytes_written, empty.bytes_put());
  }
}

TEST_F(LoadYcsbRun, ScansHaveTheirLengths) {
  mix(0, 0, 0, 1, 0);
  properties_.minscanlength = 3;
  properties_.maxscanlength = 12;
  add(Workload::ycsb_load);
  add(Workload::ycsb_run);
  run();
  std::vector<int> counts(14);
  std::uint64_t records = 0;
  for (const std::string& call : engine_.take_calls()) {
    if (call[0] != 's') continue;
    const auto length = std::stoul(call.substr(1)) + 1;  // the first record is not a step
    ASSERT_LE(length, 12U);
    ++counts[length];
    records += length;
  }
  EXPECT_EQ(counts[0] + counts[1] + counts[2], 0);
  for (std::size_t length = 3; length <= 12; ++length) EXPECT_NEAR(counts[length], 200, 70) << length;
  EXPECT_LE(tally(1).pairs_read, records);
  EXPECT_GT(tally(1).pairs_read, records * 9 / 10) << "fewer only at the end of the keys";
}

TEST_F(LoadYcsbRun, OneThreadDoesTheSameForTheSameSeed) {
  mix(0.3, 0.3, 0.1, 0.1, 0.2);
  std::vector<std::vector<std::string>> runs;
  for (const std::uint64_t seed : {1, 1, 2}) {
    FakeEngine engine;
    engine.keeps_calls = true;
    spec_.seed = seed;
    spec_.phases.clear();
    add(Workload::ycsb_load);
    add(Workload::ycsb_run);
    LastPhases notes;
    ASSERT_TRUE(load::run(spec_, {engine, nullptr, [] { return std::uint64_t{0}; }}, clock_, stop_, notes));
    runs.push_back(engine.take_calls());
  }
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_NE(runs[0], runs[2]);
}

TEST_F(LoadYcsbRun, ATimeLimitEndsWhatOperationsWouldNot) {
  properties_.operationcount = 1'000'000'000;
  properties_.maxexecutiontime = 0.05;
  add(Workload::ycsb_load);
  add(Workload::ycsb_run);
  engine_.keeps_calls = false;
  const RunReport report = run();
  EXPECT_TRUE(report.complete);
  EXPECT_EQ(tally(0).writes(), 1000U) << "it is no limit of the load";
  EXPECT_LT(tally(1).operations(), 1'000'000'000U);
}

TEST_F(LoadYcsbRun, LeastLiveBytesAreNoMoreThanWhatLives) {
  add(Workload::ycsb_load);
  run();
  const std::uint64_t least = least_live_bytes(spec_, false);
  EXPECT_LE(least, engine_.live_bytes());
  EXPECT_GT(least, engine_.live_bytes() * 3 / 4);
}

TEST_F(LoadYcsbRun, NamesTheErrorAndItsFix) {
  struct Case {
    std::function<void(ycsb::Properties&)> spoil;
    const char* sentence;
  };
  const std::vector<Case> table = {
      {[](auto& p) { p.recordcount = 0; }, "recordcount is 0: say how many records the load phase inserts"},
      {[](auto& p) { p.fieldcount = 0; }, "fieldcount is 0: a record has at least one field"},
      {[](auto& p) { p.fieldlength = 400'000'000; }, "fieldcount x fieldlength is 2000000000 bytes: choose at most"},
      {[](auto& p) {
         p.fieldlengthdistribution = ycsb::Length::uniform;
         p.minfieldlength = 30;
       },
       "minfieldlength is 30, more than fieldlength = 20: lower it"},
      {[](auto& p) { p.insertstart = 1001; }, "insertstart + insertcount is more than recordcount = 1000"},
      {[](auto& p) {
         p.insertstart = 1;
         p.insertcount = 1000;
       },
       "insertstart + insertcount is more than recordcount = 1000"},
      {[](auto& p) { p.insertcount = 0; }, "insertcount is 0"},
      {[](auto& p) { p.readproportion = 1.5; }, "readproportion is not a share from 0 to 1"},
      {[](auto& p) { p.readproportion = p.updateproportion = 0; },
       "readproportion and the other proportions are all 0"},
      {[](auto& p) { p.zipfian_const = 1; }, "zipfian_const must be above 0 and below 1"},
      {[](auto& p) { p.hotspotopnfraction = -1; }, "hotspotopnfraction is not a share from 0 to 1"},
      {[](auto& p) { p.exponential_percentile = 100; }, "exponential.percentile must be above 0 and below 100"},
      {[](auto& p) { p.exponential_frac = 0; }, "exponential.frac must be above 0"},
      {[](auto& p) {
         p.scanproportion = 1;
         p.minscanlength = 2000;
       },
       "minscanlength is 2000: choose 1 to maxscanlength = 1000"},
      {[](auto& p) { p.zeropadding = 5000; }, "zeropadding makes keys too long: choose at most 1024"},
  };
  const ycsb::Properties good = properties_;
  for (const Case& one : table) {
    properties_ = good;
    one.spoil(properties_);
    const std::string said = ycsb::find_problem(properties_, "phases[1].ycsb.", false);
    EXPECT_EQ(said.rfind(std::string("phases[1].ycsb.") + one.sentence, 0), 0U) << said;
  }
}

TEST_F(LoadYcsbRun, PhasesHaveToFitEachOther) {
  add(Workload::ycsb_run);
  EXPECT_EQ(find_problem(spec_), "phases[0]: ycsb-run would find no records; put a phase of ycsb-load before it");
  spec_.phases.clear();
  add(Workload::ycsb_load);
  add(Workload::ycsb_run).ycsb->fieldcount = 6;
  EXPECT_EQ(
      find_problem(spec_),
      "phases[1].ycsb.fieldcount is not that of phase \"ycsb-load0\": the records are the same in all phases, give "
      "it one value");
  spec_.phases[1].ycsb.reset();
  EXPECT_EQ(find_problem(spec_), "phases[1].ycsb is missing: ycsb-run needs YCSB's properties");
  spec_.phases[1] = spec_.phases[0];
  spec_.phases[1].workload = Workload::readrandom;
  spec_.phases[1].name = "read";
  spec_.phases[1].operations = 1;
  EXPECT_EQ(find_problem(spec_), "phases[1].ycsb belongs to ycsb-load and ycsb-run: remove it from readrandom");
  spec_.phases.pop_back();
  add(Workload::ycsb_run).ycsb->operationcount = 0;
  EXPECT_EQ(find_problem(spec_),
            "phases[1] has no end: give ycsb.operationcount (over all threads), operations (for each) or duration_s");
}

}  // namespace
}  // namespace spillway::load
