// Kept states: a run continues where the last one ended, a state is replaced as a whole or not at all, and refusals
// with their messages.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/file_bytes.h"
#include "engine/factory/factory.h"
#include "temporary_directory.h"
#include "tool/run/command.h"
#include "tool/run/kept_directory.h"
#include "tool_conversation.h"

namespace spillway::tool {
namespace {

constexpr std::uint64_t kNum = 2000;
constexpr std::uint64_t kPairBytes = 16 + 400;

class ToolKept : public ::testing::Test {
 protected:
  ToolKept() {
    request_ = {
        {"seed", 1},
        {"target",
         {{"kind", "emulated"}, {"pacing", "off"}, {"drive", small_drive("1MiB")}, {"initial", {{"kind", "trimmed"}}}}},
        {"engine",
         {{"name", "leveldb"}, {"options", {{"write_buffer_size", "65536"}, {"compression", "kNoCompression"}}}}},
        {"load", {{"num", kNum}, {"value_bytes", 400}, {"seed", 1}}},
        {"sample_interval_ms", 20}};
  }

  static Json phase(const std::string& workload, std::uint64_t operations = kNum) {
    return {{"name", workload}, {"workload", workload}, {"operations", operations}};
  }

  Outcome run(const Json& kept, const Json& phase, bool stopped = false) {
    Json request = request_;
    request["directory"] = (temporary_.root() / "db").string();
    if (!kept.is_null()) request["kept"] = kept;
    request["phases"] = Json::array({phase});
    const Outcome outcome = outcome_of(
        [&](Events& events, const std::atomic<bool>& stop) { return run_command(request, events, stop); }, stopped);
    left_behind_ = std::filesystem::exists(temporary_.root() / "db");
    std::filesystem::remove_all(temporary_.root() / "db");
    return outcome;
  }

  std::string state(const std::string& name) const { return (temporary_.root() / "kept" / name).string(); }

  // Every file of the existing states, with a hash of its contents.
  std::map<std::string, std::size_t> states() const {
    std::map<std::string, std::size_t> files;
    if (!std::filesystem::exists(temporary_.root() / "kept")) return files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(temporary_.root() / "kept")) {
      if (entry.is_regular_file()) files[entry.path().string()] = std::hash<std::string>()(file_bytes(entry.path()));
    }
    return files;
  }

  void expect_refused(const Json& kept, const Json& phase, const std::string& sentence) {
    const auto before = states();
    const Outcome outcome = run(kept, phase);
    EXPECT_EQ(outcome.status.fault(), Fault::bad_input);
    EXPECT_EQ(outcome.status.message(), sentence);
    EXPECT_EQ(states(), before);
    EXPECT_FALSE(left_behind_);
  }

  const TemporaryDirectory temporary_{memory_path()};  // states are synced file by file
  Json request_;
  bool left_behind_ = false;
};

std::uint64_t whole(const Json& json) { return json.get<std::uint64_t>(); }

struct Under {
  std::string engine;
  std::string target;
};

class ToolKeptOf : public ToolKept, public ::testing::WithParamInterface<Under> {};

TEST_P(ToolKeptOf, ARunContinuesWhereTheLastOneEnded) {
  request_["engine"] = {{"name", GetParam().engine}};
  if (GetParam().target == "directory") request_["target"] = {{"kind", "directory"}};
  if (GetParam().target == "real") request_["target"]["pacing"] = "real";
  if (GetParam().target == "disk")
    request_["target"]["drive"] = {{"preset", "toshiba-dt01aca100"}, {"set", {{"capacity.capacity_bytes", "64MiB"}}}};
  if (GetParam().engine == "spillway") {
    expect_refused({{"to", state("a")}}, phase("fillseq"),
                   "kept: a database of the engine spillway cannot be moved, so it is not kept; remove kept");
    return;
  }
  const Outcome filled = run({{"to", state("a")}}, phase("fillseq"));
  ASSERT_TRUE(filled.status) << filled.status.message();
  EXPECT_EQ(filled.last()["kept"]["runs"], 1);
  const auto before = states();

  const Outcome read = run({{"from", state("a")}}, phase("readrandom"));
  ASSERT_TRUE(read.status) << read.status.message();
  EXPECT_EQ(read.last()["not_found"], 0);
  EXPECT_EQ(read.last()["live_user_bytes"], kNum * kPairBytes);
  EXPECT_FALSE(read.last().contains("kept"));
  EXPECT_EQ(states(), before);
  const Json& start = read.events.front()["kept"];
  EXPECT_EQ(start["database"]["engine"], GetParam().engine);

  const Outcome written = run({{"from", state("a")}, {"to", state("a")}}, phase("overwrite"));
  ASSERT_TRUE(written.status) << written.status.message();
  EXPECT_EQ(written.last()["live_user_bytes"], kNum * kPairBytes);
  EXPECT_EQ(written.last()["kept"]["runs"], 2);
  const Outcome again = run({{"from", state("a")}}, phase("readrandom"));
  ASSERT_TRUE(again.status) << again.status.message();
  EXPECT_EQ(again.last()["not_found"], 0);
}

std::vector<Under> unders() {
  std::vector<Under> all = {{"leveldb", "real"}, {"leveldb", "disk"}};
  for (const std::string& engine : engine::engine_names()) {
    engine::EngineSpec spec;
    spec.name = engine;
    if (!engine::check_engine(spec) || engine == "raw") continue;  // not in this build, or not a database
    all.push_back({engine, "virtual"});
    all.push_back({engine, "directory"});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Engines, ToolKeptOf, ::testing::ValuesIn(unders()), [](const auto& each) {
  std::string name = each.param.engine + "_" + each.param.target;
  for (char& letter : name) letter = letter == '-' ? '_' : letter;
  return name;
});

TEST_F(ToolKept, FiguresAreTheRunsOwnAndTheDrivesStateContinues) {
  const Outcome filled = run({{"to", state("a")}}, phase("fillrandom"));
  ASSERT_TRUE(filled.status) << filled.status.message();
  const Outcome more = run({{"from", state("a")}, {"to", state("b")}}, phase("fillrandom"));
  ASSERT_TRUE(more.status) << more.status.message();
  const Json& before = filled.last()["kept"]["drive"];
  const Json& after = more.last()["kept"]["drive"];
  EXPECT_EQ(more.events.front()["kept"]["drive"], before);
  const std::uint64_t grown = whole(after["host_bytes_written"]) - whole(before["host_bytes_written"]);
  // In addition to the phase, opening and closing the database and unmounting write.
  EXPECT_GE(grown, whole(more.last()["host_bytes_written"]));
  EXPECT_LT(whole(more.last()["counters"]["host_bytes_written"]), whole(after["host_bytes_written"]));
  EXPECT_GE(after["mean_pe_cycles"], before["mean_pe_cycles"]);
  // The second phase draws other keys than the first, so more are live than after one phase.
  EXPECT_GT(whole(more.last()["live_user_bytes"]), whole(filled.last()["live_user_bytes"]) * 5 / 4);
}

TEST_F(ToolKept, AnotherDatabaseIsNextToTheFilesOrOnTheEmptiedDrive) {
  ASSERT_TRUE(run({{"to", state("a")}}, phase("fillseq")).status);
  request_["engine"] = {{"name", "rocksdb"}};
  const Outcome beside =
      run({{"from", state("a")}, {"takes", "files"}, {"database", "second"}, {"to", state("b")}}, phase("fillseq"));
  ASSERT_TRUE(beside.status) << beside.status.message();
  const Outcome emptied = run({{"from", state("a")}, {"takes", "drive"}, {"to", state("c")}}, phase("fillseq"));
  ASSERT_TRUE(emptied.status) << emptied.status.message();
  EXPECT_GT(whole(beside.last()["kept"]["drive"]["held_bytes"]),
            whole(emptied.last()["kept"]["drive"]["held_bytes"]) + kNum * kPairBytes);
  EXPECT_LT(whole(beside.last()["space_bytes"]), 2 * kNum * kPairBytes) << "the other database is not this run's space";
  // Both databases can be continued.
  EXPECT_EQ(run({{"from", state("b")}, {"database", "second"}}, phase("readrandom")).last()["not_found"], 0);
  request_["engine"] = {{"name", "leveldb"}};
  EXPECT_EQ(run({{"from", state("b")}}, phase("readrandom")).last()["not_found"], 0);
}

TEST_F(ToolKept, YcsbsRecordsAreThereForALaterRun) {
  const Json properties = {{"recordcount", 500}, {"fieldcount", 2}, {"fieldlength", 50}};
  const auto ycsb = [&](const std::string& workload, const Json& more) {
    Json of_phase = properties;
    of_phase.update(more);
    return Json{{"name", workload}, {"workload", workload}, {"ycsb", of_phase}};
  };
  ASSERT_TRUE(run({{"to", state("a")}}, ycsb("ycsb-load", Json::object())).status);
  const Json inserts = {
      {"operationcount", 200}, {"readproportion", 0}, {"updateproportion", 0}, {"insertproportion", 1}};
  const Outcome inserted = run({{"from", state("a")}, {"to", state("a")}}, ycsb("ycsb-run", inserts));
  ASSERT_TRUE(inserted.status) << inserted.status.message();
  const Json reads = {
      {"operationcount", 1000}, {"readproportion", 1}, {"updateproportion", 0}, {"requestdistribution", "latest"}};
  const Outcome read = run({{"from", state("a")}}, ycsb("ycsb-run", reads));
  ASSERT_TRUE(read.status) << read.status.message();
  EXPECT_EQ(read.last()["not_found"], 0);
  EXPECT_EQ(read.last()["live_user_bytes"], inserted.last()["live_user_bytes"]);
  Json other = reads;
  other["fieldlength"] = 60;
  expect_refused({{"from", state("a")}}, ycsb("ycsb-run", other),
                 "phases[0].ycsb.fieldlength is not that of phase \"ycsb-load\": the records are the same in all "
                 "phases, give it one value");
}

TEST_F(ToolKept, IsReplacedOnlyByARunThatHasDoneItsPhases) {
  ASSERT_TRUE(run({{"to", state("a")}}, phase("fillseq")).status);
  const auto before = states();
  const Json onto = {{"from", state("a")}, {"to", state("a")}};
  const Outcome stopped = run(onto, phase("overwrite"), /*stopped=*/true);
  ASSERT_TRUE(stopped.status);
  EXPECT_EQ(stopped.last()["complete"], false);
  EXPECT_EQ(states(), before);
  const Outcome filled = run({{"to", state("none")}}, phase("overwrite", 1 << 20), /*stopped=*/true);
  EXPECT_EQ(filled.last()["complete"], false);
  EXPECT_EQ(states(), before) << "a state that was not made leaves no directory";
}

TEST_F(ToolKept, ADriveThatIsFullKeepsNothing) {
  request_["target"]["drive"]["set"]["capacity.capacity_bytes"] = "16MiB";
  ASSERT_TRUE(run({{"to", state("a")}}, phase("fillseq")).status);
  const auto before = states();
  request_["load"]["num"] = 20 * kNum;
  request_["load"]["value_bytes"] = 380;
  const Outcome full = run({{"from", state("a")}, {"to", state("a")}},
                           {{"name", "fill"}, {"workload", "fillrandom"}, {"duration_s", 60}});
  EXPECT_EQ(full.status.fault(), Fault::drive_full) << full.status.message();
  EXPECT_EQ(states(), before);
}

TEST_F(ToolKept, WhatDoesNotFitIsRefusedWithBothSides) {
  ASSERT_TRUE(run({{"to", state("a")}}, phase("fillseq")).status);
  const Json from = {{"from", state("a")}};
  const std::string begins = "kept.from: " + state("a") + " ";
  const Json good = request_;
  const auto with = [&](const std::function<void(Json&)>& spoil, const Json& kept, const std::string& sentence) {
    request_ = good;
    spoil(request_);
    expect_refused(kept, phase("fillseq"), sentence);
  };
  const auto nothing = [](Json&) {};
  with(
      [](Json& r) {
        r["engine"] = {{"name", "rocksdb"}};
      },
      from,
      begins +
          "has a database \"database\" of the engine leveldb, and this run's is rocksdb; set engine.name to "
          "leveldb, or kept.takes to files or drive");
  with([](Json& r) { r["target"]["drive"]["set"]["capacity.spare_factor"] = "0.3"; }, from,
       begins +
           "was kept on the drive \"explicit\" with capacity.spare_factor = 0.2, and this run's drive has "
           "0.3; give both one value, or start from another state");
  with(
      [](Json& r) {
        r["fs"] = {{"size_bytes", 32 << 20}};
      },
      from,
      begins +
          "was kept on the drive \"explicit\" with fs.size_bytes = 0, and this run's drive has 33554432; "
          "give both one value, or start from another state");
  with(
      [](Json& r) {
        r["target"]["drive"] = {{"preset", "quickstart"}};
      },
      from,
      begins +
          "was kept on the drive \"explicit\", and this run is on the drive \"quickstart\"; give the run "
          "that drive, or start from another state");
  with(
      [](Json& r) {
        r["target"] = {{"kind", "directory"}};
      },
      from,
      begins +
          "was kept on the drive \"explicit\", and this run is on a plain directory; give the run that "
          "drive, or start from another state");
  with([](Json& r) { r["load"]["key_bytes"] = 24; }, from,
       begins + "has keys of 16 bytes in its database, and load.key_bytes is 24; set it to 16");
  with(nothing, {{"from", state("a")}, {"database", "other"}},
       begins + "has no database \"other\"; kept.database takes one of: database");
  with(nothing, {{"from", state("a")}, {"takes", "files"}},
       begins + "has a database \"database\", and the run begins an empty one; give kept.database another name");
  with(nothing, {{"from", state("none")}},
       "kept.from: " + state("none") + " holds no kept state; make it first, with a run that keeps it there");
  with(nothing, {{"from", state("a")}, {"takes", "all"}},
       "kept.takes \"all\" is not known; it takes database, files, drive");
  with(nothing, {{"to", state("b")}, {"database", "../b"}},
       "kept.database is \"../b\"; it takes a name of letters, digits, ., _ and -");
  with(nothing, {{"database", "b"}},
       "kept has neither from nor to; name a directory to start from, or one to keep what the run leaves");
  with(nothing, {{"to", temporary_.root().string()}},
       "kept.to: " + temporary_.root().string() + " holds something that is no kept state; name another directory");
}

TEST_F(ToolKept, OnADirectoryWhatIsAdvisedCanBeDone) {
  request_["target"] = {{"kind", "directory"}};
  const Json leveldb = request_["engine"];
  ASSERT_TRUE(run({{"to", state("a")}}, phase("fillseq")).status);
  request_["engine"] = {{"name", "rocksdb"}};
  ASSERT_TRUE(run({{"to", state("b")}}, phase("fillseq")).status);
  expect_refused({{"from", state("a")}}, phase("readrandom"),
                 "kept.from: " + state("a") +
                     " has a database \"database\" of the engine leveldb, and this run's is rocksdb; set engine.name "
                     "to leveldb, or start from another state");
  EXPECT_TRUE(run({{"from", state("b")}}, phase("readrandom")).status);
  request_["engine"] = leveldb;
  EXPECT_TRUE(run({{"from", state("a")}}, phase("readrandom")).status);
}

TEST_F(ToolKept, DamageIsRefusedAtAnyPlace) {
  ASSERT_TRUE(run({{"to", state("a")}}, phase("fillseq")).status);
  const Json document = Json::parse(file_bytes(state("a") + "/kept.json"));
  std::vector<std::string> files = {"kept.json"};
  for (const Json& entry : document["files"]) {
    if (entry["bytes"] > 0) files.push_back("1/" + entry["path"].get<std::string>());
  }
  ASSERT_GT(files.size(), 5U);
  const auto spoilt = [&](const std::string& file, const std::string& bytes, const std::string& how) {
    const std::string path = state("a") + "/" + file;
    const std::string good = file_bytes(path);
    std::filesystem::remove(path);
    if (how != "removed") std::ofstream(path, std::ios::binary) << bytes;
    const auto before = states();
    const Outcome outcome = run({{"from", state("a")}, {"to", state("a")}}, phase("overwrite"));
    EXPECT_EQ(outcome.status.fault(), Fault::bad_input) << file << " " << how << ": " << outcome.status.message();
    EXPECT_TRUE(outcome.status.message().starts_with("kept.")) << outcome.status.message();
    EXPECT_EQ(states(), before) << file << " " << how;
    EXPECT_FALSE(left_behind_);
    std::ofstream(path, std::ios::binary | std::ios::trunc) << good;
  };
  for (const std::string& file : files) {
    const std::string good = file_bytes(state("a") + "/" + file);
    std::string flipped = good;
    flipped[good.size() / 2] ^= 1;
    spoilt(file, flipped, "flipped");
    spoilt(file, good.substr(0, good.size() * 2 / 3), "truncated");
    spoilt(file, "", "removed");
  }
  std::string newer = file_bytes(state("a") + "/kept.json");
  newer.replace(newer.find("spillway-kept-1"), 15, "spillway-kept-2");
  spoilt("kept.json", newer, "newer");
  EXPECT_TRUE(run({{"from", state("a")}}, phase("readrandom")).status);
}

TEST_F(ToolKept, OneRunReplacesAStateWhileNoOtherUsesIt) {
  ASSERT_TRUE(run({{"to", state("a")}}, phase("fillseq")).status);
  const std::string in_use = state("a") + " is in use by another run; wait for its end or name another";
  KeptDirectory reader("kept.from", state("a"));
  ASSERT_TRUE(reader.open(KeptDirectory::Use::start_from));
  EXPECT_TRUE(run({{"from", state("a")}}, phase("readrandom")).status);
  expect_refused({{"from", state("a")}, {"to", state("a")}}, phase("overwrite"), "kept.from: " + in_use);
  KeptDirectory writer("kept.to", state("b"));
  ASSERT_TRUE(writer.open(KeptDirectory::Use::replace));
  expect_refused({{"to", state("b")}}, phase("fillseq"), "kept.to: " + state("b") + in_use.substr(state("a").size()));
}

TEST_F(ToolKept, WhatAKilledRunLeftIsRemoved) {
  ASSERT_TRUE(run({{"to", state("a")}}, phase("fillseq")).status);
  std::filesystem::create_directories(state("a") + "/2/files/database");
  std::ofstream(state("a") + "/2/files/database/half") << "half";
  std::ofstream(state("a") + "/kept.json.new") << "{";
  ASSERT_TRUE(run({{"from", state("a")}, {"to", state("a")}}, phase("overwrite")).status);
  EXPECT_FALSE(std::filesystem::exists(state("a") + "/1"));
  EXPECT_FALSE(std::filesystem::exists(state("a") + "/2/files/database/half"));
  EXPECT_EQ(run({{"from", state("a")}}, phase("readrandom")).last()["not_found"], 0);
  // Killed before it was created.
  std::filesystem::create_directories(state("b") + "/1");
  std::ofstream(state("b") + "/lock") << "";
  EXPECT_TRUE(run({{"to", state("b")}}, phase("fillseq")).status);
}

}  // namespace
}  // namespace spillway::tool
