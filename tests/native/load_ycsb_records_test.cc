// YCSB's keys and values against known answers, and what an update leaves of a record.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "load/ycsb/live_records.h"
#include "load/ycsb/records.h"
#include "load/ycsb/values.h"

namespace spillway::load::ycsb {
namespace {

// FNV-1a of eight bytes, computed independently (Python, by the algorithm's definition), without its sign.
TEST(LoadYcsbRecords, HashHasTheKnownAnswers) {
  EXPECT_EQ(fnv_hash(0), 6284781860667377211ULL);
  EXPECT_EQ(fnv_hash(1), 8517097267634966620ULL);
  EXPECT_EQ(fnv_hash(255), 8064062821143829734ULL);
  EXPECT_EQ(fnv_hash(9'999'999'999), 3605131173811637474ULL);
}

TEST(LoadYcsbRecords, KeysAreThoseOfYcsb) {
  Properties properties;
  KeyNames hashed(properties);
  EXPECT_EQ(hashed.key(0), "user6284781860667377211");
  EXPECT_EQ(hashed.key(1), "user8517097267634966620");
  properties.insertorder = InsertOrder::ordered;
  KeyNames ordered(properties);
  EXPECT_EQ(ordered.key(5), "user5");
  properties.zeropadding = 8;
  properties.keyprefix = "k";
  KeyNames padded(properties);
  EXPECT_EQ(padded.key(5), "k00000005");
  EXPECT_EQ(padded.key(1'234'567'890), "k1234567890");
}

TEST(LoadYcsbRecords, KeyBytesAreTheKeysSize) {
  for (const std::uint32_t padding : {0U, 1U, 19U, 30U}) {
    for (const InsertOrder order : {InsertOrder::hashed, InsertOrder::ordered}) {
      Properties properties;
      properties.zeropadding = padding;
      properties.insertorder = order;
      KeyNames names(properties);
      for (std::uint64_t record : {0ULL, 9ULL, 10ULL, 99'999ULL, 100'000ULL, 123'456'789ULL}) {
        EXPECT_EQ(names.key_bytes(record), names.key(record).size());
      }
    }
  }
}

Properties shaped(Layout layout, Length distribution) {
  Properties properties;
  properties.recordcount = 1000;
  properties.fieldcount = 12;
  properties.fieldlength = 50;
  properties.minfieldlength = 3;
  properties.layout = layout;
  properties.fieldlengthdistribution = distribution;
  return properties;
}

TEST(LoadYcsbValues, HaveTheMeanSizeAndKeepItUnderUpdates) {
  for (const Layout layout : {Layout::values, Layout::named}) {
    for (const Length distribution : {Length::constant, Length::uniform, Length::zipfian}) {
      const Properties properties = shaped(layout, distribution);
      const ValueBuffer bytes = make_values(properties, 0.5, 1);
      RecordValues values(properties, bytes, 9);
      const double mean = mean_value_bytes(properties);
      double fresh = 0;
      double updated = 0;
      for (int i = 0; i < 4000; ++i) {
        std::string record(values.whole());
        fresh += static_cast<double>(record.size());
        for (std::uint32_t field = 0; field < 12; ++field) values.replace_field(record, field);
        updated += static_cast<double>(record.size());
      }
      const double allowed = distribution == Length::constant ? 1e-9 : 6 * 14.0 * std::sqrt(12.0 / 4000);
      EXPECT_NEAR(fresh / 4000, mean, allowed);
      EXPECT_NEAR(updated / 4000, mean, allowed);
    }
  }
  // 12 fields of 50 bytes; two lengths of 4 bytes each, ten names of 6 bytes and two of 7.
  EXPECT_DOUBLE_EQ(mean_value_bytes(shaped(Layout::values, Length::constant)), 600);
  EXPECT_DOUBLE_EQ(mean_value_bytes(shaped(Layout::named, Length::constant)), 600 + 12 * 8 + 10 * 6 + 2 * 7);
}

TEST(LoadYcsbValues, AnUpdateReplacesItsFieldAndNoOther) {
  for (const Layout layout : {Layout::values, Layout::named}) {
    const Properties properties = shaped(layout, Length::constant);
    const ValueBuffer bytes = make_values(properties, 1.0, 1);
    RecordValues values(properties, bytes, 9);
    const std::string before(values.whole());
    std::string after = before;
    values.replace_field(after, 11);
    ASSERT_EQ(after.size(), before.size());
    const std::size_t field = before.size() - 50;  // the last field
    EXPECT_EQ(after.substr(0, field), before.substr(0, field));
    EXPECT_NE(after.substr(field), before.substr(field));
  }
}

TEST(LoadYcsbValues, NamedRecordsAreLaidOutAsTheBindingsDo) {
  Properties properties = shaped(Layout::named, Length::constant);
  properties.fieldcount = 1;
  properties.fieldlength = 3;
  const ValueBuffer bytes = make_values(properties, 1.0, 1);
  RecordValues values(properties, bytes, 0);
  const std::string record(values.whole());
  EXPECT_EQ(record.substr(0, 14), std::string("\x06\0\0\0field0\x03\0\0\0", 14));
  EXPECT_EQ(record.size(), 17U);
}

TEST(LoadYcsbLiveRecords, CountsEachOnceWithItsOwnKey) {
  Properties properties;
  properties.recordcount = 120;
  properties.insertorder = InsertOrder::ordered;
  LiveRecords live(130);
  live.add(0, 2, 60);  // the even ones below 120
  live.add(1, 2, 50);  // 1, 3, …, 99
  live.add(90, 1, 5);  // again
  live.add(120, 1, 10);
  EXPECT_EQ(live.count(), 60U + 50 + 10);
  const std::uint64_t keys = 10 * 5 + 90 * 6 + 10 * 7 + 10 * 7;  // "user7", "user42", the even ones from 100, the last
  EXPECT_EQ(live.bytes(properties).bytes, keys + 120 * 1000);
  EXPECT_TRUE(live.bytes(properties).exact);
}

TEST(LoadYcsbLiveRecords, EstimatesBeyondItsBits) {
  Properties properties;
  properties.recordcount = 100'000;
  LiveRecords live(100'000, 1000);
  live.add(0, 1, 50'000);
  EXPECT_EQ(live.count(), 50'000U);
  const LiveBytes bytes = live.bytes(properties);
  EXPECT_FALSE(bytes.exact);
  EXPECT_NEAR(static_cast<double>(bytes.bytes), 50'000 * 1022.9, 50'000 * 0.5);
}

}  // namespace
}  // namespace spillway::load::ycsb
