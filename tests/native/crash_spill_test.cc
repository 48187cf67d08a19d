// Kills and losses of power of spillway::DB, at random times and at every named step of diversion and rollback.
#include "crash_spill.h"

#include <gtest/gtest.h>

#include <iterator>
#include <set>
#include <span>
#include <string>

namespace spillway::crash {
namespace {

TEST(CrashSpillway, KilledAtRandomIngesting) {
  expect_kept({.open = open_spillway(by_ingestion()), .stir = stir, .kills = 30, .seed = 31});
}
TEST(CrashSpillway, KilledAtRandomPuttingBack) {
  expect_kept({.open = open_spillway(by_put()), .stir = stir, .kills = 30, .seed = 32});
}
TEST(CrashSpillway, PowerCutAtRandomIngesting) {
  expect_kept({.open = open_spillway(by_ingestion()), .stir = stir, .kills = 30, .seed = 33, .power_loss = true});
}
TEST(CrashSpillway, PowerCutAtRandomPuttingBack) {
  expect_kept({.open = open_spillway(by_put()), .stir = stir, .kills = 30, .seed = 34, .power_loss = true});
}

// Every step between an action in one store and its effect on the other.
struct Step {
  const char* name;
  bool by_put;
  unsigned times = 1;  // a step that is reached only after a death at a certain point needs several deaths
};
constexpr Step kCommonSteps[] = {
    {"spill.commit.announced", false},     {"spill.commit.base_read", false},
    {"spill.commit.main_synced", false},   {"spill.commit.generation_begun", false},
    {"spill.commit.before_append", false}, {"spill.commit.appended", false},
    {"spill.commit.synced", false},        {"spill.write.before_main", false},
    {"spill.write.marked", false},         {"spill.rollback.put_back", true},
    {"spill.rollback.sorted", false},      {"spill.rollback.prepared", false},
    {"spill.rollback.gate_closed", false}, {"spill.rollback.ingested", false},
    {"spill.rollback.dropped", false},     {"spill.rollback.published", true},
    {"spill.rollback.forgotten", false},   {"spill.bind.pending", false},
    {"spill.bind.created", false},         {"spill.bind.dropped", false},
    {"spill.bind.confirmed", false},       {"spill.write.before_divert", false},
    {"spill.write.announces", false},      {"spill.write.looked_for_groups", false},
    {"spill.write.announced", false},      {"spill.commit.added", false},
};
constexpr Step kRegionSteps[] = {
    {"spill.region.begin.created", false},   {"spill.region.append.written", false},
    {"spill.region.cut.truncated", false},   {"spill.region.drop.renamed", true},
    {"spill.region.release.removed", false}, {"spill.region.seal.synced", false},
    {"spill.region.spare.created", false},   {"spill.region.drop.prepared", false},
};
constexpr Step kKvSteps[] = {
    {"spill.kv.begin.begun", false},       {"spill.kv.staging.grown", false},
    {"spill.kv.append.staged", false},     {"spill.kv.sync.stored", false},
    {"spill.kv.recover.stored", false, 8}, {"spill.kv.cut.reset", false},
    {"spill.kv.drop.prepared", false},     {"spill.kv.drop.stored", true},
    {"spill.kv.release.reset", false},     {"device.kv.put.written", false},
    {"device.kv.settle.committed", false}, {"device.kv.remove_range.one_removed", true},
};

// Reached only in the many lives of `make crash`, and not always. Full contents of a namespace are moved
// (tests/native/device_kv_test.cc kills there). RocksDB misplaces an ingested file within some microseconds. A drive
// refuses an append only when it is full. Runs of several families have no place below L0 (DiesWhileARunGetsItsPlace).
constexpr const char* kLaterSteps[] = {"device.kv.clean.one_moved", "spill.rollback.misplaced",
                                       "spill.kv.append.refused", "spill.close.stopped", "spill.rollback.emptied"};

using OpenOn = Opener (*)(const SpillOptions& spill);

// Runs `plan` once for each of the steps, and checks that there are no others.
void die_at_every_step(OpenOn open_on, std::span<const Step> steps_of_store, CrashPlan plan) {
  std::vector<Step> all(std::begin(kCommonSteps), std::end(kCommonSteps));
  all.insert(all.end(), steps_of_store.begin(), steps_of_store.end());
  std::set<std::string> reached;
  std::set<std::string> named;
  plan.stir = stir;
  for (const Step& step : all) {
    SCOPED_TRACE(step.name);
    named.insert(step.name);
    plan.open = open_on(step.by_put ? by_put() : by_ingestion());
    plan.step = step.name;
    CrashPlan one = plan;
    one.kills *= step.times;
    const CrashReport report = run_crashes(one);
    ++plan.seed;
    EXPECT_EQ(report.failure, "");
    EXPECT_GT(report.at_step, 0);
    reached.insert(report.steps.begin(), report.steps.end());
  }
  for (const char* later : kLaterSteps) reached.erase(later);
  EXPECT_EQ(reached, named) << "a step that is named in the code and not here, or the other way round";
}

// Levels are so small that even these runs are cheaper below L0.
CrashReport die_while_a_run_gets_its_place(const char* step, bool power_loss, std::uint64_t seed) {
  const Tune small_levels = [](const std::string&, rocksdb::Options& options) {
    options.max_bytes_for_level_base = 8 << 10;
    options.max_bytes_for_level_multiplier = 2;
    options.level_compaction_dynamic_level_bytes = false;
  };
  return run_crashes({.open = open_spillway(by_ingestion(), small_levels),
                      .stir = stir,
                      .kinds = {.remove_range = false, .other_family = false, .value_bytes = 4000},
                      .kills = 8,
                      .seed = seed,
                      .power_loss = power_loss,
                      .step = step,
                      .most_ms = 30});
}
TEST(CrashSpillway, DiesWhileARunGetsItsPlace) {
  for (const bool power_loss : {false, true}) {
    for (const char* step : {"spill.rollback.emptied", "spill.rollback.ingested", "spill.rollback.sorted"}) {
      const CrashReport report = die_while_a_run_gets_its_place(step, power_loss, power_loss ? 600 : 500);
      EXPECT_EQ(report.failure, "") << step;
      EXPECT_GT(report.at_step, 0U) << step;
      EXPECT_TRUE(report.steps.contains("spill.rollback.emptied") || step != std::string("spill.rollback.emptied"));
    }
  }
}

Opener on_regions(const SpillOptions& spill) { return open_spillway(spill); }

TEST(CrashSpillway, KilledAtEveryStep) { die_at_every_step(on_regions, kRegionSteps, {.kills = 2, .seed = 100}); }
TEST(CrashSpillway, PowerCutAtEveryStep) {
  die_at_every_step(on_regions, kRegionSteps, {.kills = 2, .seed = 200, .power_loss = true});
}

TEST(CrashKv, KilledAtRandom) {
  expect_kept({.open = open_on_kv(by_ingestion()), .stir = stir, .kills = 8, .seed = 41});
  expect_kept({.open = open_on_kv(by_put()), .stir = stir, .kills = 8, .seed = 42});
}
TEST(CrashKv, PowerCutAtRandom) {
  for (const bool puts : {false, true}) {
    expect_kept({.open = open_on_kv(puts ? by_put() : by_ingestion()),
                 .stir = stir,
                 .also_loses = lose_commands(),
                 .kills = 8,
                 .seed = puts ? 44U : 43U,
                 .power_loss = true});
  }
}
TEST(CrashKv, KilledAtEveryStep) {
  die_at_every_step([](const SpillOptions& spill) { return open_on_kv(spill); }, kKvSteps, {.kills = 1, .seed = 300});
}
TEST(CrashKv, PowerCutAtEveryStep) {
  die_at_every_step([](const SpillOptions& spill) { return open_on_kv(spill); }, kKvSteps,
                    {.also_loses = lose_commands(), .kills = 1, .seed = 400, .power_loss = true});
}

}  // namespace
}  // namespace spillway::crash
