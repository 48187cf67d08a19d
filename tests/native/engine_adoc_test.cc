#include <gtest/gtest.h>
#include <rocksdb/db.h>

#include <chrono>
#include <thread>

#include "engine/factory/factory.h"
#include "engine/rocksdb/adoc.h"
#include "engine/rocksdb/adoc_tuner.h"
#include "engine/rocksdb/policy.h"
#include "spill/compat/db_out.h"
#include "temporary_directory.h"

namespace spillway::engine {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kInitial = 64 * kMiB;

// --- The decision, a table (ADOC's code)

struct Row {
  const char* what;
  AdocSignals signals;
  AdocSettings present;
  AdocSettings wanted;
  AdocJobsRule jobs_rule;
  AdocBufferRule buffer_rule;
};

using enum AdocJobsRule;
constexpr AdocBufferRule kKeepBuffer = AdocBufferRule::keep;
constexpr AdocBufferRule kMoreBuffer = AdocBufferRule::more;
constexpr AdocBufferRule kHalfBuffer = AdocBufferRule::half;

constexpr Row kTable[] = {
    {"all is well", {100, 100, 0, 0.9, 0.9}, {4, 128 * kMiB}, {4, 128 * kMiB}, keep, kKeepBuffer},
    {"one memtable waits", {100, 100, 1, 0, 0}, {4, 128 * kMiB}, {6, 128 * kMiB}, more_for_memtables, kKeepBuffer},
    {"two memtables wait", {100, 100, 2, 0, 0}, {4, 128 * kMiB}, {6, 192 * kMiB}, more_for_memtables, kMoreBuffer},
    {"half the best flush is not slow", {50, 100, 0, 0, 0}, {8, kInitial}, {8, kInitial}, keep, kKeepBuffer},
    {"a slow flush", {49, 100, 0, 0, 0}, {8, kInitial}, {4, 128 * kMiB}, half_for_slow_flush, kMoreBuffer},
    {"slow beats waiting", {49, 100, 2, 0, 0}, {8, kInitial}, {4, 128 * kMiB}, half_for_slow_flush, kMoreBuffer},
    {"L0 beats slow", {49, 100, 0, 1, 0}, {8, kInitial}, {10, 128 * kMiB}, more_for_debt, kMoreBuffer},
    {"debt beats all", {49, 100, 2, 0, 1}, {8, 256 * kMiB}, {10, 128 * kMiB}, more_for_debt, kHalfBuffer},
    {"jobs end at the most", {100, 100, 1, 0, 0}, {19, kInitial}, {20, kInitial}, more_for_memtables, kKeepBuffer},
    {"jobs end at the least", {49, 100, 0, 0, 0}, {3, kInitial}, {2, 128 * kMiB}, half_for_slow_flush, kMoreBuffer},
    {"the buffer at the most", {9, 100, 0, 1, 0}, {4, 500 * kMiB}, {6, 512 * kMiB}, more_for_debt, kMoreBuffer},
    {"the buffer at the least", {100, 100, 0, 0, 2}, {4, 100 * kMiB}, {6, 64 * kMiB}, more_for_debt, kHalfBuffer},
};

TEST(Adoc, DecidesByTheTable) {
  for (const Row& row : kTable) {
    const AdocDecision decision = decide(row.signals, row.present, AdocOptions(), kInitial);
    EXPECT_EQ(decision.settings.jobs, row.wanted.jobs) << row.what;
    EXPECT_EQ(decision.settings.buffer_bytes, row.wanted.buffer_bytes) << row.what;
    EXPECT_STREQ(name_of(decision.jobs_rule), name_of(row.jobs_rule)) << row.what;
    EXPECT_STREQ(name_of(decision.buffer_rule), name_of(row.buffer_rule)) << row.what;
  }
}

TEST(Adoc, RefusesBoundsThatCross) {
  EXPECT_EQ(find_problem({}), "");
  EXPECT_EQ(find_problem({.least_jobs = 4, .most_jobs = 3}),
            "engine.adoc.least_jobs is 4: choose 1 to engine.adoc.most_jobs = 3");
  EXPECT_EQ(find_problem({.least_buffer_bytes = 2, .most_buffer_bytes = 1}),
            "engine.adoc.least_buffer_bytes is 2: choose 1 to engine.adoc.most_buffer_bytes = 1");
  EXPECT_EQ(find_problem({.interval_ms = 0}), "engine.adoc.interval_ms is 0: choose at least 1");
}

// --- On a store

rocksdb::Options small_store() {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.write_buffer_size = kMiB;
  options.level0_slowdown_writes_trigger = 12;
  options.level0_stop_writes_trigger = 20;
  options.max_write_buffer_number = 6;
  return options;
}

TEST(Policy, WithoutSlowdownEverySlowdownTriggerIsItsStop) {
  const TemporaryDirectory temporary;
  auto policy = make_policy({.directory = {}, .options = {}, .settings = {{"policy", "no-slowdown"}}});
  ASSERT_TRUE(policy);
  rocksdb::DB* opened = nullptr;
  ASSERT_TRUE((*policy)->open(small_store(), temporary.path("db"), &opened).ok());
  const std::unique_ptr<rocksdb::DB> db(opened);
  const rocksdb::Options options = db->GetOptions();
  EXPECT_EQ(options.level0_slowdown_writes_trigger, 20);
  EXPECT_EQ(options.soft_pending_compaction_bytes_limit, options.hard_pending_compaction_bytes_limit);
  EXPECT_EQ(options.max_write_buffer_number, 3);
}

TEST(Policy, AnUnknownOneIsRefusedWithTheNearest) {
  const Status status = check_engine({.directory = {}, .options = {}, .settings = {{"policy", "adok"}}});
  EXPECT_EQ(status.fault(), Fault::bad_input);
  EXPECT_EQ(status.message(), "engine.policy: there is no policy 'adok', the nearest is 'adoc'");
}

TEST(Policy, TheAcceleratorIsOne) {
  EXPECT_TRUE(check_engine({.name = "spillway", .directory = {}, .options = {}}));
  const Status status =
      check_engine({.name = "spillway", .directory = {}, .options = {}, .settings = {{"policy", "adoc"}}});
  EXPECT_EQ(status.message(),
            "engine.policy is 'adoc', but policies are of the engine rocksdb: leave it out of spillway");
}

// One file in L0 reaches this store's slowdown trigger, so each interval with a flush in it requests two more jobs, up
// to the limit.
TEST(AdocTuner, SetsWhatItDecidesAndStops) {
  const TemporaryDirectory temporary;
  rocksdb::Options options = small_store();
  options.disable_auto_compactions = true;
  options.level0_file_num_compaction_trigger = 1;
  options.level0_slowdown_writes_trigger = 1;
  const auto tuner = std::make_shared<AdocTuner>(
      AdocOptions{.interval_ms = 1, .most_jobs = 5, .least_buffer_bytes = kMiB, .most_buffer_bytes = 4 * kMiB});
  options.listeners.push_back(tuner);
  rocksdb::DB* opened = nullptr;
  ASSERT_TRUE(rocksdb::DB::Open(options, temporary.path("db"), spill::DbOut(&opened)).ok());
  const std::unique_ptr<rocksdb::DB> db(opened);
  tuner->start(db.get());
  constexpr int kMostFlushes = 1000;  // each takes longer than an interval; three suffice unless the thread starves
  for (int i = 0; i < kMostFlushes && tuner->settings().jobs != 5; ++i) {
    ASSERT_TRUE(db->Put({}, "key", "value").ok());
    ASSERT_TRUE(db->Flush({}).ok());
  }
  tuner->stop();
  EXPECT_EQ(tuner->settings().jobs, 5U);
  EXPECT_EQ(db->GetDBOptions().max_background_jobs, 5);
  EXPECT_EQ(db->GetOptions().write_buffer_size, tuner->settings().buffer_bytes);
  const auto counters = tuner->counters();
  // 2 → 4 → 5. During a flush a memtable waits, which requests as many jobs.
  const std::uint64_t raised = counters.at("adoc.jobs.more_for_debt") + counters.at("adoc.jobs.more_for_memtables");
  EXPECT_GE(raised, 2U);
  EXPECT_GE(counters.at("adoc.ticks"), raised);
  EXPECT_EQ(counters.at("adoc.refused"), 0U);
  const auto events = tuner->take_events();
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.front().figures.front(), std::pair(std::string("background_jobs"), 4.0));
  EXPECT_TRUE(tuner->take_events().empty());
}

}  // namespace
}  // namespace spillway::engine
