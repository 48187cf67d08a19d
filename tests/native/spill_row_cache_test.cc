// RocksDB's row cache. A row found in it counts for RocksDB as newer than every range tombstone, so the two exclude
// each other, as in newer versions of RocksDB.
#include <gtest/gtest.h>
#include <rocksdb/cache.h>

#include <cstdint>
#include <memory>
#include <string>

#include "spillway/db.h"
#include "temporary_directory.h"

namespace spillway::clients {
namespace {

using rocksdb::Status;

class SpillRowCache : public ::testing::Test {
 protected:
  void open(bool caches_rows) {
    db_.reset();
    rocksdb::Options options;
    options.create_if_missing = true;
    if (caches_rows) options.row_cache = rocksdb::NewLRUCache(1 << 20);
    SpillOptions spill;
    spill.rollback = RollbackPolicy::off;
    DB* db = nullptr;
    const Status status = DB::Open(options, spill, directory_.path("db"), &db);
    ASSERT_TRUE(status.ok()) << status.ToString();
    db_.reset(db);
  }
  std::uint64_t property(const std::string& name) {
    std::uint64_t value = 0;
    EXPECT_TRUE(db_->GetIntProperty("spillway." + name, &value)) << name;
    return value;
  }
  std::string get(const std::string& key) {
    std::string value;
    const Status status = db_->Get({}, key, &value);
    return status.ok() ? value : status.IsNotFound() ? "nothing" : status.ToString();
  }

  TemporaryDirectory directory_;
  std::unique_ptr<DB> db_;
};

TEST_F(SpillRowCache, RefusesDeleteRangeInEitherStoreAndKeepsTheRestOfTheBatchOut) {
  open(true);
  for (const Diversion diversion : {Diversion::never, Diversion::always}) {
    db_->SetDiversion(diversion);
    ASSERT_TRUE(db_->Put({}, "k", "v").ok());
    EXPECT_TRUE(db_->DeleteRange({}, db_->DefaultColumnFamily(), "a", "z").IsNotSupported());
    rocksdb::WriteBatch batch;
    ASSERT_TRUE(batch.Put("other", "v").ok());
    ASSERT_TRUE(batch.DeleteRange("a", "l").ok());
    EXPECT_TRUE(db_->Write({}, &batch).IsNotSupported());
    EXPECT_EQ(get("k"), "v");
    EXPECT_EQ(get("other"), "nothing");
  }
}

TEST_F(SpillRowCache, BringsARangeTombstoneOfAnEarlierOpeningBackInAFile) {
  open(false);
  db_->SetDiversion(Diversion::always);
  ASSERT_TRUE(db_->Put({}, "k", "v").ok());
  ASSERT_TRUE(db_->DeleteRange({}, db_->DefaultColumnFamily(), "a", "z").ok());
  ASSERT_TRUE(db_->Put({}, "l", "newer").ok());
  open(true);
  const Status status = db_->Rollback();
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(property("rollbacks-by-ingest"), 1U);
  EXPECT_EQ(property("rollbacks-by-put"), 0U);
  EXPECT_EQ(property("live-entries"), 0U);
  EXPECT_EQ(get("k"), "nothing");
  EXPECT_EQ(get("l"), "newer");
}

TEST_F(SpillRowCache, ReadsTheNewestVersionBeforeAndAfterARollback) {
  open(true);
  for (const Diversion diversion : {Diversion::never, Diversion::always, Diversion::never}) {
    db_->SetDiversion(diversion);
    for (const char* value : {"1", "2"}) {
      ASSERT_TRUE(db_->Put({}, "k", value).ok());
      EXPECT_EQ(get("k"), value);
      EXPECT_EQ(get("k"), value) << "from the cache";
    }
    ASSERT_TRUE(db_->Rollback().ok());
    ASSERT_TRUE(db_->Flush({}).ok());
    EXPECT_EQ(get("k"), "2");
    ASSERT_TRUE(db_->Delete({}, "k").ok());
    EXPECT_EQ(get("k"), "nothing");
  }
}

}  // namespace
}  // namespace spillway::clients
