// spillway::DB killed, and its power cut, at random moments and at every named step of its ways there and back.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "crash_harness.h"
#include "device/kv_contents.h"
#include "device_small_drive.h"
#include "spill/kv_store.h"
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

// The spill store in the key-value namespace of a drive, whose contents are the file <root>.kv.
ssd::SsdConfig kv_drive() {
  ssd::SsdConfig config = device::small_drive();
  config.namespaces.kv_share = 0.25;
  config.namespaces.memtable_bytes = 256 << 10;
  return config;
}

Opener open_on_kv(const SpillOptions& spill) {
  return [spill](const std::string& root, rocksdb::Env* env, Opened* opened) {
    std::shared_ptr<device::EmulatedDevice> drive = device::make_simulated(ssd::Ssd(kv_drive(), 1));
    opened->drive = drive;
    std::unique_ptr<spill::Store> store;
    const Status status = spill::open_kv_store({drive.get(), 0, root + ".kv", nullptr}, &store);
    if (!status.ok()) return status;
    SpillOptions with_store = spill;
    with_store.store = std::move(store);
    return open_spillway(with_store)(root, env, opened);
  };
}

// Of a file that is mapped, pages of any age: here as they were last, or as they never were. Its first was synced.
void lose_pages(const std::string& path, std::mt19937_64& random) {
  constexpr std::uint64_t kPage = 4096;
  const std::string nothing(kPage, '\0');
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  const std::uint64_t kept_of_four = 1 + random() % 4;
  for (std::uint64_t at = kPage; at < std::filesystem::file_size(path); at += kPage) {
    if (random() % 4 < kept_of_four) continue;
    file.seekp(static_cast<std::streamoff>(at));
    file.write(nothing.data(), static_cast<std::streamsize>(nothing.size()));
  }
}

// The drive keeps what it has answered; of what was on its way, whatever it got to; and of what was to follow, what the
// host had written back.
void lose_commands(const std::string& root, const std::string& next, std::mt19937_64& random) {
  if (!std::filesystem::exists(root + ".kv")) return;
  std::filesystem::rename(root + ".kv", next + ".kv");
  std::filesystem::rename(root + ".kv.staged", next + ".kv.staged");
  lose_pages(next + ".kv.staged", random);
  const ssd::SsdConfig config = kv_drive();
  const std::uint64_t capacity = ssd::Ssd(config, 1).layout().kv_units * config.geometry.mapping_unit_bytes;
  auto contents = device::KvContents::open(next + ".kv", capacity, config.namespaces.memtable_bytes);
  ASSERT_TRUE(contents) << contents.status().message();
  (*contents)->settle_left_over([&](std::uint64_t) { return random() % 2 == 0; });
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
  unsigned times = 1;  // as many deaths as at the others: it is there only after a death that left something to do
};
constexpr Step kCommonSteps[] = {
    {"spill.commit.announced", false},     {"spill.commit.base_read", false},
    {"spill.commit.main_synced", false},   {"spill.commit.generation_begun", false},
    {"spill.commit.before_append", false}, {"spill.commit.appended", false},
    {"spill.commit.synced", false},        {"spill.write.before_main", false},
    {"spill.write.marked", false},         {"spill.rollback.put_back", true},
    {"spill.rollback.sorted", false},      {"spill.rollback.gate_closed", false},
    {"spill.rollback.ingested", false},    {"spill.rollback.dropped", false},
    {"spill.rollback.published", true},    {"spill.bind.pending", false},
    {"spill.bind.created", false},         {"spill.bind.dropped", false},
    {"spill.bind.confirmed", false},
};
constexpr Step kRegionSteps[] = {
    {"spill.region.begin.created", false},   {"spill.region.append.written", false},
    {"spill.region.cut.truncated", false},   {"spill.region.drop.renamed", true},
    {"spill.region.release.removed", false}, {"spill.region.seal.synced", false},
};
constexpr Step kKvSteps[] = {
    {"spill.kv.begin.begun", false},
    {"spill.kv.staging.grown", false},
    {"spill.kv.append.staged", false},
    {"spill.kv.sync.stored", false},
    {"spill.kv.recover.stored", false, 8},
    {"spill.kv.cut.reset", false},
    {"spill.kv.drop.stored", true},
    {"spill.kv.release.reset", false},
    {"device.kv.put.written", false},
    {"device.kv.settle.committed", false},
    {"device.kv.remove_range.one_removed", true},
};

// Come to in the many lives of `make crash`, and there not always: contents that have filled their file are moved.
// tests/native/device_kv_test.cc dies there.
constexpr const char* kLaterSteps[] = {"device.kv.clean.one_moved"};

using OpenOn = Opener (*)(const SpillOptions& spill);

// `plan` with one of the steps after the other, which are all that there are.
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

TEST(CrashSpillway, KilledAtEveryStep) { die_at_every_step(open_spillway, kRegionSteps, {.kills = 4, .seed = 100}); }
TEST(CrashSpillway, PowerCutAtEveryStep) {
  die_at_every_step(open_spillway, kRegionSteps, {.kills = 4, .seed = 200, .power_loss = true});
}

TEST(CrashKv, KilledAtRandom) {
  expect_kept({.open = open_on_kv(by_ingestion()), .stir = stir, .kills = 8, .seed = 41});
  expect_kept({.open = open_on_kv(by_put()), .stir = stir, .kills = 8, .seed = 42});
}
TEST(CrashKv, PowerCutAtRandom) {
  for (const bool puts : {false, true}) {
    expect_kept({.open = open_on_kv(puts ? by_put() : by_ingestion()),
                 .stir = stir,
                 .also_loses = lose_commands,
                 .kills = 8,
                 .seed = puts ? 44U : 43U,
                 .power_loss = true});
  }
}
TEST(CrashKv, KilledAtEveryStep) { die_at_every_step(open_on_kv, kKvSteps, {.kills = 2, .seed = 300}); }
TEST(CrashKv, PowerCutAtEveryStep) {
  die_at_every_step(open_on_kv, kKvSteps, {.also_loses = lose_commands, .kills = 2, .seed = 400, .power_loss = true});
}

}  // namespace
}  // namespace spillway::crash
