// spillway::DB killed, and its power cut, at random moments and at every named step of its ways there and back.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "crash_harness.h"
#include "spillway/db.h"

namespace spillway::crash {
namespace {

using rocksdb::Status;

SpillOptions small_spill() {
  SpillOptions options;
  options.capacity_bytes = 8 << 20;
  options.generation_bytes = 32 << 10;  // so that there are several, and sealed ones
  options.index_bytes = 8 << 20;
  options.rollback = RollbackPolicy::off;  // but when it is stirred
  options.poll_interval = std::chrono::milliseconds(1);
  return options;
}

Opener open_spillway(const SpillOptions& spill) {
  return [spill](const std::string& root, rocksdb::Env* env, Opened* opened) {
    const rocksdb::Options options = small_options(env);
    DB* db = nullptr;
    const Status status =
        DB::Open(options, spill, root + "/db", {{rocksdb::kDefaultColumnFamilyName, options}, {"other", options}},
                 &opened->families, &db);
    opened->db.reset(db);
    return status;
  };
}

// Stalls that come and go, and what a user may ask for meanwhile.
void stir(rocksdb::DB& db, std::mt19937_64& random) {
  auto& spillway = dynamic_cast<DB&>(db);
  switch (random() % 8) {
    case 0:
    case 1:
    case 2:
      spillway.SetDiversion(Diversion::always);
      break;
    case 3:
    case 4:
      spillway.SetDiversion(Diversion::never);
      break;
    case 5:
    case 6:
      spillway.Rollback().PermitUncheckedError();
      break;
    default:
      rocksdb::FlushOptions options;
      options.wait = false;
      options.allow_write_stall = true;
      spillway.Flush(options).PermitUncheckedError();
  }
  std::this_thread::sleep_for(std::chrono::microseconds(random() % 1000));
}

// One plan for each way back.
SpillOptions by_put() {
  SpillOptions options = small_spill();
  options.put_back_bytes = 64 << 20;
  return options;
}
SpillOptions by_ingestion() {
  SpillOptions options = small_spill();
  options.put_back_bytes = 0;
  return options;
}

void expect_kept(const CrashPlan& plan) {
  const CrashReport report = run_crashes(plan);
  EXPECT_EQ(report.failure, "");
  EXPECT_GT(report.operations, 0);
}

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

// Every step at which something was done in one store that the other does not know of yet.
struct Step {
  const char* name;
  bool by_put;
};
constexpr Step kSteps[] = {
    {"spill.commit.main_synced", false},     {"spill.commit.generation_begun", false},
    {"spill.commit.before_append", false},   {"spill.commit.appended", false},
    {"spill.commit.synced", false},          {"spill.write.before_main", false},
    {"spill.rollback.put_back", true},       {"spill.rollback.sorted", false},
    {"spill.rollback.gate_closed", false},   {"spill.rollback.ingested", false},
    {"spill.rollback.dropped", false},       {"spill.rollback.published", true},
    {"spill.region.begin.created", false},   {"spill.region.append.written", false},
    {"spill.region.cut.truncated", false},   {"spill.region.drop.renamed", true},
    {"spill.region.release.removed", false}, {"spill.write.marked", false},
};

void die_at_every_step(bool power_loss, std::uint64_t seed) {
  std::set<std::string> reached;
  std::set<std::string> named;
  for (const Step& step : kSteps) {
    SCOPED_TRACE(step.name);
    named.insert(step.name);
    const CrashReport report = run_crashes({.open = open_spillway(step.by_put ? by_put() : by_ingestion()),
                                            .stir = stir,
                                            .kills = 4,
                                            .seed = seed++,
                                            .power_loss = power_loss,
                                            .step = step.name});
    EXPECT_EQ(report.failure, "");
    EXPECT_GT(report.at_step, 0);
    reached.insert(report.steps.begin(), report.steps.end());
  }
  EXPECT_EQ(reached, named) << "a step that is named in the code and not here, or the other way round";
}

TEST(CrashSpillway, KilledAtEveryStep) { die_at_every_step(false, 100); }
TEST(CrashSpillway, PowerCutAtEveryStep) { die_at_every_step(true, 200); }

}  // namespace
}  // namespace spillway::crash
