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
                                         {"/load/distribution", "x", "distribution"},
                                         {"/load/value_bytes", -1, "value_bytes"},
                                         {"/load/rate_ops_s", 0, "rate_ops_s"},
                                         {"/queries/0/workload", "x", "queries[0].workload"},
                                         {"/queries/0/threads", 0, "threads"},
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

TEST(LsmSimulate, EndsEarlyWithWhatWasDone) {
  const Outcome outcome = perform_lsm(example(), /*stopped=*/true);
  ASSERT_TRUE(outcome.status) << outcome.status.message();
  EXPECT_EQ(outcome.last()["complete"], false);
}

}  // namespace
}  // namespace spillway::tool
