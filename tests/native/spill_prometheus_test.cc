// GetProperty("spillway.prometheus"), and the statistics by cause behind it. tests/python/test_metrics.py reads the
// text by the rules of the format.
#include <gtest/gtest.h>
#include <rocksdb/statistics.h>
#include <rocksdb/write_buffer_manager.h>

#include <map>
#include <memory>
#include <set>
#include <string>

#include "spill/report/prometheus.h"
#include "spill/route/write_waits.h"
#include "spill/stall/divert_cause.h"
#include "spillway/db.h"
#include "temporary_directory.h"

namespace spillway {
namespace {

using spill::Counts;
using spill::PrometheusText;
using spill::Signals;
using spill::WaitCause;
using spill::WriteWaits;

std::map<std::string, std::uint64_t> values_of(const SpillStatistics& statistics) {
  std::map<std::string, std::uint64_t> values;
  for_each_statistic(statistics,
                     [&](std::string_view name, std::uint64_t value) { values[std::string(name)] = value; });
  return values;
}

TEST(SpillPrometheus, NamesUnitsAndLabelsFollowTheTable) {
  SpillStatistics statistics;
  statistics.diverted_bytes = 7;
  statistics.wait_rocksdb_us = 1'000'002;
  statistics.diverting = true;
  PrometheusText text;
  spill::add_statistics(statistics, &text);
  for (const char* const line : {
           "\n# TYPE spillway_diverted_bytes_total counter\nspillway_diverted_bytes_total 7\n",
           "\n# HELP spillway_wait_seconds_total how long write calls waited in all\n",
           "\nspillway_wait_seconds_total{cause=\"rocksdb\"} 1.000002\n",
           "\nspillway_waits_total{cause=\"low_priority\"} 0\n",
           "\n# TYPE spillway_diverting gauge\nspillway_diverting 1\n",
           "\nspillway_stalls_diverted_total{cause=\"write_buffer_manager\"} 0\n",
       }) {
    EXPECT_NE(text.text().find(line), std::string::npos) << line << text.text();
  }
  EXPECT_EQ(text.text().find("spillway_waits_total 0"), std::string::npos) << "the sum beside its parts";
}

TEST(SpillPrometheus, LabelsMayHaveAnyText) {
  PrometheusText text;
  text.metric(PrometheusText::Kind::gauge, "files", "one\nline \\ of \"help\"");
  text.sample({{"column_family", "a\"b\\c\nd"}}, 1);
  text.sample({{"column_family", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"}}, 2);
  EXPECT_EQ(text.text(),
            "# HELP spillway_files one\\nline \\\\ of \"help\"\n# TYPE spillway_files gauge\n"
            "spillway_files{column_family=\"a\\\"b\\\\c\\nd\"} 1\n"
            "spillway_files{column_family=\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"} 2\n");
}

// Prometheus refuses a text with two samples of the same labels.
TEST(SpillPrometheus, DifferentNamesStayDifferentWhereTheyAreNotUtf8) {
  const std::set<std::string> names = {"\xff",
                                       "\xfe",
                                       "\xff\xfe",
                                       "\xc3 ",
                                       "\xed\xa0\x80",
                                       "\xef\xbf",
                                       "\xef\xbf\xbd",
                                       "\xef\xbf\xbd"
                                       "ff",
                                       "ff"};
  std::set<std::string> shown;
  for (const std::string& name : names) {
    PrometheusText text;
    text.metric(PrometheusText::Kind::gauge, "files", "help");
    text.sample({{"column_family", name}}, 1);
    shown.insert(text.text());
  }
  EXPECT_EQ(shown.size(), names.size());
  PrometheusText text;
  text.metric(PrometheusText::Kind::gauge, "files", "help");
  text.sample({{"column_family", "a\xff\xc3 "}}, 3);
  EXPECT_NE(text.text().find("{column_family=\"a\xef\xbf\xbd"
                             "ff\xef\xbf\xbd"
                             "c3 \"} 3\n"),
            std::string::npos)
      << text.text();
}

// Every part names a statistic, and a whole that is one.
TEST(SpillPrometheus, TheTableOfCausesFitsTheTableOfStatistics) {
  const auto values = values_of({});
#define SPILLWAY_PART(name, whole, label, value) \
  EXPECT_TRUE(values.contains(#name) && values.contains(#whole)) << #name;
  SPILLWAY_STATISTICS_BY_CAUSE(SPILLWAY_PART)
#undef SPILLWAY_PART
}

TEST(SpillWriteWaits, EachWaitIsCountedOnceAndItsTimeUnderItsCauses) {
  Counts counts;
  WriteWaits waits(counts);
  waits.wait_for(WaitCause::rollback);
  waits.wait_for(WaitCause::rocksdb);
  waits.add(WaitCause::commits, std::chrono::seconds(5));  // at the same time
  waits.end();
  waits.add(WaitCause::commits, std::chrono::milliseconds(3));
  waits.add(WaitCause::low_priority, std::chrono::nanoseconds(0));
  waits.report();
  EXPECT_EQ(counts.waits, 1U);
  EXPECT_EQ(counts.waits_rollback, 1U);
  EXPECT_EQ(counts.waits_rocksdb + counts.waits_commits + counts.waits_low_priority, 0U);
  EXPECT_EQ(counts.wait_commits_us, 3000U);
  EXPECT_EQ(counts.wait_low_priority_us, 0U);
  EXPECT_EQ(counts.wait_us,
            counts.wait_rocksdb_us + counts.wait_rollback_us + counts.wait_commits_us + counts.wait_low_priority_us);
}

TEST(SpillWriteWaits, APartAddsToItsWholeWhatThatHasNotCounted) {
  Counts counts;
  WriteWaits whole(counts);
  whole.add(WaitCause::commits, std::chrono::microseconds(10));
  WriteWaits part(counts);
  part.begin_part_of(whole);
  part.add(WaitCause::low_priority, std::chrono::microseconds(7));
  part.end();
  whole.take_part(part);
  whole.report();
  EXPECT_EQ(counts.waits, 1U);
  EXPECT_EQ(counts.waits_commits, 1U);
  EXPECT_EQ(counts.wait_us, 17U);
  EXPECT_EQ(counts.wait_low_priority_us, 7U);
}

TEST(SpillDivertCauses, AreThoseOfTheThresholdThatIsReached) {
  using spill::DivertCause;
  const DivertPolicy policy;
  Signals signals;
  EXPECT_EQ(spill::divert_cause(signals, policy), DivertCause::other);
  signals.hard_pending_compaction_bytes = 100;
  signals.pending_compaction_bytes = 98;
  EXPECT_EQ(spill::divert_cause(signals, policy), DivertCause::pending_compaction_bytes);
  signals.l0_files = signals.l0_stop_trigger - 1;
  EXPECT_EQ(spill::divert_cause(signals, policy), DivertCause::l0);
  signals.immutable_memtables = signals.max_write_buffer_number;
  EXPECT_EQ(spill::divert_cause(signals, policy), DivertCause::memtable);
}

// RocksDB's notification of a stall has no cause: it is that of the next poll.
TEST(SpillDivertCauses, EveryDiversionHasOneCause) {
  Counts counts;
  spill::DivertCauses causes(DivertPolicy(), counts);
  Signals none;
  Signals l0;
  l0.l0_files = l0.l0_stop_trigger;
  causes.poll(l0);  // no diversion
  causes.begin(l0, /*memory_is_full=*/false);
  causes.poll(none);
  EXPECT_EQ(counts.stalls_diverted_l0, 1U);
  causes.begin(none, /*memory_is_full=*/false);
  EXPECT_EQ(counts.stalls_diverted_other, 0U);
  causes.poll(l0);
  EXPECT_EQ(counts.stalls_diverted_l0, 2U);
  causes.begin(l0, /*memory_is_full=*/true);
  EXPECT_EQ(counts.stalls_diverted_write_buffer_manager, 1U);
  causes.begin(none, /*memory_is_full=*/false);
  causes.poll(none);
  causes.poll(none);
  EXPECT_EQ(counts.stalls_diverted_other, 1U);
}

class SpillPrometheusOfADatabase : public testing::Test {
 protected:
  void open(const rocksdb::Options& options) {
    DB* opened = nullptr;
    ASSERT_TRUE(DB::Open(options, SpillOptions(), directory_.path("db"), &opened).ok());
    db_.reset(opened);
  }
  std::string text() {
    std::string text;
    EXPECT_TRUE(db_->GetProperty("spillway.prometheus", &text));
    return text;
  }

  const TemporaryDirectory directory_;
  rocksdb::Options options_;
  std::unique_ptr<DB> db_;

  SpillPrometheusOfADatabase() { options_.create_if_missing = true; }
};

TEST_F(SpillPrometheusOfADatabase, HasItsColumnFamiliesAndNotTheGuard) {
  open(options_);
  rocksdb::ColumnFamilyHandle* family = nullptr;
  ASSERT_TRUE(db_->CreateColumnFamily({}, "new\"one", &family).ok());
  db_->SetDiversion(Diversion::always);
  ASSERT_TRUE(db_->Put({}, family, "key", "value").ok());
  const std::string all = text();
  EXPECT_NE(all.find("\nspillway_diverted_writes_total 1\n"), std::string::npos) << all;
  EXPECT_NE(all.find("\nspillway_rocksdb_l0_files{column_family=\"default\"} 0\n"), std::string::npos) << all;
  EXPECT_NE(all.find("\nspillway_rocksdb_l0_files{column_family=\"new\\\"one\"} 0\n"), std::string::npos) << all;
  const std::string stall =
      "\nspillway_rocksdb_stalls_total{column_family=\"default\",cause=\"l0\",state=\"stopped\"} 0\n";
  EXPECT_NE(all.find(stall), std::string::npos) << all;
  EXPECT_EQ(all.find("guard"), std::string::npos) << all;
  EXPECT_EQ(all.find("write_buffer_manager_limit"), std::string::npos) << "there is none";
  ASSERT_TRUE(db_->DropColumnFamily(family).ok());
  EXPECT_EQ(text().find("new\\\"one"), std::string::npos);
  ASSERT_TRUE(db_->DestroyColumnFamilyHandle(family).ok());
}

// A WriteBufferManager that stops writers: RocksDB reports no stall of it, and refuses the write.
TEST_F(SpillPrometheusOfADatabase, AWriteBufferManagersStallHasItsCause) {
  constexpr std::size_t kLimit = 256 << 10;
  options_.write_buffer_manager = std::make_shared<rocksdb::WriteBufferManager>(kLimit, nullptr, /*allow_stall=*/true);
  options_.statistics = rocksdb::CreateDBStatistics();
  open(options_);
  SpillStatistics statistics;
  for (int i = 0; i < 20000 && statistics.stalls_diverted_write_buffer_manager == 0; ++i) {
    ASSERT_TRUE(db_->Put({}, "key" + std::to_string(i), std::string(1000, 'v')).ok());
    statistics = db_->GetSpillStatistics();
  }
  EXPECT_GT(statistics.stalls_diverted_write_buffer_manager, 0U);
  const std::string all = text();
  EXPECT_NE(all.find("\nspillway_rocksdb_write_buffer_manager_limit_bytes 262144\n"), std::string::npos) << all;
  EXPECT_NE(all.find("\nspillway_rocksdb_written_bytes_total{cause=\"wal\"} "), std::string::npos) << all;
}

}  // namespace
}  // namespace spillway
