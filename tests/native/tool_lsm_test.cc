// The command lsm-simulate: the contract's example, refusals, an early end.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "checkout.h"
#include "tool/lsm/command.h"
#include "tool_conversation.h"

namespace spillway::tool {
namespace {

Outcome perform_lsm(const Json& request, bool stopped = false) {
  return outcome_of([&](Events& events, const std::atomic<bool>& stop) { return lsm_simulate(request, events, stop); },
                    stopped);
}

Json example() {
  std::ifstream file(checkout() / "contract" / "examples" / "lsm-simulate.request.json");
  Json request = Json::parse(file);
  request["drive"]["preset_dirs"] = {(checkout() / "presets").string()};
  request["load"]["num"] = 30'000;
  return request;
}

TEST(LsmSimulate, ReadsTheContractsExample) {
  const Outcome outcome = perform_lsm(example());
  ASSERT_TRUE(outcome.status) << outcome.status.message();
  EXPECT_EQ(outcome.last()["operations"], 30'000);
  EXPECT_EQ(outcome.last()["queries"].size(), 2U);
  EXPECT_EQ(outcome.last()["complete"], true);
}

TEST(LsmSimulate, RefusesWhatMakesNoSense) {
  struct Refusal {
    const char* pointer;
    Json value;
    const char* word;
  };
  const std::vector<Refusal> refusals = {{"/tree/shape", "wide", "tree.shape"},
                                         {"/tree/fanout", 1, "tree.fanout"},
                                         {"/tree/levels", 1, "tree.levels"},
                                         {"/tree/no_such_option", 1, "no_such_option"},
                                         {"/tree/blob_file_size", 1, "tree.blob_file_size"},
                                         {"/tree/blob_garbage_collection_age_cutoff", 1.1, "age_cutoff"},
                                         {"/tree/enable_blob_files", 1, "tree.enable_blob_files"},
                                         {"/load/distribution", "x", "distribution"},
                                         {"/load/value_bytes", -1, "value_bytes"},
                                         {"/load/rate_ops_s", 0, "rate_ops_s"},
                                         {"/load/duration_s", 0, "duration_s"},
                                         {"/load/report_operations", 0, "report_operations"},
                                         {"/load/report_s", 0, "report_s"},
                                         {"/divided_by", 0.5, "divided_by"},
                                         {"/load/preload", "fillrandom", "preload"},
                                         {"/load/zipfian_ranks", 29'999, "zipfian_ranks is below load.num"},
                                         {"/queries/0/workload", "x", "queries[0].workload"},
                                         {"/queries/0/threads", 0, "threads"},
                                         {"/initial/fill", 1, "initial.fill is 1"},
                                         {"/grain", 3, "grain is 3"},
                                         {"/grain", 4096, "grain 4096"},
                                         {"/host/cores", 0, "host.cores"},
                                         {"/spill/capacity_bytes", (2 << 20) - 1, "spill.capacity_bytes is 2097151"},
                                         {"/tree/level0_stop_writes_trigger", 1, "must not fall"}};
  for (const Refusal& refusal : refusals) {
    Json request = example();
    request[Json::json_pointer(refusal.pointer)] = refusal.value;
    const Outcome outcome = perform_lsm(request);
    EXPECT_EQ(outcome.status.fault(), Fault::bad_input) << refusal.pointer;
    EXPECT_NE(outcome.status.message().find(refusal.word), std::string::npos) << outcome.status.message();
  }
}

// The tree lies beside other data, in the partition, or over what the drive held, as the request says.
TEST(LsmSimulate, LiesWhereTheInitialStateLeavesSpace) {
  Json request = example();
  request["load"]["num"] = 200'000;  // of 2.5 times as many bytes with what compactions write beside
  request["drive"]["set"]["capacity.capacity_bytes"] = "1GiB";
  request.erase("queries");
  const auto fits = [&](const Json& initial, bool overwrites = false) {
    request["initial"] = initial;
    request["overwrites_initial"] = overwrites;
    const Outcome outcome = perform_lsm(request);
    EXPECT_TRUE(outcome.status || outcome.status.fault() == Fault::drive_full) << outcome.status.message();
    return static_cast<bool>(outcome.status);
  };
  EXPECT_TRUE(fits({{"kind", "steady"}, {"fill", 0.2}}));
  for (const char* kind : {"steady", "sequential"}) {
    EXPECT_FALSE(fits({{"kind", kind}, {"fill", 0.9}})) << kind;
    EXPECT_TRUE(fits({{"kind", kind}, {"fill", 0.9}}, /*overwrites=*/true)) << kind;
  }
  EXPECT_TRUE(fits({{"kind", "steady"}, {"fill", 0.9}, {"partition", "trimmed"}}));
  EXPECT_FALSE(fits({{"kind", "steady"}, {"fill", 0.9}, {"partition", "trimmed"}, {"partition_bytes", 100 << 20}}));
}

// C = 0 is what a single level has where nothing else is asked for.
TEST(LsmSimulate, ASingleLevelKeepsItsTrigger) {
  Json request = example();
  request["tree"]["shape"] = "single-level";
  const auto compactions = [&](const Json& trigger) {
    request["tree"]["level0_file_num_compaction_trigger"] = trigger;
    const Outcome outcome = perform_lsm(request);
    EXPECT_TRUE(outcome.status) << outcome.status.message();
    return outcome.last()["files_touched"]["by_level"][0]["compactions"].get<int>();
  };
  const int of_none = compactions(nullptr);
  EXPECT_EQ(of_none, compactions(1));
  EXPECT_LT(compactions(4), of_none);
}

// A key of the request that nothing reads would be refused, and one that is read in vain changes nothing.
TEST(LsmSimulate, ReadsHowLongALoadIsAndWhatWasThere) {
  Json request = example();
  request["load"]["distribution"] = "zipfian";
  request["load"]["settle"] = false;
  request["load"]["operations"] = 10'000'000;
  request["load"]["duration_s"] = 0.05;
  request["load"]["preload"] = "fillseq-unsettled";
  const auto figures = [&] {
    const Outcome outcome = perform_lsm(request);
    EXPECT_TRUE(outcome.status) << outcome.status.message();
    return outcome.last();
  };
  const Json few = figures();
  EXPECT_NEAR(few["simulated_seconds"].get<double>(), 0.05, 1e-6);
  EXPECT_GT(few["preloaded_bytes"].get<double>(), 30'000.0 * 1000 * 0.5);
  request["load"]["zipfian_ranks"] = 10'000'000'000;
  EXPECT_GT(figures()["flush_bytes"].get<double>(), 1.1 * few["flush_bytes"].get<double>());
  request["load"]["distribution"] = "filluniquerandom";
  request["load"]["operations"] = 10'000;
  EXPECT_NE(perform_lsm(request).status.message().find("keys that are not there"), std::string::npos);
}

// ---------------------------------------------------------------------------------------------------------------------
// Reports

Json long_load(const Json& changes) {
  Json request = example();
  request["load"] = {{"num", 20'000},        {"value_bytes", 1000}, {"distribution", "uniform"},
                     {"operations", 60'000}, {"settle", false},     {"preload", "fillseq"}};
  request["tree"]["write_buffer_size"] = 1 << 20;
  request["tree"]["target_file_size_base"] = 1 << 20;
  request["tree"]["max_bytes_for_level_base"] = 4 << 20;
  request.erase("queries");
  request.merge_patch(changes);
  return request;
}

Json reports_of(const Json& request) {
  const Outcome outcome = perform_lsm(request);
  EXPECT_TRUE(outcome.status) << outcome.status.message();
  const Json result = outcome.last();
  return result.contains("reports") ? result["reports"] : Json::array();
}

// Each with a load that ends where the long one reports: the same figures to the last digit.
TEST(LsmSimulate, ReportsWhatALoadThatEndsThereReports) {
  const std::vector<Json> kinds = {
      {{"tree", {{"shape", "leveled"}}}},
      {{"tree", {{"shape", "universal"}}}},
      {{"tree", {{"shape", "single-level"}, {"level0_file_num_compaction_trigger", 4}}}},
      {{"tree", {{"enable_blob_files", true}, {"enable_blob_garbage_collection", true}, {"blob_file_size", 1 << 20}}}},
      {{"load", {{"rate_ops_s", 20'000}}}},
      {{"load", {{"distribution", "zipfian"}}}},
      {{"load", {{"preload", "fillseq-unsettled"}}}},
      {{"spill", {{"capacity_bytes", 16 << 20}}}, {"tree", {{"level0_slowdown_writes_trigger", 5}}}},
      {{"grain", 2}},
      {{"divided_by", 7}}};
  for (const Json& kind : kinds) {
    Json request = long_load(kind);
    request["load"]["report_operations"] = 40'000;
    const Json goes_on = reports_of(request);
    request["load"]["operations"] = 40'000;
    const Json ends = reports_of(request);
    ASSERT_EQ(goes_on.size(), 2U) << kind;
    ASSERT_EQ(ends.size(), 2U) << kind;
    EXPECT_EQ(goes_on[0], ends[1]) << kind;
    EXPECT_EQ(goes_on[0]["operations"], 40'000) << kind;
    EXPECT_GT(goes_on[1]["host_bytes_written"], goes_on[0]["host_bytes_written"]) << kind;
  }
}

TEST(LsmSimulate, ReportsAfterATime) {
  Json request = long_load({{"load", {{"report_s", 0.2}, {"duration_s", 0.5}, {"operations", 100'000'000}}}});
  const Json goes_on = reports_of(request);
  request["load"]["duration_s"] = 0.2;
  const Json ends = reports_of(request);
  ASSERT_EQ(goes_on.size(), 2U);
  ASSERT_EQ(ends.size(), 2U);
  EXPECT_EQ(goes_on[0], ends[1]);
  EXPECT_NEAR(goes_on[0]["simulated_seconds"].get<double>(), 0.2, 1e-9);
}

// A report is of the load, not of what was before it; it changes nothing else; one that is not come to is not made.
TEST(LsmSimulate, ReportsTheLoadAlone) {
  Json request = long_load({{"load", {{"preload", "fillseq-unsettled"}, {"report_operations", 30'000}}}});
  const Json with = perform_lsm(request).last();
  EXPECT_EQ(with["reports"][0]["operations"], 30'000);
  request["load"].erase("report_operations");
  const Json without = perform_lsm(request).last();
  EXPECT_NEAR(with["host_bytes_written"].get<double>() / without["host_bytes_written"].get<double>(), 1, 0.02);
  request["load"]["report_operations"] = 60'001;
  EXPECT_TRUE(reports_of(request).empty());
  request["load"]["report_s"] = 1;
  EXPECT_NE(perform_lsm(request).status.message().find("a load reports once"), std::string::npos);
}

// What is fixed for each file weighs in a small model as little as in what it stands for.
TEST(LsmSimulate, FixedTimesOfFilesAreTakenOnceInSoMany) {
  const auto flushes_of = [](double divided_by) {
    const Json result = perform_lsm(long_load({{"divided_by", divided_by}})).last();
    return result["host_bytes_written_by_cause"]["manifest"].get<double>() / 4096 /
           (result["flushes"].get<double>() + result["compactions"].get<double>());
  };
  EXPECT_NEAR(flushes_of(8) / flushes_of(1), 1.0 / 8, 0.05);
  EXPECT_NEAR(flushes_of(1000), 0, 0.01);
}

TEST(LsmSimulate, EndsEarlyWithWhatWasDone) {
  const Outcome outcome = perform_lsm(example(), /*stopped=*/true);
  ASSERT_TRUE(outcome.status) << outcome.status.message();
  EXPECT_EQ(outcome.last()["complete"], false);
}

}  // namespace
}  // namespace spillway::tool
