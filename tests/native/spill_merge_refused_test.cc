// Merges without a result, or with a long one: RocksDB accepts all of them, and reads return the error.
#include <gtest/gtest.h>
#include <rocksdb/merge_operator.h>
#include <rocksdb/write_batch.h>

#include <memory>
#include <string>
#include <vector>

#include "spill_side_by_side.h"

namespace spillway::clients {
namespace {

using rocksdb::ReadOptions;
using rocksdb::Status;
using rocksdb::WriteBatch;
using rocksdb::WriteOptions;

// Appends a digit to a value. Fails for a value that begins with '!'.
class Careful final : public rocksdb::AssociativeMergeOperator {
 public:
  bool Merge(const rocksdb::Slice& /*key*/, const rocksdb::Slice* existing, const rocksdb::Slice& operand,
             std::string* result, rocksdb::Logger* /*logger*/) const override {
    if (existing != nullptr && existing->starts_with("!")) return false;
    *result = (existing != nullptr ? existing->ToString() : "") + operand.ToString();
    return true;
  }
  const char* Name() const override { return "Careful"; }
};

class SpillMergeRefused : public SideBySide {
 protected:
  void SetUp() override {
    families_.front().options.merge_operator = std::make_shared<Careful>();
    open();
  }
  static std::string get(Side& side, const std::string& key) {
    std::string value;
    const Status status = side.db->Get(ReadOptions(), key, &value);
    return status.ok() ? value : "error " + std::to_string(status.code());  // the message depends on where the base is
  }
  void expect_same(const std::vector<std::string>& keys) {
    for (const std::string& key : keys) {
      SCOPED_TRACE(key);
      same([&](Side& side) { return get(side, key); });
    }
  }
  void put(const std::string& key, const std::string& value) {
    same([&](Side& side) { return side.db->Put(WriteOptions(), key, value); });
  }
};

TEST_F(SpillMergeRefused, ABatchIsTakenThoughAMergeOfItHasNoOutcome) {
  put("!main", "!");
  spill_db().SetDiversion(Diversion::always);
  put("live", "1");
  put("!spilled", "!");
  for (const char* const bad : {"!main", "!spilled"}) {
    SCOPED_TRACE(bad);
    const std::string ok = same([&](Side& side) {
      WriteBatch batch;
      EXPECT_TRUE(batch.Put("live", bad).ok());
      EXPECT_TRUE(batch.Merge(bad, "1").ok());
      return side.db->Write(WriteOptions(), &batch);
    });
    EXPECT_EQ(ok, "OK");
    expect_same({"live", bad});
    same([&](Side& side) {  // once more, over a value that cannot be read
      WriteBatch batch;
      EXPECT_TRUE(batch.Put("other", bad).ok());
      EXPECT_TRUE(batch.Merge(bad, "2").ok());
      return side.db->Write(WriteOptions(), &batch);
    });
    expect_same({"other", bad});
    spill_db().SetDiversion(
        Diversion::never);  // otherwise a flush of RocksDB would meet the merges without what hides them
    put(bad, "1");
    same([&](Side& side) { return side.db->Merge(WriteOptions(), bad, "2"); });
    expect_same({bad});
    spill_db().SetDiversion(Diversion::always);
    put("live", "1");
    put("!spilled", "!");
  }
  const Status status = spill_db().Rollback();
  EXPECT_TRUE(status.ok()) << status.ToString();
  expect_same({"live", "other", "!main", "!spilled"});
}

// All merges of a key in a batch become one put.
TEST_F(SpillMergeRefused, ManyMergesOfAKeyTakeTheRoomOfOne) {
  spill_db().SetDiversion(Diversion::always);
  put("k", std::string(4000, 'k'));
  const auto before = spill_db().GetSpillStatistics().diverted_bytes;
  same([](Side& side) {
    WriteBatch batch;
    for (int i = 0; i < 1000; ++i) EXPECT_TRUE(batch.Merge("k", "1").ok());
    EXPECT_TRUE(batch.Merge("gone", "1").ok());
    EXPECT_TRUE(batch.Merge("later", "1").ok());
    EXPECT_TRUE(batch.Put("later", "2").ok());
    EXPECT_TRUE(batch.DeleteRange("g", "h").ok());
    EXPECT_TRUE(batch.Merge("gone again", "1").ok());
    EXPECT_TRUE(batch.Merge("again", "1").ok());
    EXPECT_TRUE(batch.Delete("again").ok());
    EXPECT_TRUE(batch.Merge("again", "2").ok());
    return side.db->Write(WriteOptions(), &batch);
  });
  EXPECT_LT(spill_db().GetSpillStatistics().diverted_bytes - before, 10'000U);
  const std::vector<std::string> keys{"k", "gone", "later", "gone again", "again"};
  expect_same(keys);
  EXPECT_TRUE(spill_db().Rollback().ok());
  expect_same(keys);
}

}  // namespace
}  // namespace spillway::clients
