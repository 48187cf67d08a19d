// What RocksDB's own code and a user read from spillway::DB's snapshots.
#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <rocksdb/utilities/write_batch_with_index.h>

#include <cstring>
#include <memory>
#include <string>

#include "spill/compat/db_out.h"
#include "spillway/db.h"
#include "temporary_directory.h"

namespace spillway::clients {
namespace {

// The beginning of RocksDB's class, to which RocksDB casts a snapshot.
struct AsRocksdbReadsIt {
  const void* functions;
  rocksdb::SequenceNumber number;
  rocksdb::SequenceNumber min_uncommitted;
};

class SpillSnapshots : public ::testing::Test {
 protected:
  SpillSnapshots() {
    rocksdb::Options options;
    options.create_if_missing = true;
    SpillOptions spill_options;
    spill_options.rollback = RollbackPolicy::off;
    EXPECT_TRUE(DB::Open(options, spill_options, directory_.path("spill"), &db_).ok());
    owned_.reset(db_);
    rocksdb::DB* plain = nullptr;
    EXPECT_TRUE(rocksdb::DB::Open(options, directory_.path("plain"), spill::DbOut(&plain)).ok());
    plain_.reset(plain);
  }

  const TemporaryDirectory directory_;
  DB* db_ = nullptr;
  std::unique_ptr<rocksdb::DB> owned_;
  std::unique_ptr<rocksdb::DB> plain_;
};

TEST_F(SpillSnapshots, ACastReadsRocksdbsNumbers) {
  for (const char* key : {"a", "b", "c"}) {
    ASSERT_TRUE(plain_->Put({}, key, "1").ok());
    ASSERT_TRUE(db_->Put({}, key, "1").ok());
  }
  const rocksdb::SequenceNumber main = db_->GetLatestSequenceNumber();
  db_->SetDiversion(Diversion::always);
  ASSERT_TRUE(db_->Put({}, "d", "1").ok());
  rocksdb::ManagedSnapshot plain(plain_.get());
  rocksdb::ManagedSnapshot spill(db_);
  const auto read = [](rocksdb::ManagedSnapshot& one) {
    AsRocksdbReadsIt result{};
    std::memcpy(&result, static_cast<const void*>(one.snapshot()), sizeof result);
    return result;
  };
  EXPECT_EQ(read(plain).number, plain.snapshot()->GetSequenceNumber());  // RocksDB's class has the layout of this test
  EXPECT_EQ(read(spill).number, main);
  EXPECT_EQ(read(spill).min_uncommitted, read(plain).min_uncommitted);
}

TEST_F(SpillSnapshots, NumbersDistinguishSnapshotsWithADivertedWriteBetweenThem) {
  rocksdb::SequenceNumber last = 0;
  for (int i = 0; i < 6; ++i) {
    db_->SetDiversion(i % 2 == 0 ? Diversion::always : Diversion::never);
    ASSERT_TRUE(db_->Put({}, std::to_string(i), "1").ok());
    if (i == 4) {
      ASSERT_TRUE(db_->Rollback().ok());
    }
    rocksdb::ManagedSnapshot snapshot(db_);
    EXPECT_GT(snapshot.snapshot()->GetSequenceNumber(), last) << i;
    last = snapshot.snapshot()->GetSequenceNumber();
  }
}

// The function needs RocksDB itself, which is handed out for it, and passes the snapshot to it.
TEST_F(SpillSnapshots, AnEarlierOneReachesRocksdbThroughAFunctionThatBypassesSpillway) {
  ASSERT_TRUE(db_->Put({}, "a", "before").ok());
  rocksdb::ManagedSnapshot snapshot(db_);
  ASSERT_TRUE(db_->Put({}, "a", "after").ok());
  rocksdb::ReadOptions options;
  options.snapshot = snapshot.snapshot();
  rocksdb::WriteBatchWithIndex batch;
  const rocksdb::Slice key("a");
  rocksdb::PinnableSlice value;
  rocksdb::Status status;
  batch.MultiGetFromBatchAndDB(db_, options, db_->DefaultColumnFamily(), 1, &key, &value, &status, false);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(value, "before");
}

}  // namespace
}  // namespace spillway::clients
