// The probe's dialogue: its answers, its refusals, and its end.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "checkout.h"
#include "temporary_directory.h"
#include "tool/probe/command.h"
#include "tool_conversation.h"
#include "tool_pipe.h"

namespace spillway::tool {
namespace {

namespace filesystem = std::filesystem;

Outcome converse(const std::vector<std::string>& lines, bool stopped = false) {
  Pipe input;
  for (const std::string& line : lines) input.say(line + "\n");
  input.finish();
  LineReader reader(input.out());
  return outcome_of([&](Events& events, const std::atomic<bool>& stop) { return probe_command(reader, events, stop); },
                    stopped);
}

Json small_probe() { return {{"seed", 1}, {"target", simulated_target("64KiB")}}; }

TEST(Probe, AnswersEachLineInTurn) {
  const Outcome outcome = converse({small_probe().dump(), R"({"id": 5, "ios": 100})", "",
                                    R"({"id": 6, "read_share": 0.5, "iodepth": 4, "ios": 200, "ramp_ios": 10})",
                                    R"({"prepare": {"kind": "sequential", "capacities": 0.25}})", R"({"fill": 0.5})",
                                    R"({"id": 7, "seconds": 0.001})", R"({"end": true})", "never read"});
  ASSERT_TRUE(outcome.status) << outcome.status.message();
  std::vector<std::string> names;
  for (const Json& event : outcome.events) names.push_back(event["event"]);
  EXPECT_EQ(names, (std::vector<std::string>{"started", "ready", "measurement", "measurement", "ready", "ready",
                                             "measurement", "result"}));
  const auto points = outcome.named("measurement");
  EXPECT_EQ(points[0]["id"], 5);
  EXPECT_EQ(points[0]["ios"], 100);
  EXPECT_EQ(points[0]["reads"], 100);
  EXPECT_EQ(points[0]["host_bytes_read"], 100 * 4096);
  EXPECT_FALSE(points[0].contains("read_latency_us"));
  EXPECT_TRUE(points[0]["wa_device"].is_null());
  EXPECT_EQ(points[1]["reads"].get<int>() + points[1]["writes"].get<int>(), 200);
  EXPECT_EQ(points[1]["write_latency_us"]["count"], points[1]["writes"]);
  EXPECT_EQ(points[2]["seconds"], 0.001);
  const auto ready = outcome.named("ready");
  EXPECT_EQ(ready[0]["size_bytes"], 64 << 20);
  EXPECT_EQ(ready[0]["fill"], 1);
  EXPECT_EQ(ready[1]["written_bytes"], 16 << 20);
  EXPECT_EQ(ready[2]["fill"], 0.5);
  EXPECT_EQ(ready[2]["range_bytes"], 32 << 20);
  EXPECT_EQ(outcome.last()["points"], 3);
  EXPECT_EQ(outcome.last()["complete"], true);
}

TEST(Probe, ReadsTheContractsExamples) {
  std::ifstream file(checkout() / "contract" / "examples" / "probe.request.json");
  Json request = Json::parse(file);
  request["target"]["drive"]["preset_dirs"] = {(checkout() / "presets").string()};
  std::vector<std::string> lines = {request.dump()};
  std::ifstream further(checkout() / "contract" / "examples" / "probe.lines.jsonl");
  for (std::string line; std::getline(further, line);) lines.push_back(line);
  const Outcome outcome = converse(lines);
  ASSERT_TRUE(outcome.status) << outcome.status.message();
  EXPECT_EQ(outcome.last()["points"], 5);
}

TEST(Probe, TheEndOfTheInputEndsIt) {
  const Outcome outcome = converse({small_probe().dump()});
  ASSERT_TRUE(outcome.status) << outcome.status.message();
  EXPECT_EQ(outcome.last()["points"], 0);
  EXPECT_EQ(outcome.last()["complete"], true);
}

TEST(Probe, SameRequestSameBytes) {
  const auto told = [](int seed) {
    Json request = small_probe();
    request["seed"] = seed;
    Outcome outcome = converse({request.dump(), R"({"id": 1, "read_share": 0.5, "iodepth": 8, "ios": 5000})",
                                R"({"prepare": {"kind": "random", "capacities": 1}})",
                                R"({"id": 2, "pattern": "staggered", "numjobs": 4, "ios": 1000})"});
    std::string all;
    for (Json& event : outcome.events) {
      for (const char* of_the_host : {"cpu_s", "cpu_seconds", "peak_rss_bytes"}) event.erase(of_the_host);
      if (event["event"] != "progress") all += event.dump() + "\n";
    }
    return all;
  };
  EXPECT_EQ(told(1), told(1));
  EXPECT_NE(told(1), told(2));
}

TEST(Probe, AStopIsReported) {
  const Outcome outcome = converse({small_probe().dump(), R"({"id": 1, "ios": 100})"}, /*stopped=*/true);
  EXPECT_EQ(outcome.status.fault(), Fault::none) << outcome.status.message();
  EXPECT_EQ(outcome.last()["event"], "result");
  EXPECT_EQ(outcome.last()["complete"], false);
}

// A signal during the wait for the next line does not interrupt a read of standard input.
TEST(Probe, StopsWhileItWaitsForALine) {
  Pipe input;
  input.say(small_probe().dump() + "\n");
  LineReader reader(input.out());
  std::ostringstream out;
  Events events(out);
  std::atomic<bool> stop{false};
  Status status = Status::io_error("it has not ended");
  std::thread command([&] { status = probe_command(reader, events, stop); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  stop = true;
  command.join();
  EXPECT_TRUE(status) << status.message();
  EXPECT_NE(out.str().find(R"("complete":false)"), std::string::npos) << out.str();
}

TEST(Probe, StopsInAPointAndGivesWhatItHas) {
  Pipe input;
  input.say(small_probe().dump() + "\n" + R"({"id": 1, "ios": 1000000000})" + "\n");
  LineReader reader(input.out());
  std::ostringstream out;
  Events events(out);
  std::atomic<bool> stop{false};
  std::thread command([&] { EXPECT_TRUE(probe_command(reader, events, stop)); });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  stop = true;
  command.join();
  const std::string told = out.str();
  EXPECT_NE(told.rfind(R"({"event":"result")"), std::string::npos);
  EXPECT_EQ(told.find(R"("complete":true)", told.find(R"("event":"measurement")")), std::string::npos) << told;
}

struct Refusal {
  std::string line;
  const char* sentence;  // its beginning
};

TEST(Probe, RefusesALineInOneSentenceAndEnds) {
  const Refusal refusals[] = {
      {R"({"id": 9, "ios": 10, "bs_bytes": 1000})",
       "point 9: bs_bytes is 1000; it takes a multiple of the target's 512"},
      {R"({"id": 9, "ios": 10, "iodpth": 3})", "point 9: unknown key iodpth; did you mean iodepth?"},
      {R"({"id": 9, "ios": 10, "pattern": "randm"})",
       "point 9: pattern is \"randm\"; it takes one of random, sequential, staggered; did you mean random?"},
      {R"({"id": 9, "ios": 10, "engine": 3})", "point 9: engine is 3; it takes a text"},
      {R"({"id": 9, "ios": 0})", "point 9: ios is 0; it takes a whole number from 1"},
      {R"({"id": 9, "seconds": 0})", "point 9: seconds is 0; it takes a number from 1e-09"},
      {R"({"id": 9})", "point 9: ios and seconds are both missing; give one, or both"},
      {R"({"id": -1, "ios": 10})", "line 2: id is -1; it takes a whole number of 0 or more"},
      {R"({"id": "x", "ios": 10})", "line 2: id is \"x\"; it takes a whole number of 0 or more"},
      {R"({"ios": 10})", "line 2: unknown key ios"},
      {R"({})", "line 2: one command to a line: a point with its id, prepare, fill, or end"},
      {R"({"end": false})", "line 2: a line takes a point with its id, prepare, fill, or \"end\": true"},
      {R"({"fill": 2})", "line 2: fill is 2; it takes a number from 0 to 1"},
      {R"({"fill": 0.5, "end": true})", "line 2: one command to a line"},
      {R"({"prepare": {"kind": "seq"}})", "line 2: prepare.kind is \"seq\"; it takes one of sequential, random"},
      {R"({"prepare": {"kind": "random", "capacities": 0}})",
       "line 2: prepare.capacities is 0; it takes a number from"},
      {R"({"id": 9, "ios)", "line 2: not a JSON object; each line is one command, whole"},
      {R"(7)", "line 2: not a JSON object"},
  };
  for (const Refusal& refusal : refusals) {
    const Outcome outcome = converse({small_probe().dump(), refusal.line, R"({"id": 10, "ios": 10})"});
    EXPECT_EQ(outcome.status.fault(), Fault::bad_input) << refusal.line;
    EXPECT_TRUE(outcome.status.message().starts_with(refusal.sentence)) << outcome.status.message();
    EXPECT_EQ(outcome.last()["event"], "ready") << "nothing is measured after it";
  }
}

TEST(Probe, RefusesARequestInOneSentence) {
  const Refusal refusals[] = {
      {"", "standard input: its first line is not a JSON document"},
      {"{", "standard input: its first line is not a JSON document"},
      {R"({"target": {}})", "target.kind is missing; it takes one of simulated, paced, file, directory, device"},
      {R"({"target": {"kind": "files", "path": "x"}})", "target.kind is \"files\"; it takes one of"},
      {R"({"target": {"kind": "file"}})", "target.path is missing; it takes the path of the file to measure"},
      {R"({"target": {"kind": "device", "path": "/dev/null", "size_bytes": 4096}})",
       "target.size_bytes is 4096; it takes null for a device"},
      {R"({"target": {"kind": "device", "path": "/dev/null"}})", "/dev/null: not a block device"},
      {R"({"target": {"kind": "file", "path": "/no/such/file"}})",
       "/no/such/file: No such file or directory; give an existing file, or kind directory"},
      {R"({"target": {"kind": "directory", "path": "/no/such"}})", "/no/such: No such file or directory; give one"},
      {R"({"target": {"kind": "simulated", "drive": {"preset": "no-such-drive-at-all"}}})", "unknown preset"},
      {R"({"target": {"kind": "paced", "time_scale": 0}})", "target.time_scale is 0; it takes a number from"},
      {R"({"target": {"kind": "simulated", "drive": {"set": {"capacity.capacity_bytes": "64MiB"}},)"
       R"( "initial": {"kind": "stedy"}}})",
       "initial.kind \"stedy\" is not known"},
      {R"({"targets": {}})", "unknown key targets; did you mean target?"},
      {R"({"target": {"kind": "simulated", "distroy_data": true}})", "unknown key target.distroy_data"},
  };
  for (const Refusal& refusal : refusals) {
    const Outcome outcome = converse({refusal.line});
    EXPECT_EQ(outcome.status.fault(), Fault::bad_input) << refusal.line;
    EXPECT_TRUE(outcome.status.message().starts_with(refusal.sentence)) << outcome.status.message();
    EXPECT_TRUE(outcome.named("ready").empty());
  }
}

TEST(LineReader, GivesLinesHoweverTheyCome) {
  Pipe input;
  LineReader reader(input.out());
  const std::atomic<bool> stop{false};
  input.say("one\n\n  \ntw");
  EXPECT_EQ(reader.next(stop), "one");
  EXPECT_EQ(reader.number(), 1);
  input.say("o\nthree");
  EXPECT_EQ(reader.next(stop), "two");
  EXPECT_EQ(reader.number(), 4);
  input.finish();
  EXPECT_EQ(reader.next(stop), "three");
  EXPECT_EQ(reader.next(stop), std::nullopt);
}

}  // namespace
}  // namespace spillway::tool
