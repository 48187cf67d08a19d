// The drive commands: valid requests, refusals, and that a request determines its result.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/file_bytes.h"
#include "checkout.h"
#include "temporary_directory.h"
#include "tool/ssd/commands.h"
#include "tool_conversation.h"

namespace spillway::tool {
namespace {

namespace filesystem = std::filesystem;

Outcome perform(Command command, const Json& request, bool stopped = false) {
  return outcome_of([&](Events& events, const std::atomic<bool>& stop) { return command(request, events, stop); },
                    stopped);
}

// A write cache of one flash page per plane.
Json small_request() {
  return {{"drive", small_drive("64KiB")},
          {"initial", {{"kind", "steady"}}},
          {"seed", 1},
          {"workload", {{"name", "randwrite"}, {"writes_capacities", 2.0}}}};
}

Json request_with(const std::string& pointer, const Json& value) {
  Json request = small_request();
  request[Json::json_pointer(pointer)] = value;
  return request;
}

TEST(SsdSimulate, GivesEveryFieldOfTheContract) {
  const Outcome outcome = perform(ssd_simulate, small_request());
  ASSERT_TRUE(outcome.status) << outcome.status.message();
  EXPECT_EQ(outcome.events.front()["event"], "started");
  EXPECT_EQ(outcome.events.front()["contract"], Json({1, 7}));
  EXPECT_EQ(outcome.events.front()["drive"]["capacity"]["spare_factor"], 0.2);
  const Json& result = outcome.last();
  EXPECT_EQ(result["event"], "result");
  for (const char* field :
       {"ios", "iops", "bandwidth_mb_s", "latency_us", "wa_device", "host_bytes_written", "host_bytes_read",
        "nand_bytes_programmed", "gc_victim_valid_mean", "erases", "unmapped_reads", "simulated_seconds", "cpu_seconds",
        "setup_cpu_seconds", "peak_rss_bytes", "counters", "capacity_bytes", "wear", "complete"}) {
    EXPECT_TRUE(result.contains(field)) << field;
  }
  EXPECT_EQ(result["complete"], true);
  EXPECT_EQ(result["ios"], 32768);
  EXPECT_EQ(result["host_bytes_written"], 2 * (64 << 20));
  EXPECT_EQ(result["capacity_bytes"], 64 << 20);
  EXPECT_EQ(result["wear"]["rated_pe_cycles"], 3000);
  EXPECT_GE(result["wear"]["physical_bytes"].get<double>(), 1.25 * (64 << 20));
  EXPECT_GT(result["wear"]["mean_pe_cycles"].get<double>(), 0);
}

TEST(SsdSimulate, AccountsForEveryByte) {
  const Json result = perform(ssd_simulate, small_request()).last();
  const Json& nand = result["nand_bytes_programmed"];
  const auto total = nand["host"].get<double>() + nand["gc"].get<double>() + nand["mapping"].get<double>() +
                     nand["wear"].get<double>();
  EXPECT_DOUBLE_EQ(result["wa_device"].get<double>(), total / result["host_bytes_written"].get<double>());
  // Every host byte is programmed unless it was overwritten in the cache. Padding is added.
  const auto absorbed = result["counters"]["write_cache_overwrites"].get<double>() * 4096;
  EXPECT_GE(nand["host"].get<double>(), result["host_bytes_written"].get<double>() - absorbed);
  EXPECT_GT(result["gc_victim_valid_mean"].get<double>(), 0);
  EXPECT_LT(result["gc_victim_valid_mean"].get<double>(), 1);
}

TEST(SsdSimulate, SameRequestSameBytes) {
  for (const char* name : {"randwrite", "mixed", "hotcold", "seqread"}) {
    const auto bytes = [name] {
      Outcome outcome = perform(ssd_simulate, request_with("/workload/name", name));
      std::string all;
      for (Json& event : outcome.events) {
        if (event["event"] == "progress") continue;  // depends on the wall clock
        for (const char* of_the_host : {"cpu_seconds", "setup_cpu_seconds", "peak_rss_bytes"}) event.erase(of_the_host);
        all += event.dump() + "\n";
      }
      return all;
    };
    const std::string first = bytes();
    EXPECT_EQ(first, bytes()) << name;
    EXPECT_GT(first.size(), 1000U);
  }
}

TEST(SsdSimulate, AnotherSeedGivesOtherBytes) {
  const Json one = perform(ssd_simulate, small_request()).last();
  const Json two = perform(ssd_simulate, request_with("/seed", 2)).last();
  EXPECT_NE(one["nand_bytes_programmed"], two["nand_bytes_programmed"]);
}

TEST(SsdSimulate, ReadsWriteNothingAndFindTheFilledData) {
  const Json result = perform(ssd_simulate, request_with("/workload/name", "randread")).last();
  EXPECT_TRUE(result["wa_device"].is_null());
  EXPECT_EQ(result["host_bytes_written"], 0);
  EXPECT_EQ(result["unmapped_reads"], 0);
  Json empty = request_with("/workload/name", "randread");
  empty["initial"]["kind"] = "trimmed";
  EXPECT_EQ(perform(ssd_simulate, empty).last()["unmapped_reads"], 32768);
}

TEST(SsdSimulate, SequentialWritesToAnEmptyDriveAreNotAmplified) {
  Json request = request_with("/workload/name", "seqwrite");
  request["initial"]["kind"] = "trimmed";
  request["workload"]["writes_capacities"] = 1.0;
  request["workload"]["bs_bytes"] = 65536;
  const Json result = perform(ssd_simulate, request).last();
  EXPECT_NEAR(result["wa_device"].get<double>(), 1.0, 0.01);
  EXPECT_EQ(result["ios"], 1024);
}

TEST(SsdSimulate, CountsCommandsWhenAskedTo) {
  Json request = request_with("/workload/ios", 777);
  request["workload"]["name"] = "mixed";
  request["workload"]["read_share"] = 0.75;
  const Json result = perform(ssd_simulate, request).last();
  EXPECT_EQ(result["ios"], 777);
  EXPECT_EQ(result["latency_us"]["count"], 777);
  EXPECT_NEAR(result["counters"]["host_reads"].get<double>(), 777 * 0.75, 60);
  request["workload"]["ios"] = 0;
  EXPECT_EQ(perform(ssd_simulate, request).last()["complete"], true);
}

TEST(SsdSimulate, WritesOfAMixComeToTheMultipleOfTheCapacity) {
  Json request = request_with("/workload/name", "mixed");
  request["workload"]["read_share"] = 0.5;
  const Json result = perform(ssd_simulate, request).last();
  EXPECT_NEAR(result["host_bytes_written"].get<double>(), 2.0 * (64 << 20), 0.03 * 2 * (64 << 20));
}

// Skewed traffic is skewed: the smaller the hot space, the more overwrites are absorbed by the cache.
TEST(SsdSimulate, HotTrafficIsHot) {
  Json request = request_with("/workload/name", "hotcold");
  request["workload"]["hot_space"] = 0.001;
  request["workload"]["hot_traffic"] = 0.9;
  const Json hot = perform(ssd_simulate, request).last();
  request["workload"]["hot_space"] = 0.9;
  const Json even = perform(ssd_simulate, request).last();
  EXPECT_GT(hot["counters"]["write_cache_overwrites"].get<int>(),
            10 * even["counters"]["write_cache_overwrites"].get<int>());
}

TEST(SsdSimulate, StaysWithinItsRange) {
  Json request = request_with("/workload/range", 0.25);
  request["initial"] = {{"kind", "sequential"}, {"fill", 0.25}, {"warmup_capacities", 1.0}};
  EXPECT_EQ(perform(ssd_simulate, request_with("/workload/range", 1.0)).last()["complete"], true);
  request["workload"]["name"] = "randread";
  EXPECT_EQ(perform(ssd_simulate, request).last()["unmapped_reads"], 0);
  request["workload"].erase("range");
  EXPECT_EQ(perform(ssd_simulate, request).last()["unmapped_reads"], 0) << "the default range is what was filled";
}

TEST(SsdSimulate, EndsEarlyWithAnIncompleteResult) {
  const Outcome outcome = perform(ssd_simulate, small_request(), /*stopped=*/true);
  ASSERT_TRUE(outcome.status) << outcome.status.message();
  EXPECT_EQ(outcome.last()["event"], "result");
  EXPECT_EQ(outcome.last()["complete"], false);
}

// A thousand times longer than the test may take.
const Json kEndless = {{"kind", "sequential"}, {"warmup_capacities", 1e6}};

TEST(SsdSimulate, IsStoppedWhileTheDriveIsPrepared) {
  const Outcome outcome = perform(ssd_simulate, request_with("/initial", kEndless), /*stopped=*/true);
  ASSERT_TRUE(outcome.status) << outcome.status.message();
  EXPECT_EQ(outcome.last()["complete"], false);
  EXPECT_EQ(outcome.last()["ios"], 0);
}

TEST(SsdPrecondition, StoppedItLeavesNoStateAndNotTheOldOneChanged) {
  const TemporaryDirectory directory;
  Json request = request_with("/initial", kEndless);
  request.erase("workload");
  request["state"] = directory.path("new.state");
  const Outcome outcome = perform(ssd_precondition, request, /*stopped=*/true);
  ASSERT_TRUE(outcome.status) << outcome.status.message();
  EXPECT_EQ(outcome.last()["event"], "result");
  EXPECT_EQ(outcome.last()["complete"], false);
  EXPECT_EQ(directory.entries(), 0);

  const std::string old = directory.path("old.state");
  std::ofstream(old) << "what was there";
  request["state"] = old;
  EXPECT_EQ(perform(ssd_precondition, request, /*stopped=*/true).last()["complete"], false);
  EXPECT_EQ(file_bytes(old), "what was there");
}

struct Refusal {
  const char* pointer;
  Json value;
  const char* sentence;  // its beginning
};

TEST(SsdSimulate, RefusesInOneSentenceThatNamesTheKey) {
  const Refusal refusals[] = {
      {"/workloads", {{"name", "randread"}}, "unknown key workloads; did you mean workload?"},
      {"/workload/iodepht", 3, "unknown key workload.iodepht; did you mean workload.iodepth?"},
      {"/workload/name", "randwrit", "workload.name \"randwrit\" is not known; did you mean randwrite?"},
      {"/workload/name", 3, "workload.name is 3; it takes a text"},
      {"/workload/iodepth", 0, "workload.iodepth is 0; it takes a whole number from 1 to 65536"},
      {"/workload/iodepth", -4, "workload.iodepth is -4; it takes a whole number from 1 to 65536"},
      {"/workload/bs_bytes", 1000, "workload.bs_bytes is 1000; it takes a multiple of the drive's 512-byte LBAs"},
      {"/workload/range", 1.5, "workload.range is 1.5; it takes a number from 0 to 1"},
      {"/workload/range", 0, "workload.range holds 0 bytes, less than one io"},
      {"/workload", 5, "workload is 5; it takes an object"},
      {"/initial/kind", "stedy", "initial.kind \"stedy\" is not known; did you mean steady?"},
      {"/initial/fill", 2, "initial.fill is 2; it takes a number from 0 to 1"},
      {"/initial/kind", "file", "initial.path is missing"},
      {"/seed", "one", "seed is \"one\"; it takes a whole number"},
      {"/drive/presets", "x", "unknown key drive.presets; did you mean drive.preset?"},
      {"/drive/preset", "no-such-drive-at-all", "unknown preset \"no-such-drive-at-all\""},
      {"/drive/set", Json::array(), "drive.set is []; it takes an object"},
      {"/drive/set/gc.policy", "lifo", "--set: gc.policy is 'lifo'; it takes "},
      {"/drive/set/capacity.spare_factor", "0", "capacity.spare_factor"},
      {"/drive/set/capacity.capacity_bytes", "4KiB", "--set: capacity.capacity_bytes: "},
  };
  for (const Refusal& refusal : refusals) {
    const Outcome outcome = perform(ssd_simulate, request_with(refusal.pointer, refusal.value));
    EXPECT_EQ(outcome.status.fault(), Fault::bad_input) << refusal.pointer;
    EXPECT_TRUE(outcome.status.message().starts_with(refusal.sentence)) << outcome.status.message();
    for (const Json& event : outcome.events) EXPECT_NE(event["event"], "result");
  }
}

TEST(SsdSimulate, ReadsTheContractsExample) {
  std::ifstream file(checkout() / "contract" / "examples" / "ssd-simulate.request.json");
  Json request = Json::parse(file);
  request["drive"]["preset_dirs"] = {(checkout() / "presets").string()};
  request["workload"]["ios"] = 1000;
  const Outcome outcome = perform(ssd_simulate, request);
  ASSERT_TRUE(outcome.status) << outcome.status.message();
  EXPECT_EQ(outcome.last()["ios"], 1000);
}

TEST(SsdPrecondition, SavesAStateThatSimulateStartsFrom) {
  const TemporaryDirectory directory;
  const std::string state = directory.path("steady.state");
  Json request = small_request();
  request.erase("workload");
  request["state"] = state;
  const Outcome made = perform(ssd_precondition, request);
  ASSERT_TRUE(made.status) << made.status.message();
  EXPECT_EQ(made.last()["state"], state);
  EXPECT_EQ(made.last()["complete"], true);

  const Json from_file = request_with("/initial", {{"kind", "file"}, {"path", state}});
  const Outcome loaded = perform(ssd_simulate, from_file);
  ASSERT_TRUE(loaded.status) << loaded.status.message();
  const double wa_loaded = loaded.last()["wa_device"].get<double>();
  const double wa_made = perform(ssd_simulate, small_request()).last()["wa_device"].get<double>();
  EXPECT_NEAR(wa_loaded, wa_made, 0.05 * wa_made);

  request.erase("state");
  EXPECT_EQ(perform(ssd_precondition, request).status.message(),
            "state is missing; it takes the path of the file to write");
}

TEST(SsdShow, ShowsTheResolvedDriveAndWhatItComesTo) {
  const Outcome outcome = perform(ssd_show, {{"drive", small_request()["drive"]}});
  ASSERT_TRUE(outcome.status) << outcome.status.message();
  const Json& result = outcome.last();
  EXPECT_EQ(result["drive"]["geometry"]["channels"], 2);
  EXPECT_EQ(result["drive"]["gc"]["policy"], "greedy");
  EXPECT_EQ(result["drive"]["sources"]["geometry.channels"], "--set");
  EXPECT_EQ(result["layout"]["capacity_bytes"], 64 << 20);
  EXPECT_EQ(result["layout"]["logical_units"], 16384);
  EXPECT_EQ(result["complete"], true);
}

}  // namespace
}  // namespace spillway::tool
