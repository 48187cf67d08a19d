// An empty value is a value: for every way to read it, and after a rollback.
#include <gtest/gtest.h>
#include <rocksdb/write_batch.h>

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "spill_damage.h"
#include "temporary_directory.h"

namespace spillway::clients {
namespace {

using rocksdb::Status;

constexpr std::uint64_t kIngest = 0;
constexpr std::uint64_t kPutBack = std::uint64_t{1} << 30;

class SpillEmptyValues : public ::testing::TestWithParam<std::tuple<StoreKind, std::uint64_t>> {
 protected:
  void SetUp() override {
    database_.put_back_bytes = std::get<1>(GetParam());
    open();
    for (const char* key : {"alone", "newer"})
      ASSERT_TRUE(db().Put({}, key, key == std::string("newer") ? "x" : "").ok());
    rocksdb::WriteBatch batch;
    ASSERT_TRUE(batch.Put("before", "1").ok());
    ASSERT_TRUE(batch.Put("in a batch", "").ok());
    ASSERT_TRUE(batch.Put("newer", "").ok());
    ASSERT_TRUE(batch.Put("", "").ok());
    ASSERT_TRUE(db().Write({}, &batch).ok());
  }
  void open() {
    const Status status = database_.open();
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  DB& db() { return database_.db(); }

  void expect_there(const rocksdb::ReadOptions& options = {}) {
    for (const auto& [key, wanted] : model_) {
      std::string value = "not read";
      const Status status = db().Get(options, key, &value);
      EXPECT_TRUE(status.ok()) << key << ": " << status.ToString();
      EXPECT_EQ(value, wanted) << key;
    }
    std::vector<rocksdb::Slice> keys;
    for (const auto& [key, wanted] : model_) keys.emplace_back(key);
    std::vector<std::string> values;
    for (const Status& status : db().MultiGet(options, keys, &values)) EXPECT_TRUE(status.ok()) << status.ToString();
    for (const std::uint64_t readahead : {0, 1 << 20}) {
      rocksdb::ReadOptions reading = options;
      reading.readahead_size = readahead;
      for (const bool forward : {true, false}) {
        const std::unique_ptr<rocksdb::Iterator> all(db().NewIterator(reading));
        std::map<std::string, std::string> seen;
        for (forward ? all->SeekToFirst() : all->SeekToLast(); all->Valid(); forward ? all->Next() : all->Prev()) {
          seen[all->key().ToString()] = all->value().ToString();
        }
        EXPECT_TRUE(all->status().ok()) << all->status().ToString();
        EXPECT_EQ(seen, model_);
      }
    }
  }

  const std::map<std::string, std::string> model_{
      {"", ""}, {"alone", ""}, {"before", "1"}, {"in a batch", ""}, {"newer", ""}};
  TemporaryDirectory temporary_;
  SpilledDatabase database_{std::get<0>(GetParam()), temporary_.path("empty")};
};

INSTANTIATE_TEST_SUITE_P(Kinds, SpillEmptyValues,
                         ::testing::Combine(::testing::Values(StoreKind::region, StoreKind::key_value),
                                            ::testing::Values(kIngest, kPutBack)),
                         [](const auto& of) {
                           return name_of(std::get<0>(of.param)) +
                                  (std::get<1>(of.param) == kIngest ? "Ingested" : "PutBack");
                         });

TEST_P(SpillEmptyValues, AreReadFromBothStores) {
  expect_there();
  rocksdb::ReadOptions then;
  then.snapshot = db().GetSnapshot();
  EXPECT_TRUE(db().Delete({}, "alone").ok());
  expect_there(then);
  db().ReleaseSnapshot(then.snapshot);
  EXPECT_TRUE(db().Put({}, "alone", "").ok());
  EXPECT_TRUE(db().VerifyChecksum().ok());
  open();
  expect_there();
  const Status status = db().Rollback();
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(db().GetSpillStatistics().live_entries, 0U);
  expect_there();
}

}  // namespace
}  // namespace spillway::clients
