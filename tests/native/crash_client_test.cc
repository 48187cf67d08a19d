// Kills and losses of power of spillway::DB during uses that involve the spill store only rarely.
#include "crash_client.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/steps.h"
#include "crash_spill.h"
#include "needs.h"

namespace spillway::crash {
namespace {

// Calls `what` once in a while instead of the usual stir.
Stir stir_and(std::string (*what)(Scene& scene), unsigned one_in) {
  return [what, one_in](Scene& scene) { return scene.random() % one_in == 0 ? what(scene) : stir(scene); };
}

CrashPlan plan_of(const SpillOptions& spill, bool power_loss, std::uint64_t seed) {
  return {
      .open = open_spillway(spill), .stir = stir, .kills = 12, .seed = seed, .power_loss = power_loss, .most_ms = 40};
}

class CrashClient : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Deaths, CrashClient, testing::Values(false, true),
                         [](const auto& death) { return death.param ? "PowerCut" : "Killed"; });

TEST_P(CrashClient, ACheckpointIsAPrefixThenAndLater) {
  std::vector<SpillOptions> ways = {by_ingestion()};
  if (runs_long_tests()) ways.push_back(by_put());
  for (const SpillOptions& spill : ways) {
    CrashPlan plan = plan_of(spill, GetParam(), 500);
    plan.stir = stir_and(take_checkpoint, 4);
    plan.most_ms = 800;
    const CrashReport report = run_crashes(plan);
    EXPECT_EQ(report.failure, "");
    EXPECT_GT(report.copies, 0);
  }
}

// A run of a few lives does not always reach what the test is about; a slow machine takes longer for it.
void expect_kept_until(CrashPlan plan, const std::function<bool(const CrashReport&)>& is_reached) {
  constexpr unsigned kLongestMs = 5000;
  plan.most_ms = std::max(plan.most_ms, 100U);
  bool was_reached = false;
  for (int tries = 0; tries < 15 && !was_reached; ++tries, ++plan.seed) {
    const CrashReport report = run_crashes(plan);
    ASSERT_EQ(report.failure, "");
    was_reached = is_reached(report);
    plan.most_ms = std::min(plan.most_ms * 3 / 2, kLongestMs);
  }
  EXPECT_TRUE(was_reached);
}

// (Not with a loss of power: RocksDB 7.8.3 does not sync the directory that it imports into.)
TEST(CrashClientKilled, ImportsThatRaiseTheSequence) {
  SPILLWAY_LONG_TEST();
  const auto import_alone = [](Scene& scene) {
    dynamic_cast<DB&>(*scene.store.db).SetDiversion(Diversion::always);
    return import_family(scene);
  };
  for (const Stir& stir_it : {Stir(import_alone), stir_and(import_family, 4)}) {
    CrashPlan plan = plan_of(by_ingestion(), false, 510);
    plan.stir = stir_it;
    plan.checks = check_imported;
    plan.kinds.sync_share = 0;  // after a sync everything before it is known to be durable
    plan.kinds.merge = false;   // a merge would go to RocksDB, and raise its sequence number within its log
    plan.most_ms = 800;
    expect_kept_until(plan, [](const CrashReport& report) {
      return report.steps.contains("test.client.dropped") && report.steps.contains("test.client.exported");
    });
  }
}

TEST_P(CrashClient, ExternalFiles) {
  for (const SpillOptions& spill : {by_ingestion(), by_put()}) {
    CrashPlan plan = plan_of(spill, GetParam(), 520);
    plan.kinds.ingestions = true;
    expect_kept(plan);
  }
}

class SaysFull final : public SpillListener {
 public:
  void on_spill_event(const SpillEvent& event) override {
    if (event.kind == SpillEvent::Kind::spill_full) steps::reached("test.client.full");
  }
};

void expect_full_and_kept(const CrashPlan& plan) {
  expect_kept_until(plan, [](const CrashReport& report) { return report.steps.contains("test.client.full"); });
}

SpillOptions soon_full(RollbackPolicy policy) {
  SpillOptions spill = by_ingestion();
  spill.rollback = policy;
  spill.generation_bytes = 8 << 10;
  spill.listeners.push_back(std::make_shared<SaysFull>());
  return spill;
}

TEST_P(CrashClient, AFullRegion) {
  for (const RollbackPolicy policy : {RollbackPolicy::adaptive, RollbackPolicy::lazy, RollbackPolicy::off}) {
    SpillOptions spill = soon_full(policy);
    spill.capacity_bytes = 24 << 10;
    expect_full_and_kept(plan_of(spill, GetParam(), 530));
  }
}

TEST_P(CrashClient, AFullIndex) {
  SpillOptions spill = soon_full(RollbackPolicy::lazy);
  spill.index_bytes = 24 << 10;
  expect_full_and_kept(plan_of(spill, GetParam(), 540));
}

TEST_P(CrashClient, AFullKeyValueNamespace) {
  SPILLWAY_LONG_TEST();
  constexpr double kShare = 0.01;
  for (const RollbackPolicy policy : {RollbackPolicy::lazy, RollbackPolicy::off}) {
    const SpillOptions spill = soon_full(policy);
    CrashPlan plan = plan_of(spill, GetParam(), 550);
    plan.most_ms = 300;
    plan.open = open_on_kv(spill, kShare);
    plan.also_loses = lose_commands(kShare);
    // On a slow machine, what is brought back by itself keeps up with the writes.
    policy == RollbackPolicy::off ? expect_full_and_kept(plan) : expect_kept(plan);
  }
}

// Every second life has a drive with little space, or a spill store on such a drive.
TEST_P(CrashClient, AFullDrive) {
  for (const char* where : {"", "/spill/"}) {
    CrashPlan plan = plan_of(by_ingestion(), GetParam(), 560);
    plan.room_bytes = 12 << 10;
    plan.only_in = where;
    expect_kept_until(plan, [](const CrashReport& report) { return report.refused > 0; });
  }
}

TEST_P(CrashClient, OpenedByPlainRocksdbBetweenLives) {
  CrashPlan plan = plan_of(by_ingestion(), GetParam(), 580);
  plan.visit = open_as_plain_rocksdb;
  plan.most_ms = 6;
  expect_kept(plan);
}

TEST_P(CrashClient, OpenedWithAnotherPathBetweenLives) {
  CrashPlan plan = plan_of(by_ingestion(), GetParam(), 590);
  plan.visit = open_with_another_path;
  plan.most_ms = 6;
  expect_kept(plan);
}

TEST_P(CrashClient, ThePathGivenToAnotherDatabaseBetweenLives) {
  CrashPlan plan = plan_of(by_ingestion(), GetParam(), 600);
  plan.visit = open_another_database_with_the_path;
  plan.most_ms = 6;
  expect_kept(plan);
}

}  // namespace
}  // namespace spillway::crash
