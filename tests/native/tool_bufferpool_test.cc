// `bufferpool`: valid requests and their results, refusals, and that a request determines its result.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "base/file_bytes.h"
#include "device/direct/direct_device.h"
#include "needs.h"
#include "temporary_directory.h"
#include "tool/pool/command.h"
#include "tool_conversation.h"

namespace spillway::tool {
namespace {

Outcome perform(const Json& request, bool stopped = false) {
  return outcome_of([&](Events& events, const std::atomic<bool>& stop) { return bufferpool(request, events, stop); },
                    stopped);
}

Json small_request() {
  return {{"seed", 1},
          {"target", simulated_target("0")},
          {"pool", {{"pages", 256}, {"write_back", 4}}},
          {"workload", {{"operations", 4000}}}};
}

Json request_with(const std::string& pointer, const Json& value) {
  Json request = small_request();
  request[Json::json_pointer(pointer)] = value;
  return request;
}

std::string refusal(const Json& request) {
  const Outcome outcome = perform(request);
  EXPECT_EQ(outcome.status.fault(), Fault::bad_input);
  return outcome.status.message();
}

TEST(Bufferpool, CountsWhatTheDriveCounts) {
  const Outcome outcome = perform(small_request());
  ASSERT_TRUE(outcome.status) << outcome.status.message();
  EXPECT_EQ(outcome.events.front()["event"], "started");
  const Json& result = outcome.last();
  EXPECT_EQ(result["complete"], true);
  EXPECT_EQ(result["operations"], 4000);
  EXPECT_EQ(result["hits"].get<int>() + result["misses"].get<int>(), 4000);
  EXPECT_EQ(result["pages"], (64 << 20) / 4096);
  // Neither count includes the warm-up.
  EXPECT_EQ(result["counters"]["host_reads"], result["pages_read"]);
  EXPECT_EQ(result["counters"]["host_writes"], result["pages_written"]);
  EXPECT_GT(result["pages_written"].get<int>(), 0);
}

TEST(Bufferpool, SameRequestSameResult) {
  const auto figures = [](std::uint64_t seed) {
    Json result = perform(request_with("/seed", seed)).last();
    for (const char* key : {"cpu_seconds", "peak_rss_bytes"}) result.erase(key);
    return result;
  };
  EXPECT_EQ(figures(1), figures(1));
  EXPECT_NE(figures(1), figures(2));
}

TEST(Bufferpool, EveryPolicyAndWorkload) {
  for (const char* policy : {"clock-sweep", "lru"}) {
    for (const char* name : {"uniform", "zipfian", "sequential"}) {
      Json request = request_with("/pool/policy", policy);
      request["workload"]["name"] = name;
      request["pool"]["prefetch"] = 3;
      const Outcome outcome = perform(request);
      ASSERT_TRUE(outcome.status) << outcome.status.message();
      EXPECT_EQ(outcome.last()["operations"], 4000) << policy << name;
    }
  }
}

TEST(Bufferpool, TunesItselfWhereThatIsAsked) {
  Json request = request_with("/pool/tune", {{"most", 64}});
  request["workload"]["operations"] = 40000;
  const Json result = perform(request).last();
  EXPECT_EQ(result["tuning"]["path"][0], 1) << "pool.write_back does not count";
  EXPECT_EQ(result["tuning"]["path"].back(), result["pool"]["write_back"]);
  EXPECT_GT(result["tuning"]["epochs"].get<int>(), 20);
  EXPECT_GT(result["pool"]["write_back"].get<int>(), 1);
  EXPECT_EQ(perform(small_request()).last()["tuning"], nullptr);
}

// In order, every prefetched page is used; the batch of four reads avoids three misses of four.
TEST(Bufferpool, PrefetchServesASequentialTrace) {
  Json request = request_with("/workload/name", "sequential");
  request["workload"]["read_fraction"] = 0.0;
  request["pool"]["prefetch"] = 3;
  const Json result = perform(request).last();
  EXPECT_EQ(result["prefetched_hits"].get<int>(), result["hits"].get<int>());
  EXPECT_NEAR(result["hits"].get<double>() / 4000, 0.75, 0.01);
}

TEST(Bufferpool, ATraceFromAFile) {
  const TemporaryDirectory directory;
  const std::string path = directory.path("trace.txt");
  std::ofstream(path) << "w 1\nr 2\nr 1\n";
  Json request = small_request();
  request["workload"] = {{"name", "trace"}, {"trace", path}};
  const Json result = perform(request).last();
  EXPECT_EQ(result["operations"], 3);
  EXPECT_EQ(result["writes"], 1);
  EXPECT_EQ(result["hits"], 1);
  request["workload"]["warmup_operations"] = 3;
  EXPECT_EQ(refusal(request),
            "workload.warmup_operations is 3 and " + path + " has 3 references; leave some to measure");
  request["workload"] = {{"name", "trace"}, {"trace", path}, {"pages", 2}};
  EXPECT_EQ(refusal(request),
            path + " line 2: page 2 is not below 2, the number of pages; take a larger target or smaller pages");
}

// In virtual time, the charged cost of threads is part of the time, and is reported.
TEST(Bufferpool, ThreadsCostWhatTheyAreChargedForInVirtualTime) {
  const auto with = [](const char* writers, const Json& hand_off) {
    Json request = request_with("/pool/writers", writers);
    if (!hand_off.is_null()) request["pool"]["hand_off"] = hand_off;
    return perform(request).last();
  };
  const Json queue = with("queue", nullptr);
  EXPECT_EQ(queue["pool"]["hand_off"], nullptr);
  // The drive has no host stack, so threads without cost are equivalent to one queue.
  const Json free_of_charge = {{{"n", 1}}};
  EXPECT_EQ(with("threads", free_of_charge)["seconds"], queue["seconds"]);
  const Json dear = with("threads", {{{"n", 1}, {"told_ns", 1'000'000}}});
  EXPECT_GT(dear["seconds"].get<double>(), queue["seconds"].get<double>());
  EXPECT_EQ(dear["pool"]["hand_off"]["told_ns"], 4'000'000) << "beyond the last row, for each of the four";
  EXPECT_GT(with("threads", nullptr)["pool"]["hand_off"]["last_ns"], 0) << "null is as it was measured";
  // The same pages are written in the same batches; only time differs.
  for (const char* same : {"hits", "pages_written", "write_batches"}) EXPECT_EQ(dear[same], queue[same]);
}

// A real file keeps its content.
TEST(Bufferpool, ARealFileKeepsItsContent) {
  const TemporaryDirectory directory;
  const std::string path = directory.path("drive");
  std::string content(4 << 20, '\0');
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 2654435761U >> 13);
  std::ofstream(path, std::ios::binary) << content;
  const auto opened = device::DirectFile::open({device::DirectFileSpec::Kind::file, path, std::nullopt, false});
  SPILLWAY_NEEDS(opened, "direct I/O where temporary files are: " + opened.status().message());
  Json request = small_request();
  request["target"] = {{"kind", "file"}, {"path", path}};
  EXPECT_EQ(refusal(request), "the workload writes, and the target may not be written; set target.destroy_data");
  request["target"]["destroy_data"] = true;
  for (const char* writers : {"queue", "threads", "new-threads"}) {
    request["pool"]["writers"] = writers;
    request["workload"]["operations"] = 1000;
    const Outcome outcome = perform(request);
    ASSERT_TRUE(outcome.status) << outcome.status.message();
    EXPECT_GT(outcome.last()["pages_written"].get<int>(), 0);
    EXPECT_EQ(outcome.last()["pool"]["hand_off"], nullptr) << "threads that are there are charged for nothing";
    EXPECT_EQ(file_bytes(path), content) << writers;
  }
}

TEST(Bufferpool, StoppedItStillHasAResult) {
  const Outcome outcome = perform(small_request(), /*stopped=*/true);
  ASSERT_TRUE(outcome.status);
  EXPECT_EQ(outcome.last()["event"], "result");
  EXPECT_EQ(outcome.last()["complete"], false);
}

TEST(Bufferpool, BadInputNamesKeyAndMend) {
  const std::vector<std::tuple<const char*, Json, std::string>> bad = {
      {"/pool/policy", "fifo", "pool.policy \"fifo\" is not known; it is clock-sweep or lru"},
      {"/pool/policy", "lruu", "pool.policy \"lruu\" is not known; did you mean lru?"},
      {"/pool/write_back", 0, "pool.write_back is 0; it takes a whole number from 1 to 16384"},
      {"/pool/write_back", 257,
       "pool.write_back is 257 and pool.pages 256; a pool writes back at most all of its pages at once"},
      {"/pool/prefetch", 4,
       "pool.prefetch is 4 and pool.write_back 4; room for prefetched pages comes from those written back, so it takes "
       "less than that"},
      {"/pool/writers", "thread", "pool.writers \"thread\" is not known; did you mean threads?"},
      {"/pool/hand_off",
       {{{"last_us", 1}}},
       "unknown key pool.hand_off[0].last_us; did you mean pool.hand_off[0].last_ns?"},
      {"/pool/hand_off", {{{"n", 2}}, {{"n", 2}}}, "pool.hand_off[1].n is 2; it takes a whole number from 3 to 1024"},
      {"/pool/hand_off", 5, "pool.hand_off is 5; it takes null, or rows {n, first_ns, last_ns, told_ns} with n rising"},
      {"/pool/page_bytes", 1000,
       "pool.page_bytes is 1000; it takes a multiple of the target's 512-byte logical blocks"},
      {"/workload/name", "zipfan", "workload.name \"zipfan\" is not known; did you mean zipfian?"},
      {"/workload/trace", "x", "workload.trace is \"x\"; it takes a path with workload.name \"trace\" only"},
      {"/workload/name", "trace",
       "workload.trace is missing; it takes the path of a file with lines r PAGE and w PAGE"},
      {"/workload/pages", 1 << 20,
       "workload.pages is 1048576; the target has 16384 pages of 4096 bytes, and one is the least"},
      {"/workload/read_fraction", 1.5, "workload.read_fraction is 1.5; it takes a number from 0 to 1"},
      {"/target/kind", "simulate",
       "target.kind is \"simulate\"; it takes one of simulated, paced, file, directory, device; did you mean "
       "simulated?"},
      {"/pool/tune", {{"most", 0}}, "pool.tune.most is 0; it takes a whole number from 1 to 16384"},
      {"/pool/tune",
       {{"most", 257}},
       "pool.tune.most is 257 and pool.pages 256; a pool writes back at most all of its pages at once"},
      {"/pool/tune", true, "pool.tune is true; it takes an object"},
      {"/pool/tune", {{"least", 1}}, "unknown key pool.tune.least"},
      {"/pool/page", 1, "unknown key pool.page; did you mean pool.pages?"}};
  for (const auto& [pointer, value, says] : bad) EXPECT_EQ(refusal(request_with(pointer, value)), says);
  Json many = request_with("/pool/writers", "threads");
  many["pool"] = {{"pages", 4096}, {"write_back", 1025}, {"writers", "threads"}};
  EXPECT_EQ(refusal(many), "pool.write_back is 1025; with pool.writers threads it takes at most 1024");
}

}  // namespace
}  // namespace spillway::tool
