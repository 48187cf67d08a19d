// Bytes that change on the drive while the database is open, and while it is not: an error that says where, or the
// right answer, and never a wrong one.
#include "spill_damage.h"

#include <algorithm>
#include <fstream>
#include <iterator>

namespace spillway {
namespace {

using rocksdb::Status;

class SpillDamage : public ::testing::TestWithParam<StoreKind> {
 protected:
  void SetUp() override {
    const Status status = database_.open();
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  DB& db() { return database_.db(); }
  // It says that something is damaged, and what and where.
  static void expect_told(const Status& status) {
    EXPECT_TRUE(status.IsCorruption()) << status.ToString();
    EXPECT_NE(status.ToString().find("is damaged at byte "), std::string::npos) << status.ToString();
  }
  // Changes a byte of that value in whichever file of the store it lies.
  void flip_in_value(const std::string& value, std::size_t at) {
    int found = 0;
    for (const std::string& file : database_.files()) {
      const std::size_t begins = find_in(file, value);
      if (begins == std::string::npos) continue;
      ++found;
      flip(file, begins + at, 0x10);
    }
    ASSERT_GT(found, 0);
  }

  TemporaryDirectory temporary_;
  SpilledDatabase database_{GetParam(), temporary_.path("damage")};
};

INSTANTIATE_TEST_SUITE_P(Kinds, SpillDamage, ::testing::Values(StoreKind::region, StoreKind::key_value),
                         [](const auto& kind) { return name_of(kind.param); });

// Values at the beginning of a record and behind others, as a reader may come by them.
TEST_P(SpillDamage, EveryReadOfAValueThatChangedSaysSo) {
  const std::string first(1000, 'f');
  const std::string middle(3000, 'm');
  const std::string small = "a small value at the very end";
  rocksdb::WriteBatch batch;
  ASSERT_TRUE(batch.Put("a", first).ok());
  ASSERT_TRUE(batch.Put("b", middle).ok());
  ASSERT_TRUE(batch.Put("c", small).ok());
  ASSERT_TRUE(db().Write({}, &batch).ok());
  ASSERT_TRUE(db().Put({}, "d", "alone, and as it was").ok());
  ASSERT_TRUE(db().SyncWAL().ok());
  for (const auto& [key, value] : {std::pair<std::string, std::string>{"a", first}, {"b", middle}, {"c", small}}) {
    SCOPED_TRACE(key);
    flip_in_value(value, value.size() / 2);
    std::string got;
    expect_told(db().Get({}, key, &got));
    std::vector<std::string> values;
    const std::vector<Status> statuses = db().MultiGet({}, {"d", key}, &values);
    EXPECT_EQ(values[0], "alone, and as it was");
    expect_told(statuses[1]);
    for (const bool forward : {true, false}) {
      const std::unique_ptr<rocksdb::Iterator> all(db().NewIterator({}));
      forward ? all->SeekToFirst() : all->SeekToLast();
      while (all->Valid()) {
        EXPECT_NE(all->key().ToString(), key);
        forward ? all->Next() : all->Prev();
      }
      expect_told(all->status());
    }
    std::string damaged = value;
    damaged[value.size() / 2] ^= 0x10;
    flip_in_value(damaged, value.size() / 2);
    EXPECT_TRUE(db().Get({}, key, &got).ok());
    EXPECT_EQ(got, value);
  }
}

}  // namespace
}  // namespace spillway
