// `ssd-interact`: what a program that holds a drive gets back, the time that passes for it, refusals, and its end.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "checkout.h"
#include "tool/ssd/commands.h"
#include "tool_conversation.h"
#include "tool_pipe.h"

namespace spillway::tool {
namespace {

Outcome interact(const std::vector<std::string>& lines, bool stopped = false) {
  Pipe input;
  for (const std::string& line : lines) input.say(line + "\n");
  input.finish();
  LineReader reader(input.out());
  return outcome_of([&](Events& events, const std::atomic<bool>& stop) { return ssd_interact(reader, events, stop); },
                    stopped);
}

Json held_request() { return {{"drive", small_drive("0")}, {"initial", {{"kind", "steady"}}}, {"seed", 1}}; }

// A drive whose host stack keeps a thread busy for 8 us to issue a write.
Json request_with_stack(bool threads) {
  return {{"drive",
           {{"preset", "intel-p4510"},
            {"preset_dirs", {(checkout() / "presets").string()}},
            {"set", {{"capacity.capacity_bytes", "256MiB"}}}}},
          {"initial", {{"kind", "steady"}}},
          {"threads", threads}};
}

std::vector<Json> completions_of(const std::vector<std::string>& lines, const Json& request = held_request()) {
  std::vector<std::string> all = {request.dump()};
  all.insert(all.end(), lines.begin(), lines.end());
  const Outcome outcome = interact(all);
  EXPECT_TRUE(outcome.status) << outcome.status.message();
  return outcome.named("completions");
}

constexpr const char* kWriteFour =
    R"({"submit": {"op": "wwww", "offset_bytes": [0, 4096, 8192, 12288], "length_bytes": 4096}, "wait": 4})";
constexpr const char* kReadFour =
    R"({"submit": {"op": "rrrr", "offset_bytes": [0, 4096, 8192, 12288], "length_bytes": 4096}, "wait": 4})";

TEST(Interact, AnswersEachLineInTurn) {
  const Outcome outcome =
      interact({held_request().dump(), kReadFour,
                R"({"submit": {"op": "rw", "offset_bytes": [0, 4096], "length_bytes": [8192, 512]}})", R"({"wait": 1})",
                R"({"wait": 1})", R"({"spend_ns": 5000})", R"({"end": true})", "never read"});
  ASSERT_TRUE(outcome.status) << outcome.status.message();
  std::vector<std::string> names;
  for (const Json& event : outcome.events) names.push_back(event["event"]);
  EXPECT_EQ(names, (std::vector<std::string>{"started", "ready", "completions", "completions", "completions",
                                             "completions", "completions", "result"}));
  const auto done = outcome.named("completions");
  std::vector<int> numbers = done[0]["io"];
  std::sort(numbers.begin(), numbers.end());
  EXPECT_EQ(numbers, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(done[0]["in_flight"], 0);
  EXPECT_EQ(done[1]["io"], Json::array()) << "a line that does not wait is told of no completion";
  EXPECT_EQ(done[1]["in_flight"], 2);
  EXPECT_EQ(done[1]["now_ns"], done[0]["now_ns"]) << "no time passes for one that does not wait";
  EXPECT_EQ(done[2]["io"].size() + done[3]["io"].size(), 2U);
  EXPECT_EQ(done[4]["now_ns"].get<int>(), done[3]["now_ns"].get<int>() + 5000);
  const Json& result = outcome.last();
  EXPECT_EQ(result["ios"], 6);
  EXPECT_EQ(result["host_bytes_read"], 4 * 4096 + 8192);
  EXPECT_EQ(result["host_bytes_written"], 512);
  EXPECT_EQ(result["unmapped_reads"], 0);
  EXPECT_EQ(result["complete"], true);
  EXPECT_DOUBLE_EQ(result["simulated_seconds"], done[4]["now_ns"].get<double>() / 1e9);
}

TEST(Interact, TellsWhatTheDriveHolds) {
  Json request = held_request();
  request["initial"]["fill"] = 0.5;
  Json ready = interact({request.dump()}).named("ready").front();
  EXPECT_EQ(ready["kind"], "simulated");
  EXPECT_EQ(ready["size_bytes"], 64 << 20);
  EXPECT_EQ(ready["range_bytes"], 32 << 20);
  EXPECT_EQ(ready["fill"], 0.5);
  EXPECT_EQ(ready["lba_bytes"], 512);
  request["initial"] = {{"kind", "trimmed"}};
  ready = interact({request.dump()}).named("ready").front();
  EXPECT_EQ(ready["range_bytes"], 64 << 20);
  EXPECT_EQ(ready["fill"], 0);
}

TEST(Interact, ReadsTheContractsExamples) {
  std::ifstream file(checkout() / "contract" / "examples" / "ssd-interact.request.json");
  Json request = Json::parse(file);
  request["drive"]["preset_dirs"] = {(checkout() / "presets").string()};
  std::vector<std::string> lines = {request.dump()};
  std::ifstream further(checkout() / "contract" / "examples" / "ssd-interact.lines.jsonl");
  for (std::string line; std::getline(further, line);) lines.push_back(line);
  const Outcome outcome = interact(lines);
  ASSERT_TRUE(outcome.status) << outcome.status.message();
  EXPECT_EQ(outcome.named("completions").size() + 2, lines.size()) << "all but the request and the end";
}

// Time is that of the last completion that was waited for, and completions come in its order.
TEST(Interact, AWaitEndsWithItsLastCompletion) {
  std::string op(64, 'r');
  Json offsets = Json::array();
  for (int i = 0; i < 64; ++i) offsets.push_back((i * 7919) % 16384 * 4096);
  std::vector<std::string> lines = {
      Json({{"submit", {{"op", op}, {"offset_bytes", offsets}, {"length_bytes", 4096}}}}).dump()};
  for (int i = 0; i < 8; ++i) lines.push_back(R"({"wait": 1})");
  std::int64_t last = 0;
  std::size_t seen = 0;
  const auto done = completions_of(lines);
  for (std::size_t i = 1; i < done.size(); ++i) {
    ASSERT_GE(done[i]["io"].size(), 1U);
    seen += done[i]["io"].size();
    for (const Json& at : done[i]["completed_ns"]) {
      EXPECT_GE(at.get<std::int64_t>(), last);
      last = at;
    }
    EXPECT_EQ(done[i]["now_ns"], last);
    EXPECT_EQ(done[i]["in_flight"], 64 - seen);
  }
}

TEST(Interact, SeveralAtOnceTakeLessThanOneAfterAnother) {
  const std::int64_t at_once = completions_of({kReadFour}).back()["now_ns"];
  std::vector<std::string> one_by_one;
  for (int i = 0; i < 4; ++i) {
    one_by_one.push_back(
        Json({{"submit", {{"op", "r"}, {"offset_bytes", {i * 4096}}, {"length_bytes", 4096}}}, {"wait", 1}}).dump());
  }
  EXPECT_LT(at_once, completions_of(one_by_one).back()["now_ns"].get<std::int64_t>());
}

TEST(Interact, SameLinesSameBytes) {
  const auto told = [](int seed) {
    Json request = held_request();
    request["seed"] = seed;
    request["initial"]["warmup_capacities"] = 0.1;
    std::vector<std::string> lines = {request.dump()};
    for (int i = 0; i < 200; ++i) {
      lines.push_back(
          Json({{"submit", {{"op", "ww"}, {"offset_bytes", {i * 65536, i * 131072}}, {"length_bytes", 4096}}},
                {"wait", 1}})
              .dump());
    }
    std::string all;
    for (Json& event : interact(lines).events) {
      for (const char* of_the_host : {"cpu_seconds", "setup_cpu_seconds", "peak_rss_bytes"}) event.erase(of_the_host);
      if (event["event"] != "progress") all += event.dump() + "\n";
    }
    return all;
  };
  EXPECT_EQ(told(1), told(1));
  EXPECT_NE(told(1), told(2));
}

// One thread issues one io after another: the fourth is submitted three times the issue's cost after the first.
TEST(Interact, OneThreadIssuesOneAfterAnother) {
  const auto submitted = [](bool threads) {
    std::vector<std::int64_t> at = completions_of({kWriteFour}, request_with_stack(threads)).back()["submitted_ns"];
    std::sort(at.begin(), at.end());
    return at;
  };
  EXPECT_EQ(submitted(false), (std::vector<std::int64_t>{0, 8000, 16000, 24000}));
  EXPECT_EQ(submitted(true), (std::vector<std::int64_t>{0, 0, 0, 0}));
}

// The thread that issues is the one that works: its work begins when it has issued.
TEST(Interact, WorkBeginsAfterIssuing) {
  const auto done = completions_of(
      {R"({"submit": {"op": "ww", "offset_bytes": [0, 4096], "length_bytes": 4096}})", R"({"spend_ns": 100})"},
      request_with_stack(false));
  EXPECT_EQ(done.back()["now_ns"], 16100);
}

TEST(Interact, TheEndOfTheInputEndsItWithWhatIsInFlight) {
  const Outcome outcome =
      interact({held_request().dump(), R"({"submit": {"op": "w", "offset_bytes": [0], "length_bytes": 4096}})"});
  ASSERT_TRUE(outcome.status) << outcome.status.message();
  EXPECT_EQ(outcome.last()["event"], "result");
  EXPECT_EQ(outcome.last()["host_bytes_written"], 4096);
  EXPECT_GT(outcome.last()["simulated_seconds"].get<double>(), 0) << "what is in flight is waited for";
}

TEST(Interact, AStopIsReported) {
  for (const bool with_request : {true, false}) {
    const Outcome outcome =
        interact(with_request ? std::vector<std::string>{held_request().dump()} : std::vector<std::string>{}, true);
    EXPECT_TRUE(outcome.status) << outcome.status.message();
    EXPECT_EQ(outcome.last()["event"], "result");
    EXPECT_EQ(outcome.last()["complete"], false);
  }
}

TEST(Interact, StopsWhileItWaitsForALine) {
  Pipe input;
  input.say(held_request().dump() + "\n");
  LineReader reader(input.out());
  std::ostringstream out;
  Events events(out);
  std::atomic<bool> stop{false};
  Status status = Status::io_error("it has not ended");
  std::thread command([&] { status = ssd_interact(reader, events, stop); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  stop = true;
  command.join();
  EXPECT_TRUE(status) << status.message();
  EXPECT_NE(out.str().find(R"("complete":false)"), std::string::npos) << out.str();
}

// Writes everywhere, on a drive whose flash is all data.
TEST(Interact, AFullDriveIsAFailure) {
  Json request = held_request();
  request["drive"]["set"]["capacity.spare_factor"] = "0";
  request["initial"]["kind"] = "sequential";
  std::vector<std::string> lines = {request.dump()};
  for (int i = 0; i < 20000; ++i) {
    lines.push_back(
        Json({{"submit", {{"op", "w"}, {"offset_bytes", {(i * 7919LL) % 16384 * 4096}}, {"length_bytes", 4096}}},
              {"wait", 1}})
            .dump());
  }
  std::ostringstream out;
  Events events(out);
  const std::atomic<bool> stop{false};
  Pipe input;
  std::thread writer([&] {
    for (const std::string& line : lines) input.say(line + "\n");
    input.finish();
  });
  LineReader reader(input.out());
  const Status status = ssd_interact(reader, events, stop);
  while (reader.next(stop)) continue;  // so that the writer ends
  writer.join();
  EXPECT_EQ(status.fault(), Fault::drive_full) << status.message();
}

struct RefusedLine {
  std::string line;
  const char* sentence;  // its beginning
};

TEST(Interact, RefusesALineInOneSentenceAndEnds) {
  const RefusedLine refusals[] = {
      {R"({"submit": {"op": "rx", "offset_bytes": [0, 0]}})", "line 2: submit.op has \"x\" at 1; it takes r or w"},
      {R"({"submit": {"op": "", "offset_bytes": []}})", "line 2: submit.op is missing or empty"},
      {R"({"submit": {"offset_bytes": [0]}})", "line 2: submit.op is missing or empty"},
      {R"({"submit": {"op": 3}})", "line 2: submit.op is 3; it takes a text"},
      {R"({"submit": [0]})", "line 2: submit is [0]; it takes an object"},
      {R"({"submit": {"op": "r"}})", "line 2: submit.offset_bytes takes a list with one offset for each"},
      {R"({"submit": {"op": "r", "offset_bytes": [0, 4096]}})", "line 2: submit.offset_bytes takes a list with one"},
      {R"({"submit": {"op": "r", "offset_bytes": [-1]}})", "line 2: submit.offset_bytes[0] is -1; it takes a whole"},
      {R"({"submit": {"op": "r", "offset_bytes": [0.5]}})", "line 2: submit.offset_bytes[0] is 0.5; it takes a whole"},
      {R"({"submit": {"op": "r", "offset_bytes": [100]}})",
       "line 2: submit.offset_bytes[0] is 100; it takes a multiple of the drive's 512-byte LBAs"},
      {R"({"submit": {"op": "rr", "offset_bytes": [0, 0], "length_bytes": [512]}})",
       "line 2: submit.length_bytes has 1 lengths and submit.op 2 letters; give one length, or one for each"},
      {R"({"submit": {"op": "r", "offset_bytes": [0], "length_bytes": "4KiB"}})",
       "line 2: submit.length_bytes is \"4KiB\"; it takes a whole number"},
      {R"({"submit": {"op": "rr", "offset_bytes": [0, 0], "length_bytes": [512, 0]}})",
       "line 2: submit.length_bytes[1] is 0; it takes a multiple of the drive's 512-byte LBAs, at least one"},
      {R"({"submit": {"op": "r", "offset_bytes": [67108864]}})",
       "line 2: submit: io 0 ends at byte 67112960; the drive has 67108864"},
      {R"({"submit": {"op": "r", "offset_bytes": [9223372036854775296]}})", "line 2: submit: io 0 ends at byte"},
      {R"({"submit": {"op": "r", "offset_bytes": [0]}, "wait": 2})", "line 2: wait is 2, and 1 ios are in flight"},
      {R"({"wait": 1})", "line 2: wait is 1, and 0 ios are in flight"},
      {R"({"wait": -1})", "line 2: wait is -1; it takes a whole number from 0"},
      {R"({"spend_ns": 1e9})", "line 2: spend_ns is 1000000000.0; it takes a whole number"},
      {R"({"wiat": 1})", "line 2: unknown key wiat; did you mean wait?"},
      {R"({"end": false})", "line 2: a line takes spend_ns, submit and wait"},
      {R"({"end": true, "wait": 0})", "line 2: a line takes spend_ns, submit and wait"},
      {R"({})", "line 2: a line takes spend_ns, submit and wait"},
      {R"({"wait")", "line 2: not a JSON object; each line is one command, whole"},
      {R"(7)", "line 2: not a JSON object"},
  };
  for (const RefusedLine& refusal : refusals) {
    const Outcome outcome = interact({held_request().dump(), refusal.line, kReadFour});
    EXPECT_EQ(outcome.status.fault(), Fault::bad_input) << refusal.line;
    EXPECT_TRUE(outcome.status.message().starts_with(refusal.sentence)) << outcome.status.message();
    EXPECT_EQ(outcome.last()["event"], "ready") << "nothing is submitted after it";
  }
}

TEST(Interact, RefusesMoreThanAQueueHolds) {
  const std::string op(65536, 'r');
  const Json full = {{"submit", {{"op", op}, {"offset_bytes", std::vector<int>(65536, 0)}, {"length_bytes", 512}}}};
  const Outcome outcome = [&] {
    Pipe input;
    std::thread writer([&] {
      input.say(held_request().dump() + "\n" + full.dump() + "\n" + kReadFour + "\n");
      input.finish();
    });
    LineReader reader(input.out());
    Outcome found =
        outcome_of([&](Events& events, const std::atomic<bool>& stop) { return ssd_interact(reader, events, stop); });
    writer.join();
    return found;
  }();
  EXPECT_EQ(outcome.status.message(), "line 3: submit: 65540 ios would be in flight; at most 65536 may be");
}

TEST(Interact, RefusesARequestInOneSentence) {
  const RefusedLine refusals[] = {
      {"", "standard input: its first line is not a JSON document; give the request of ssd-interact on it"},
      {"{", "standard input: its first line is not a JSON document"},
      {R"({"sed": 1})", "unknown key sed; did you mean seed?"},
      {R"({"threads": 1})", "threads is 1; it takes true or false"},
      {R"({"drive": {"preset": "no-such-drive-at-all"}})", "unknown preset"},
      {R"({"drive": {"set": {"capacity.capacity_bytes": "64MiB"}}, "initial": {"kind": "stedy"}})",
       "initial.kind \"stedy\" is not known"},
  };
  for (const RefusedLine& refusal : refusals) {
    const Outcome outcome = interact({refusal.line});
    EXPECT_EQ(outcome.status.fault(), Fault::bad_input) << refusal.line;
    EXPECT_TRUE(outcome.status.message().starts_with(refusal.sentence)) << outcome.status.message();
    EXPECT_TRUE(outcome.named("ready").empty());
  }
}

}  // namespace
}  // namespace spillway::tool
