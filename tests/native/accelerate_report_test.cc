// What the variable SPILLWAY takes, what the line at the end says, and when it is due.
#include <gtest/gtest.h>
#include <rocksdb/db.h>

#include <memory>
#include <string>
#include <vector>

#include "accelerate/databases/configuration.h"
#include "accelerate/databases/report.h"
#include "spillway/close_listener.h"
#include "spillway/db.h"
#include "temporary_directory.h"

namespace spillway::accelerate {
namespace {

TEST(AccelerateConfiguration, TakesThePlansKeysAndSizes) {
  const auto parsed = parse_configuration(
      "capacity=1GiB;generation=64MiB;index=8MiB;put_back=0;rollback=lazy;poll_ms=7;divert_l0_files=9;"
      "resume_l0_files=5;divert_pending=0.5;resume_pending=0.25");
  ASSERT_TRUE(parsed) << parsed.status().message();
  const SpillOptions& options = parsed.value();
  EXPECT_EQ(options.capacity_bytes, 1U << 30);
  EXPECT_EQ(options.generation_bytes, 64U << 20);
  EXPECT_EQ(options.index_bytes, 8U << 20);
  EXPECT_EQ(options.put_back_bytes, 0U);
  EXPECT_EQ(options.rollback, RollbackPolicy::lazy);
  EXPECT_EQ(options.poll_ms, 7U);
  EXPECT_EQ(options.divert.divert_l0_files, 9);
  EXPECT_EQ(options.divert.resume_l0_files, 5);
  EXPECT_EQ(options.divert.divert_pending, 0.5);
  EXPECT_EQ(options.divert.resume_pending, 0.25);
}

TEST(AccelerateConfiguration, IsTheLibrarysWithoutKeys) {
  const auto parsed = parse_configuration("");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed.value().capacity_bytes, SpillOptions().capacity_bytes);
  EXPECT_EQ(parsed.value().poll_ms, SpillOptions().poll_ms);
}

TEST(AccelerateConfiguration, RefusesAPlansStore) {
  const auto parsed = parse_configuration("store=kv");
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.status().message().rfind("SPILLWAY: store is not a setting of the accelerator", 0), 0U);
}

TEST(AccelerateReport, NamesTheCausesOfWaits) {
  EXPECT_EQ(waits_by_cause({{"waits", 3}, {"waits_rocksdb", 0}, {"main_writes", 7}}), "");
  EXPECT_EQ(waits_by_cause({{"waits", 1203}, {"waits_rocksdb", 1201}, {"waits_low_priority", 2}}),
            " (1,201 for rocksdb, 2 for low priority)");
}

TEST(AccelerateReport, IsOneSentence) {
  SpillStatistics statistics;
  EXPECT_EQ(describe(statistics),
            "0 writes (0 B) diverted in 0 stalls, 0 write calls to RocksDB; 0 writes waited; 0 rollbacks brought 0 "
            "writes back; nothing remains in the spill store");
  statistics.diverted_writes = 1'234'567;
  statistics.diverted_bytes = 1'499'000'000;
  statistics.stalls_diverted = 1;
  statistics.main_writes = 1'000;
  statistics.waits = 1;
  statistics.wait_us = 12'300;
  statistics.rollbacks_by_ingest = 1;
  statistics.rollbacks_by_put = 1;
  statistics.rolled_back_entries = 1'000'000;
  statistics.rollback_failures = 1;
  statistics.live_entries = 234'567;
  statistics.live_bytes = 999'600;
  const std::string text = describe(statistics);
  EXPECT_EQ(
      text.rfind("1,234,567 writes (1.5 GB) diverted in 1 stall, 1,000 write calls to RocksDB; 1 write waited", 0), 0U)
      << text;
  EXPECT_NE(
      text.find(" for 0.0123 s in all; 2 rollbacks brought 1,000,000 writes back, 1 attempt failed; 234,567 writes "
                "(1 MB) remain in the spill store"),
      std::string::npos)
      << text;
}

class Closings final : public SpillCloseListener {
 public:
  void on_spill_event(const SpillEvent& /*event*/) override {}
  void on_spill_close(const SpillStatistics& last) override { closings.push_back(last); }
  std::vector<SpillStatistics> closings;
};

TEST(SpillCloseListener, HearsOfEachOpeningOnce) {
  const TemporaryDirectory directory;
  const std::string path = directory.path("db");
  rocksdb::Options options;
  options.create_if_missing = true;
  const auto listener = std::make_shared<Closings>();
  SpillOptions spill;
  spill.listeners.push_back(listener);
  spill.rollback = RollbackPolicy::off;
  for (const bool closes : {true, false}) {
    DB* opened = nullptr;
    ASSERT_TRUE(DB::Open(options, spill, path, &opened).ok());
    const std::unique_ptr<DB> db(opened);
    db->SetDiversion(Diversion::always);
    ASSERT_TRUE(db->Put({}, closes ? "a" : "b", "value").ok());
    if (closes) {
      ASSERT_TRUE(db->Close().ok());
    }
  }
  ASSERT_EQ(listener->closings.size(), 2U);
  EXPECT_EQ(listener->closings[0].live_entries, 1U);
  EXPECT_EQ(listener->closings[1].live_entries, 2U);
  options.error_if_exists = true;
  DB* refused = nullptr;
  EXPECT_FALSE(DB::Open(options, spill, path, &refused).ok());
  EXPECT_EQ(listener->closings.size(), 2U);
}

}  // namespace
}  // namespace spillway::accelerate
