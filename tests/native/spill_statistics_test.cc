// The one table of statistics, and everything that is derived from it.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>

#include "spill/report/telemetry.h"
#include "spillway/db.h"
#include "temporary_directory.h"

namespace spillway {
namespace {

std::unique_ptr<DB> opened_in(const std::string& path) {
  rocksdb::Options options;
  options.create_if_missing = true;
  DB* db = nullptr;
  const rocksdb::Status status = DB::Open(options, SpillOptions(), path, &db);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return std::unique_ptr<DB>(db);
}

TEST(SpillStatistics, PropertiesAreNamedByRule) {
  EXPECT_EQ(property_of_statistic("diverted_writes"), "diverted-writes");
  EXPECT_EQ(property_of_statistic("wait_us"), "wait-micros");
  EXPECT_EQ(property_of_statistic("us"), "us");
  EXPECT_EQ(property_of_statistic("_us"), "-micros");
}

TEST(SpillStatistics, EveryCounterThatGrowsArrivesInTheStruct) {
  spill::Counts counts;
  spill::increment(counts.ordering_marks, 3);
  spill::increment(counts.rollback_failures);
  SpillStatistics statistics;
  statistics.live_bytes = 7;
  statistics.diverting = true;
  counts.read_into(&statistics);
  std::map<std::string, std::uint64_t> seen;
  for_each_statistic(statistics, [&](std::string_view name, std::uint64_t value) { seen[std::string(name)] = value; });
  EXPECT_EQ(seen.at("ordering_marks"), 3U);
  EXPECT_EQ(seen.at("rollback_failures"), 1U);
  EXPECT_EQ(seen.at("live_bytes"), 7U) << "a gauge is no counter";
  EXPECT_EQ(seen.at("diverting"), 1U);
  EXPECT_EQ(seen.size(), 39U) << "for a new one, change this and docs/LIBRARY.md by make docs";
}

TEST(SpillStatistics, EachIsAPropertyAndALineOfTheList) {
  const TemporaryDirectory directory;
  const std::unique_ptr<DB> db = opened_in(directory.path("db"));
  ASSERT_NE(db, nullptr);
  db->SetDiversion(Diversion::always);
  ASSERT_TRUE(db->Put({}, "key", "value").ok());
  std::string list;
  ASSERT_TRUE(db->GetProperty("spillway.stats", &list));
  std::map<std::string, std::string> map;
  ASSERT_TRUE(db->GetMapProperty("spillway.stats", &map));
  std::set<std::string> expected;
  for_each_statistic(db->GetSpillStatistics(), [&](std::string_view name, std::uint64_t value) {
    const std::string property = property_of_statistic(name);
    expected.insert(property);
    std::uint64_t read = 0;
    EXPECT_TRUE(db->GetIntProperty("spillway." + property, &read)) << property;
    EXPECT_EQ(read, value) << property;
    EXPECT_NE(list.find(property + ": "), std::string::npos) << property;
  });
  std::set<std::string> found;
  for (const auto& [name, value] : map) found.insert(name);
  EXPECT_EQ(found, expected);
  EXPECT_EQ(map.at("diverted-writes"), "1");
  std::uint64_t none = 0;
  EXPECT_FALSE(db->GetIntProperty("spillway.no-such-thing", &none));
}

TEST(SpillStatistics, OnlyCountsAreThoseOfAnInterval) {
  SpillStatistics before;
  before.diverted_writes = 5;
  before.rollback_failures = 1;
  before.live_bytes = 70;
  before.diverting = true;
  SpillStatistics now = before;
  now.diverted_writes = 12;
  now.live_bytes = 30;
  now.diverting = false;
  const SpillStatistics growth = growth_since(before, now);
  EXPECT_EQ(growth.diverted_writes, 7U);
  EXPECT_EQ(growth.rollback_failures, 0U);
  EXPECT_EQ(growth.live_bytes, 30U);
  EXPECT_FALSE(growth.diverting);
}

// What of the table is no counter is assigned by hand: each is something else than 0 at some time.
TEST(SpillStatistics, EveryGaugeAndFlagIsAssigned) {
  const TemporaryDirectory directory;
  const std::unique_ptr<DB> db = opened_in(directory.path("db"));
  ASSERT_NE(db, nullptr);
  std::set<std::string> zero;
#define SPILLWAY_NAME(name, text) zero.insert(#name);
#define SPILLWAY_NOTHING(name, text)
  SPILLWAY_STATISTICS(SPILLWAY_NOTHING, SPILLWAY_NAME, SPILLWAY_NAME)
#undef SPILLWAY_NAME
#undef SPILLWAY_NOTHING
  const auto look = [&] {
    for_each_statistic(db->GetSpillStatistics(), [&](std::string_view name, auto value) {
      if (value != 0) zero.erase(std::string(name));
    });
  };
  db->SetDiversion(Diversion::always);
  ASSERT_TRUE(db->Put({}, "key", std::string(1000, 'v')).ok());
  look();
  const rocksdb::Snapshot* const snapshot = db->GetSnapshot();  // holds what is brought back
  db->SetDiversion(Diversion::never);
  ASSERT_TRUE(db->Rollback().ok());
  look();
  db->ReleaseSnapshot(snapshot);
  (void)db->GetRootDB();
  look();
  EXPECT_EQ(zero, std::set<std::string>());
}

}  // namespace
}  // namespace spillway
