// The command `run`: its refusals with their messages, and the consistency of a real run's events.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <streambuf>
#include <string>
#include <utility>
#include <vector>

#include "temporary_directory.h"
#include "tool/run/command.h"

namespace spillway::tool {
namespace {

class ToolRun : public ::testing::Test {
 protected:
  ToolRun() {
    request_ = Json::parse(R"({
      "target": {"kind": "emulated", "pacing": "off", "initial": {"kind": "steady"},
                 "drive": {"set": {"capacity.capacity_bytes": "512MiB", "capacity.spare_factor": "0.2"}}},
      "engine": {"name": "rocksdb", "options": {"write_buffer_size": "262144", "compression": "kNoCompression"}},
      "load": {"num": 2000, "value_bytes": 1000},
      "phases": [{"name": "fill", "workload": "fillrandom", "operations": 3000}],
      "sample_interval_ms": 20})");
    request_["directory"] = (parent_ / "db").string();
  }

  Status run(LineReader* commands = nullptr) {
    std::ostringstream out;
    Events events(out);
    const Status status = run_command(request_, events, stop_, commands);
    read(out.str());
    return status;
  }

  void read(const std::string& said) {
    std::istringstream lines(said);
    for (std::string line; std::getline(lines, line);) events_.push_back(Json::parse(line));
  }

  std::vector<Json> all(const std::string& event) const {
    std::vector<Json> found;
    for (const Json& one : events_) {
      if (one["event"] == event) found.push_back(one);
    }
    return found;
  }

  const TemporaryDirectory temporary_;
  const std::filesystem::path parent_ = temporary_.root();
  Json request_;
  std::atomic<bool> stop_{false};
  std::vector<Json> events_;
};

// Standard input after a request, to which a test writes during the run.
class Commands {
 public:
  Commands() = default;
  ~Commands() {
    close();
    ::close(ends_[0]);
  }
  Commands(const Commands&) = delete;
  Commands& operator=(const Commands&) = delete;

  void write(const std::string& line) {
    EXPECT_EQ(::write(ends_[1], line.data(), line.size()), static_cast<ssize_t>(line.size()));
  }
  void close() {
    if (ends_[1] >= 0) ::close(ends_[1]);
    ends_[1] = -1;
  }
  LineReader& lines() { return lines_; }

 private:
  static std::array<int, 2> made() {
    std::array<int, 2> ends{-1, -1};
    EXPECT_EQ(::pipe(ends.data()), 0);
    return ends;
  }

  std::array<int, 2> ends_ = made();
  LineReader lines_{ends_[0]};
};

// Receives events, and reports the end of a phase.
class PhaseWatcher final : public std::streambuf {
 public:
  PhaseWatcher(std::ostringstream& into, std::function<void()> on_phase)
      : into_(into), on_phase_(std::move(on_phase)) {}

 protected:
  int_type overflow(int_type letter) override {
    line_ += traits_type::to_char_type(letter);
    if (letter != '\n') return letter;
    into_ << line_;
    if (Json::parse(line_)["event"] == "phase") on_phase_();
    line_.clear();
    return letter;
  }

 private:
  std::ostringstream& into_;
  std::function<void()> on_phase_;
  std::string line_;
};

// Without the command this run would last an hour.
TEST_F(ToolRun, APhaseIsEndedByCommandAndTheNextOneRuns) {
  request_["phases"] = Json::parse(R"([{"name": "long", "workload": "overwrite", "duration_s": 3600},
                                       {"name": "after", "workload": "overwrite", "operations": 500}])");
  Commands commands;
  commands.write("{\"end_phase\": 0}\n");
  commands.close();
  ASSERT_TRUE(run(&commands.lines()));
  const auto phases = all("phase");
  ASSERT_EQ(phases.size(), 2U);
  EXPECT_EQ(phases[0].value("ended_by", ""), "command");
  EXPECT_TRUE(phases[0]["complete"]);
  EXPECT_FALSE(phases[1].contains("ended_by"));
  EXPECT_EQ(phases[1]["operations"], 500);
  EXPECT_TRUE(events_.back()["complete"]);
  const std::uint64_t operations = events_.back()["operations"];
  EXPECT_EQ(operations, phases[0]["operations"].get<std::uint64_t>() + 500);
}

// The command may be late: the phase has reached its own end, and the next phase must not end.
TEST_F(ToolRun, ACommandForAPhaseThatHasEndedChangesNothing) {
  request_["phases"] = Json::parse(R"([{"name": "short", "workload": "overwrite", "operations": 1},
                                       {"name": "after", "workload": "overwrite", "operations": 30000}])");
  Commands commands;
  std::ostringstream out;
  bool was_told = false;
  // Called as soon as the first phase is over.
  PhaseWatcher watcher(out, [&] {
    if (!was_told) commands.write("{\"end_phase\": 0}\n");
    was_told = true;
  });
  std::ostream watched(&watcher);
  Events events(watched);
  ASSERT_TRUE(run_command(request_, events, stop_, &commands.lines()));
  EXPECT_TRUE(was_told);
  read(out.str());
  ASSERT_EQ(all("phase").size(), 2U);
  EXPECT_EQ(all("phase")[1]["operations"], 30000);
}

TEST_F(ToolRun, WhatIsNoCommandEndsTheRunWithASentence) {
  request_["phases"] = Json::parse(R"([{"name": "long", "workload": "overwrite", "duration_s": 3600}])");
  for (const std::string line : {"x", "{}", "[]", R"({"end_phase": -1})", R"({"end_phase": 1})",
                                 R"({"end_phase": 0.5})", R"({"end_phase": 0, "x": 1})", R"({"stop": 0})"}) {
    Commands commands;
    commands.write(line + "\n");
    const Status status = run(&commands.lines());
    EXPECT_EQ(status.fault(), Fault::bad_input) << line;
    EXPECT_NE(status.message().find("standard input, line 1: "), std::string::npos) << status.message();
    std::filesystem::remove_all(parent_ / "db");
  }
}

// A load that fits into the page cache counts as written nevertheless.
TEST_F(ToolRun, DataInThePageCacheCountsInThePhaseThatWroteIt) {
  request_["fs"] = {{"writeback_bytes", 256 << 20}, {"closed_dirty_bytes", 256 << 20}};
  request_["engine"]["options"]["write_buffer_size"] = "67108864";  // nothing is flushed: only the log has the data
  request_["phases"] = Json::parse(R"([{"name": "load", "workload": "fillseq", "measured": false},
                                       {"name": "fill", "workload": "fillrandom", "operations": 1000},
                                       {"name": "after", "workload": "overwrite", "operations": 1000,
                                        "measured": false}])");
  ASSERT_TRUE(run());
  const Json& result = events_.back();
  const auto user = result["user_bytes_written"].get<std::uint64_t>();
  const auto host = result["host_bytes_written"].get<std::uint64_t>();
  EXPECT_EQ(user, 1000U * 1016);
  EXPECT_GT(host, user);
  EXPECT_LT(host, user * 5 / 4) << "of the load before it and of what comes after it, nothing is in it";
  std::uint64_t of_samples = 0;
  for (const Json& sample : all("sample")) {
    if (sample["phase"] == "fill") of_samples += sample["drive"]["host_bytes_written"].get<std::uint64_t>();
  }
  EXPECT_EQ(of_samples, host);
}

TEST_F(ToolRun, RefusesWithAReasonAndLeavesNoFiles) {
  struct Case {
    std::function<void(Json&)> spoil;
    std::string sentence;
  };
  const std::string db = (parent_ / "db").string();
  const std::vector<Case> table = {
      {[](Json& r) { r["phasez"] = 1; }, "unknown key phasez; did you mean phases?"},
      {[](Json& r) {
         r["fs"] = {{"placement", "best_fit"}};
       },
       "fs.placement \"best_fit\" is not known; did you mean next_fit?"},
      {[](Json& r) { r.erase("directory"); },
       "directory is missing; it takes the path of a directory for the store's files"},
      {[&](Json& r) { r["directory"] = parent_.parent_path().string(); },
       "directory: " + parent_.parent_path().string() +
           " is not empty; a run begins with an empty store, name a new one"},
      {[](Json& r) { r["directory"] = "/proc/none/here"; },
       "directory: /proc/none/here cannot be made: No such file or directory; choose another"},
      {[](Json& r) { r["target"]["kind"] = "emulatd"; },
       "target.kind \"emulatd\" is not known; did you mean emulated?"},
      {[](Json& r) { r["target"]["pacing"] = "never at all"; },
       "target.pacing \"never at all\" is not known; it takes real, off"},
      {[](Json& r) { r["target"]["kind"] = "directory"; },
       "target.drive belongs to an emulated drive; remove it or set target.kind to emulated"},
      {[](Json& r) { r["target"]["time_scale"] = 0; }, "target.time_scale is 0; it takes a number from 1e-06 to 1e+06"},
      {[](Json& r) {
         r["fs"] = {{"discards", true}};
       },
       "unknown key fs.discards; did you mean fs.discard?"},
      {[](Json& r) {
         r["fs"] = {{"discard", "yes"}};
       },
       "fs.discard is \"yes\"; it takes true or false"},
      {[](Json& r) {
         r["fs"] = {{"writeback_bytes", 0}};
       },
       "fs.writeback_bytes is 0; it takes a whole number from 4096 to 18446744073709551615"},
      {[](Json& r) { r["engine"]["options"] = 5; },
       "engine.options is 5; it takes an object of the engine's options and their values as texts"},
      {[](Json& r) {
         r["engine"]["adoc"] = {{"least_jobs", 5}, {"most_jobs", 4}};
         r["engine"]["policy"] = "adoc";
       },
       "engine.adoc.least_jobs is 5: choose 1 to engine.adoc.most_jobs = 4"},
      {[](Json& r) {
         r["engine"]["flow_control"] = {{"soft_pending_bytes", 4}, {"hard_pending_bytes", 4}};
         r["engine"]["policy"] = "flow-control";
       },
       "engine.flow_control.soft_pending_bytes is 4: choose less than engine.flow_control.hard_pending_bytes = 4"},
      {[](Json& r) {
         r["engine"]["flow_control"] = {{"l0_file", 2}};
       },
       "engine.flow_control.l0_file is not a setting of this engine, the nearest is engine.flow_control.l0_files"},
      {[](Json& r) {
         r["engine"] = {{"name", "spillway"}, {"spill", {{"rollback", "eagr"}}}};
       },
       "engine.spill.rollback \"eagr\" is not known; did you mean eager?"},
      {[](Json& r) {
         r["engine"] = {{"name", "spillway"}, {"spill", {{"capacity_bytes", 1}, {"generation_bytes", 2}}}};
       },
       "engine.spill.capacity_bytes is 1, less than a generation: raise it or lower engine.spill.generation_bytes = 2"},
      {[](Json& r) {
         r["engine"] = {{"name", "spillway"}, {"spill", {{"store", "kv"}}}};
       },
       "engine.spill.store is kv, but the target has no key-value namespace: give an emulated drive a "
       "namespaces.kv_share above 0, or use the store region"},
      {[](Json& r) {
         r["engine"]["spill"] = {{"store", "kv"}};
       },
       "engine.spill.store is not a setting of this engine"},
      {[](Json& r) {
         r["engine"]["adoc"] = {{"most_job", 2}};
       },
       "engine.adoc.most_job is not a setting of this engine, the nearest is engine.adoc.most_jobs"},
      {[](Json& r) {
         r["engine"]["adoc"] = {{"most_jobs", "two"}};
       },
       "engine.adoc.most_jobs is two; it takes a whole number from 1 to 1024"},
      {[](Json& r) { r["engine"] = "rocksdb"; }, "engine is \"rocksdb\"; it takes an object with a name"},
      {[](Json& r) { r["load"]["num"] = 0; }, "load.num is 0; it takes a whole number from 1 to 18446744073709551615"},
      {[](Json& r) { r["load"]["value_byte"] = 5; }, "unknown key load.value_byte; did you mean load.value_bytes?"},
      {[](Json& r) { r["phases"] = Json::array(); }, "phases is empty: a run needs at least one phase"},
      {[](Json& r) { r["phases"] = 5; }, "phases is 5; it takes a list of phases"},
      {[](Json& r) { r["phases"][0] = 5; }, "phases[0] is 5; it takes an object"},
      {[](Json& r) { r["phases"][0]["workload"] = "fillrandum"; },
       "phases[0].workload \"fillrandum\" is not known; did you mean fillrandom?"},
      {[](Json& r) { r["phases"][0].erase("workload"); },
       "phases[0].workload is missing; it takes one of db_bench's workloads, ycsb-load or ycsb-run"},
      {[](Json& r) { r["phases"][0]["threds"] = 2U; }, "unknown key phases[0].threds; did you mean phases[0].threads?"},
      {[](Json& r) { r["phases"][0]["rate_ops_s"] = 0; },
       "phases[0].rate_ops_s must be above 0 operations a second; null stands for a closed loop"},
      {[](Json& r) { r["phases"][0]["read_write_percent"] = 50; },
       "phases[0].read_write_percent belongs to readrandomwriterandom and readwhilewriting; remove it from fillrandom"},
      {[](Json& r) {
         r["phases"][0] = {{"workload", "ycsb-load"}};
       },
       "phases[0].ycsb is missing: ycsb-load needs YCSB's properties"},
      {[](Json& r) {
         r["phases"][0] = {{"workload", "ycsb-load"}, {"ycsb", {{"recordcout", 5U}}}};
       },
       "unknown key phases[0].ycsb.recordcout; did you mean phases[0].ycsb.recordcount?"},
      {[](Json& r) {
         r["phases"][0] = {{"workload", "ycsb-load"}, {"ycsb", {{"requestdistribution", "zipfan"}}}};
       },
       "phases[0].ycsb.requestdistribution \"zipfan\" is not known; did you mean zipfian?"},
      {[](Json& r) {
         r["phases"][0] = {{"workload", "ycsb-load"},
                           {"ycsb", {{"recordcount", 5U}, {"scanlengthdistribution", "none"}}}};
       },
       "phases[0].ycsb.scanlengthdistribution \"none\" is not known; it takes uniform, zipfian"},
      {[](Json& r) {
         r["load"]["num"] = 1'000'000U;
         r["phases"][0] = {{"name", "fill"}, {"workload", "fillseq"}};
       },
       "load.num: the phases leave at least 1016000000 bytes of pairs, and the drive holds 536870912; lower load.num "
       "or "
       "the phases' operations, or raise capacity.capacity_bytes"},
  };
  const Json good = request_;
  for (const Case& c : table) {
    request_ = good;
    c.spoil(request_);
    const Status status = run();
    EXPECT_EQ(status.fault(), Fault::bad_input);
    EXPECT_EQ(status.message(), c.sentence);
  }
  EXPECT_TRUE(events_.empty()) << "refused before anything was said";
  EXPECT_TRUE(std::filesystem::is_empty(parent_));
}

TEST_F(ToolRun, TheCreatedDirectoryIsRemovedWhenTheDriveIsRefused) {
  request_["target"]["initial"] = {{"kind", "file"}, {"path", (parent_ / "none.state").string()}};
  EXPECT_EQ(run().fault(), Fault::bad_input);
  EXPECT_TRUE(std::filesystem::is_empty(parent_));
}

TEST_F(ToolRun, EventsOfAnEmulatedRunAddUp) {
  request_["phases"].push_back(
      Json::parse(R"({"name": "read", "workload": "readrandom", "operations": 500, "threads": 2})"));
  request_["phases"].push_back(
      Json::parse(R"({"name": "scan", "workload": "seekrandom", "operations": 50, "seek_nexts": 4})"));
  const Status status = run();
  ASSERT_TRUE(status) << status.message();
  EXPECT_EQ(events_.front()["event"], "started");
  EXPECT_EQ(events_.back()["event"], "result");
  const Json& result = events_.back();
  EXPECT_EQ(result["complete"], true);
  EXPECT_EQ(result["operations"], 3000 + 1000 + 50);
  EXPECT_EQ(result["user_bytes_written"], 3000 * 1016);
  EXPECT_FALSE(result.contains("pacing_error_us")) << "nothing was paced";

  std::uint64_t writes = 0;
  std::uint64_t reads = 0;
  std::uint64_t host_bytes = 0;
  std::uint64_t nand_bytes = 0;
  for (const Json& sample : all("sample")) {
    writes += sample["writes"].get<std::uint64_t>();
    reads += sample["reads"].get<std::uint64_t>();
    host_bytes += sample["drive"]["host_bytes_written"].get<std::uint64_t>();
    std::uint64_t by_cause = 0;
    for (const auto& bytes : sample["drive"]["host_bytes_written_by_cause"]) by_cause += bytes.get<std::uint64_t>();
    EXPECT_EQ(by_cause, sample["drive"]["host_bytes_written"]);
    for (const auto& bytes : sample["drive"]["nand_bytes_programmed"]) nand_bytes += bytes.get<std::uint64_t>();
  }
  EXPECT_EQ(writes, result["writes"]);
  EXPECT_EQ(reads, result["reads"]);
  EXPECT_EQ(host_bytes, result["host_bytes_written"]);
  std::uint64_t nand_of_result = 0;
  for (const auto& bytes : result["nand_bytes_programmed"]) nand_of_result += bytes.get<std::uint64_t>();
  EXPECT_EQ(nand_bytes, nand_of_result);
  // Every byte that a user writes is written to the log first.
  EXPECT_GT(host_bytes, result["user_bytes_written"].get<std::uint64_t>());

  // What was found is what was written: the share of gets that miss is the share of keys that no put has drawn.
  const Json read = all("phase")[1];
  const double live = result["live_user_bytes"].get<double>() / 1016;
  EXPECT_EQ(read["operations"], 1000);
  EXPECT_NEAR(read["not_found"].get<double>() / 1000, 1 - live / 2000, 0.08);  // 5 standard deviations
  EXPECT_EQ(all("phase")[2]["user_bytes_read"].get<std::uint64_t>() % 1016, 0U);
  EXPECT_GT(all("phase")[2]["user_bytes_read"].get<std::uint64_t>(), 45 * 5 * 1016U) << "a seek and four steps";
}

TEST_F(ToolRun, YcsbIsReportedByKindsAndByItsOwnSizes) {
  Json records = Json::parse(R"({"recordcount": 2000, "fieldcount": 4, "fieldlength": 50, "operationcount": 4000,
                                 "readproportion": 0.5, "updateproportion": 0.25, "insertproportion": 0.25,
                                 "requestdistribution": "latest"})");
  request_["phases"] =
      Json::array({{{"name", "load"}, {"workload", "ycsb-load"}, {"measured", false}, {"ycsb", records}},
                   {{"name", "run"}, {"workload", "ycsb-run"}, {"threads", 2U}, {"ycsb", records}}});
  const Status status = run();
  ASSERT_TRUE(status) << status.message();
  const Json load = all("phase")[0];
  const Json phase = all("phase")[1];
  const auto count = [&](const char* kind) { return phase["kind_latency_us"][kind]["count"].get<std::uint64_t>(); };
  EXPECT_EQ(load["kind_latency_us"]["insert"]["count"], 2000);
  EXPECT_EQ(phase["operations"], 4000);
  EXPECT_EQ(count("read") + count("update") + count("insert"), 4000U);
  EXPECT_FALSE(phase["kind_latency_us"].contains("scan"));
  EXPECT_EQ(phase["not_found"], 0);
  const Json& result = events_.back();
  // Keys of 17 to 23 bytes, mostly the longest, and values of 200 bytes.
  const double live = result["live_user_bytes"].get<double>() / (2000 + static_cast<double>(count("insert")));
  EXPECT_NEAR(live, 222.9, 0.2);
  EXPECT_EQ(result["live_user_bytes_exact"], true);
  EXPECT_EQ(result["kind_latency_us"], phase["kind_latency_us"]) << "the load is not measured";
  EXPECT_NEAR(result["user_bytes_written"].get<double>() / result["writes"].get<double>(), 222.9, 0.2);
}

TEST_F(ToolRun, AStoppedRunHasAnIncompleteResult) {
  stop_ = true;
  ASSERT_TRUE(run());
  EXPECT_EQ(events_.back()["event"], "result");
  EXPECT_EQ(events_.back()["complete"], false);
  EXPECT_EQ(events_.back()["operations"], 0);
}

TEST_F(ToolRun, IsStoppedWhileTheDriveIsPrepared) {
  request_["target"]["initial"] = {{"kind", "sequential"}, {"warmup_capacities", 1e6}};
  stop_ = true;
  ASSERT_TRUE(run());
  EXPECT_EQ(events_.back()["event"], "result");
  EXPECT_EQ(events_.back()["complete"], false);
  EXPECT_TRUE(all("sample").empty());
}

// The engine knows causes; everything else about the drive is unknown.
TEST_F(ToolRun, DirectoryAsItIsHasCausesAndNoDriveInItsEvents) {
  request_["target"] = {{"kind", "directory"}};
  ASSERT_TRUE(run());
  std::map<std::string, std::uint64_t> by_cause;
  for (const Json& sample : all("sample")) {
    EXPECT_EQ(sample["drive"].size(), 1U) << sample["drive"];
    for (const auto& [cause, bytes] : sample["drive"]["host_bytes_written_by_cause"].items()) {
      if (sample["measured"].get<bool>()) by_cause[cause] += bytes.get<std::uint64_t>();
    }
  }
  for (const auto& [cause, bytes] : events_.back()["host_bytes_written_by_cause"].items()) {
    EXPECT_EQ(bytes.get<std::uint64_t>(), by_cause[cause]) << cause;
  }
  EXPECT_GT(by_cause["wal"], events_.back()["user_bytes_written"].get<std::uint64_t>());
  EXPECT_FALSE(events_.front().contains("drive"));
  EXPECT_FALSE(events_.back().contains("host_bytes_written"));
  EXPECT_GT(events_.back()["space_bytes"].get<std::uint64_t>(), 0U);
}

TEST_F(ToolRun, DirectoryCountsWhatItsDrivesCount) {
  const std::string stat = (parent_ / "stat").string();
  std::ofstream(stat) << "   7 0 80 5 20 0 1000 9 0 1 2\n";
  request_["target"] = {{"kind", "directory"}, {"counters", {stat}}};
  ASSERT_TRUE(run());
  for (const Json& sample : all("sample")) {
    EXPECT_EQ(sample["drive"]["host_bytes_written"], 0) << "nobody wrote to that drive";
    EXPECT_FALSE(sample["drive"].contains("nand_bytes_programmed"));
  }
  EXPECT_EQ(events_.back()["host_bytes_written"], 0);
  EXPECT_FALSE(events_.back().contains("nand_bytes_programmed"));
  EXPECT_FALSE(events_.back().contains("estimate"));
}

TEST_F(ToolRun, CountersThatAreNoneLeaveHostBytesUnknown) {
  const std::string stat = (parent_ / "stat").string();
  std::ofstream(stat) << "not a counter\n";
  for (const std::string& path : {stat, (parent_ / "gone").string()}) {
    events_.clear();
    request_["directory"] = path + "-db";
    request_["target"] = {{"kind", "directory"}, {"counters", {path}}};
    ASSERT_TRUE(run());
    EXPECT_FALSE(events_.back().contains("host_bytes_written"));
    EXPECT_TRUE(events_.back().contains("host_bytes_written_by_cause"));
  }
}

// The estimate has its own figures. The run's figures are those of the directory.
TEST_F(ToolRun, AnEstimateWatchesAndIsInNoOtherFigure) {
  Json estimate = {{"drive", request_["target"]["drive"]}, {"initial", {{"kind", "steady"}}}};
  for (const char* direct : {"false", "true"}) {
    events_.clear();
    request_["directory"] = (parent_ / direct).string();
    request_["engine"]["options"]["use_direct_io_for_flush_and_compaction"] = direct;
    request_["phases"] = {{{"name", "fill"}, {"workload", "fillseq"}, {"operations", 2000}, {"measured", false}},
                          {{"name", "again"}, {"workload", "overwrite"}, {"operations", 3000}}};
    request_["target"] = {{"kind", "directory"}, {"estimate", estimate}};
    ASSERT_TRUE(run());
    const Json& result = events_.back();
    for (const char* key : {"host_bytes_written", "nand_bytes_programmed", "pacing_error_us", "wear", "counters"}) {
      EXPECT_FALSE(result.contains(key)) << key;
    }
    for (const Json& sample : all("sample")) EXPECT_FALSE(sample["drive"].contains("host_bytes_written"));
    const auto host = result["estimate"]["host_bytes_written"].get<std::uint64_t>();
    // The measured phase writes its log and flushes. The phase before it is not included.
    EXPECT_GT(host, result["user_bytes_written"].get<std::uint64_t>());
    EXPECT_LT(host, 20 * result["user_bytes_written"].get<std::uint64_t>());
    std::uint64_t by_cause = 0;
    for (const auto& [cause, bytes] : result["estimate"]["host_bytes_written_by_cause"].items()) {
      by_cause += bytes.get<std::uint64_t>();
    }
    EXPECT_EQ(by_cause, host);
    EXPECT_TRUE(result["estimate"]["failure"].is_null());
    EXPECT_GT(result["estimate"]["wear"]["rated_pe_cycles"], 0);
    EXPECT_GT(result["estimate"]["wear"]["physical_bytes"], result["estimate"]["capacity_bytes"]);
  }
}

TEST_F(ToolRun, WhatIsOfADirectoryIsRefusedOfAnEmulatedDrive) {
  for (const char* key : {"counters", "estimate"}) {
    events_.clear();
    Json request = request_;
    request_["target"][key] = std::string(key) == "counters" ? Json::array({"x"}) : Json::object();
    const Status status = run();
    EXPECT_EQ(status.fault(), Fault::bad_input);
    EXPECT_NE(status.message().find(std::string("target.") + key + " belongs to a plain directory"), std::string::npos);
    request_ = request;
  }
  request_["target"] = {{"kind", "directory"}, {"estimate", {{"drive", {{"preset", "no-such-drive"}}}}}};
  EXPECT_EQ(run().fault(), Fault::bad_input);
  EXPECT_FALSE(std::filesystem::exists(parent_ / "db"));
}

}  // namespace
}  // namespace spillway::tool
