// What differs between the versions of RocksDB: calls and options that only some of them have. Those that the version
// at hand lacks are tested where it is a later one.
#include <gtest/gtest.h>
#include <rocksdb/iterator.h>
#include <rocksdb/merge_operator.h>
#include <rocksdb/utilities/write_batch_with_index.h>
#include <rocksdb/wide_columns.h>

#include <memory>
#include <string>
#include <vector>

#include "spill/compat/db_out.h"
#include "spill/compat/library_version.h"
#include "spill/compat/rocksdb_calls.h"
#include "spill/compat/rocksdb_version.h"
#include "spillway/db.h"
#include "spillway/transaction_db.h"
#include "temporary_directory.h"

namespace spillway::clients {
namespace {

using rocksdb::PinnableSlice;
using rocksdb::ReadOptions;
using rocksdb::Slice;
using rocksdb::Status;
using rocksdb::WriteOptions;

class SpillCompat : public ::testing::TestWithParam<Diversion> {
 protected:
  void SetUp() override {
    options_.create_if_missing = true;
    DB* db = nullptr;
    ASSERT_TRUE(DB::Open(options_, SpillOptions(), directory_.path("db"), &db).ok());
    db_.reset(db);
    db_->SetDiversion(GetParam());
    ASSERT_TRUE(db_->Put(WriteOptions(), "a", "1").ok());
    ASSERT_TRUE(db_->Put(WriteOptions(), "b", "2").ok());
    family_ = db_->DefaultColumnFamily();
  }
  static void expect_refused(const char* name, const Status& status) {
    EXPECT_TRUE(status.IsNotSupported()) << name << ": " << status.ToString();
    EXPECT_NE(status.ToString().find(name), std::string::npos) << name << ": " << status.ToString();
  }
  Status open(const rocksdb::Options& options) {
    DB* db = nullptr;
    const Status status = DB::Open(options, SpillOptions(), directory_.path("other"), &db);
    delete db;  // NOLINT
    return status;
  }

  TemporaryDirectory directory_;
  rocksdb::Options options_;
  std::unique_ptr<DB> db_;
  rocksdb::ColumnFamilyHandle* family_ = nullptr;
};

// RocksDB 9.0 calls the functions with timestamps for those without, with nullptr.
TEST_P(SpillCompat, ReadsWithoutATimestampAreReads) {
  PinnableSlice pinned;
  std::string* const none = nullptr;
  ASSERT_TRUE(db_->Get(ReadOptions(), family_, "a", &pinned, none).ok());
  EXPECT_EQ(pinned, "1");
  const std::vector<Slice> keys{"a", "b", "c"};
  std::vector<rocksdb::ColumnFamilyHandle*> families(3, family_);
  std::vector<PinnableSlice> values(3);
  std::vector<Status> statuses(3);
  db_->MultiGet(ReadOptions(), 3, families.data(), keys.data(), values.data(), none, statuses.data());
  EXPECT_EQ(values[0], "1");
  EXPECT_EQ(values[1], "2");
  EXPECT_TRUE(statuses[2].IsNotFound());
  std::vector<std::string> texts;
  EXPECT_TRUE(db_->MultiGet(ReadOptions(), families, keys, &texts)[1].ok());
  EXPECT_EQ(texts[1], "2");
}

TEST_P(SpillCompat, FileDeletionsAreEnabledAgain) {
  ASSERT_TRUE(db_->DisableFileDeletions().ok());
  EXPECT_TRUE(spill::enable_file_deletions(*db_, /*force=*/false).ok());
}

TEST_P(SpillCompat, AFollowerIsRefused) {
  std::unique_ptr<rocksdb::DB> follower;
  expect_refused("OpenAsFollower",
                 DB::OpenAsFollower(options_, directory_.path("f"), directory_.path("db"), &follower));
}

#if !SPILLWAY_ROCKSDB_AT_LEAST(9, 11)
TEST_P(SpillCompat, DeleteFileIsRefused) { expect_refused("DeleteFile", db_->DeleteFile("000009.sst")); }
#elif !SPILLWAY_ROCKSDB_AT_LEAST(10, 0)
TEST_P(SpillCompat, DeleteFileIsRefused) {
  expect_refused("DEPRECATED_DeleteFile", db_->DEPRECATED_DeleteFile("000009.sst"));
}
#endif

#if SPILLWAY_ROCKSDB_AT_LEAST(8, 0)
TEST_P(SpillCompat, EntitiesOfSeveralKeysAreRefused) {
  const std::vector<Slice> keys{"a", "b"};
  std::vector<rocksdb::PinnableWideColumns> columns(2);
  std::vector<Status> statuses(2);
  db_->MultiGetEntity(ReadOptions(), family_, 2, keys.data(), columns.data(), statuses.data(), false);
  for (const Status& status : statuses) expect_refused("MultiGetEntity", status);
  std::vector<rocksdb::ColumnFamilyHandle*> families(2, family_);
  statuses.assign(2, Status());
  db_->MultiGetEntity(ReadOptions(), 2, families.data(), keys.data(), columns.data(), statuses.data(), false);
  for (const Status& status : statuses) expect_refused("MultiGetEntity", status);
}
#endif

#if SPILLWAY_ROCKSDB_AT_LEAST(8, 9)
TEST_P(SpillCompat, AttributeGroupsAreRefused) {
  const Slice key = "a";
  rocksdb::PinnableAttributeGroups groups;
  groups.emplace_back(family_);
  expect_refused("GetEntity", db_->GetEntity(ReadOptions(), key, &groups));
  expect_refused("GetEntity", groups[0].status());
  std::vector<rocksdb::PinnableAttributeGroups> results(1);
  results[0].emplace_back(family_);
  db_->MultiGetEntity(ReadOptions(), 1, &key, results.data());
  expect_refused("MultiGetEntity", results[0][0].status());
  rocksdb::AttributeGroups written;
  written.emplace_back(family_, rocksdb::WideColumns{{"c", "v"}});
  expect_refused("PutEntity", db_->PutEntity(WriteOptions(), key, written));
}
#endif

#if SPILLWAY_ROCKSDB_AT_LEAST(8, 3)
TEST_P(SpillCompat, ClippingIsRefused) { expect_refused("ClipColumnFamily", db_->ClipColumnFamily(family_, "a", "b")); }
#endif

#if SPILLWAY_ROCKSDB_AT_LEAST(8, 4)
TEST_P(SpillCompat, WaitingForCompactionsBringsBackFirst) {
  ASSERT_TRUE(db_->WaitForCompact(rocksdb::WaitForCompactOptions()).ok());
  std::uint64_t live = 1;
  ASSERT_TRUE(db_->GetIntProperty("spillway.live-entries", &live));
  EXPECT_EQ(live, 0U);
  ASSERT_TRUE(db_->PauseBackgroundWork().ok());
  rocksdb::WaitForCompactOptions at_once;
  at_once.abort_on_pause = true;
  EXPECT_TRUE(db_->WaitForCompact(at_once).IsAborted());
  ASSERT_TRUE(db_->ContinueBackgroundWork().ok());
}
#endif

#if SPILLWAY_ROCKSDB_AT_LEAST(8, 6)
TEST_P(SpillCompat, WaitingForCompactionsClosesBothStores) {
  rocksdb::WaitForCompactOptions closing;
  closing.close_db = true;
  EXPECT_TRUE(db_->WaitForCompact(closing).ok());
  EXPECT_TRUE(db_->Put(WriteOptions(), "c", "3").IsShutdownInProgress());
}
#endif

#if SPILLWAY_ROCKSDB_AT_LEAST(9, 1) && !SPILLWAY_ROCKSDB_AT_LEAST(9, 2)
TEST_P(SpillCompat, IteratorsOverFamiliesAreRefused) {
  expect_refused("NewMultiCfIterator", db_->NewMultiCfIterator(ReadOptions(), {family_})->status());
}
#elif SPILLWAY_ROCKSDB_AT_LEAST(9, 2)
TEST_P(SpillCompat, IteratorsOverFamiliesAreRefused) {
  expect_refused("NewCoalescingIterator", db_->NewCoalescingIterator(ReadOptions(), {family_})->status());
  expect_refused("NewAttributeGroupIterator", db_->NewAttributeGroupIterator(ReadOptions(), {family_})->status());
}
#endif

#if SPILLWAY_ROCKSDB_AT_LEAST(9, 1)
TEST_P(SpillCompat, ATimedPutIsNotDiverted) {
  rocksdb::WriteBatch batch;
  ASSERT_TRUE(batch.TimedPut(family_, "a", "3", 1).ok());
  const Status status = db_->Write(WriteOptions(), &batch);
  std::string value;
  ASSERT_TRUE(db_->Get(ReadOptions(), "a", &value).ok());
  if (GetParam() == Diversion::always) {
    expect_refused("TimedPut", status);  // its key lies in the spill store
    EXPECT_EQ(value, "1");
  } else {
    EXPECT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(value, "3");
  }
}
#endif

#if SPILLWAY_ROCKSDB_AT_LEAST(9, 4)
TEST_P(SpillCompat, AWriteWithACallbackIsRefused) {
  rocksdb::WriteBatch batch;
  expect_refused("WriteWithCallback", db_->WriteWithCallback(WriteOptions(), &batch, nullptr));
}
#endif

#if SPILLWAY_ROCKSDB_AT_LEAST(9, 8)
TEST_P(SpillCompat, ValuesOfAnIteratorAreThere) {
  ReadOptions unprepared;
  unprepared.allow_unprepared_value = true;
  const std::unique_ptr<rocksdb::Iterator> all(db_->NewIterator(unprepared));
  all->SeekToFirst();
  ASSERT_TRUE(all->Valid());
  EXPECT_TRUE(all->PrepareValue());
  EXPECT_EQ(all->value(), "1");
}
#endif

#if SPILLWAY_ROCKSDB_AT_LEAST(10, 2)
TEST_P(SpillCompat, AnIngestedBatchIsAWrite) {
  const auto batch = std::make_shared<rocksdb::WriteBatchWithIndex>(rocksdb::BytewiseComparator(), 0, true);
  ASSERT_TRUE(batch->Put("a", "3").ok());
  EXPECT_TRUE(db_->IngestWriteBatchWithIndex(WriteOptions(), batch).IsNotSupported());  // as RocksDB: without the log
  WriteOptions unlogged;
  unlogged.disableWAL = true;
  ASSERT_TRUE(db_->IngestWriteBatchWithIndex(unlogged, batch).ok());
  std::string value;
  ASSERT_TRUE(db_->Get(ReadOptions(), "a", &value).ok());
  EXPECT_EQ(value, "3");
  std::string timestamp;
  expect_refused("GetNewestUserDefinedTimestamp", db_->GetNewestUserDefinedTimestamp(family_, &timestamp));
}
#endif

#if SPILLWAY_ROCKSDB_AT_LEAST(10, 6)
TEST_P(SpillCompat, AScanOfSeveralRangesSeesBothStores) {
  rocksdb::MultiScanArgs ranges(rocksdb::BytewiseComparator());
  ranges.insert("a", "b");
  ranges.insert("b", "c");
  std::string found;
  const std::unique_ptr<rocksdb::MultiScan> scan = db_->NewMultiScan(ReadOptions(), family_, ranges);
  for (auto range : *scan) {
    for (auto entry : range) found += entry.first.ToString() + entry.second.ToString();
  }
  EXPECT_EQ(found, "a1b2");
}
#endif

#if SPILLWAY_ROCKSDB_AT_LEAST(10, 11)
TEST_P(SpillCompat, OptionsOfFamiliesAreSetWithTheirTriggers) {
  ASSERT_TRUE(db_->SetOptions({{family_, {{"level0_slowdown_writes_trigger", "7"}}}}).ok());
  EXPECT_EQ(db_->GetOptions().level0_slowdown_writes_trigger, 7);  // the user's, not RocksDB's
}
#endif

#if SPILLWAY_ROCKSDB_AT_LEAST(11, 5)
TEST_P(SpillCompat, IngestionInTwoPhasesIsRefused) {
  std::unique_ptr<rocksdb::FileIngestionHandle> handle;
  expect_refused("PrepareFileIngestion",
                 db_->PrepareFileIngestion(std::vector<rocksdb::IngestExternalFileArg>(1), &handle));
  expect_refused("CommitFileIngestionHandles", db_->CommitFileIngestionHandles({}));
}
#endif

TEST_P(SpillCompat, OptionsThatDoNotGoWithASpillStoreAreRefused) {
  rocksdb::Options good;
  good.create_if_missing = true;
  EXPECT_TRUE(open(good).ok());
#if SPILLWAY_ROCKSDB_AT_LEAST(9, 7)
  rocksdb::Options no_identity = good;
  no_identity.write_identity_file = false;
  expect_refused("write_identity_file", open(no_identity));
#endif
#if SPILLWAY_ROCKSDB_AT_LEAST(10, 0)
  rocksdb::Options no_memtable = good;
  no_memtable.disallow_memtable_writes = true;
  expect_refused("disallow_memtable_writes", open(no_memtable));
#endif
#if SPILLWAY_ROCKSDB_AT_LEAST(10, 6)
  rocksdb::Options behind = good;
  behind.cf_allow_ingest_behind = true;
  expect_refused("cf_allow_ingest_behind", open(behind));
#endif
#if SPILLWAY_ROCKSDB_AT_LEAST(11, 2)
  rocksdb::Options blobs = good;
  blobs.enable_blob_direct_write = true;
  expect_refused("enable_blob_direct_write", open(blobs));
#endif
#if SPILLWAY_ROCKSDB_AT_LEAST(11, 3)
  rocksdb::Options precreated = good;
  precreated.async_wal_precreate = true;
  expect_refused("async_wal_precreate", open(precreated));
#endif
}

INSTANTIATE_TEST_SUITE_P(Stores, SpillCompat, ::testing::Values(Diversion::always, Diversion::never));

TEST(SpillCompatVersion, AnotherRocksdbIsRefusedInOneSentence) {
  EXPECT_TRUE(spill::check_rocksdb("7.8", "7.8").ok());
  const Status status = spill::check_rocksdb("7.8", "9.10");
  EXPECT_TRUE(status.IsNotSupported());
  EXPECT_EQ(std::string(status.getState()),
            "spillway was built for RocksDB 7.8 and cannot be used with 9.10, which this program has loaded; build it "
            "again with that RocksDB");
  EXPECT_TRUE(spill::check_loaded_rocksdb().ok());
}

// A read through a transaction sees what lies under it in either store, and RocksDB's merge of the two.
class Append final : public rocksdb::AssociativeMergeOperator {
 public:
  bool Merge(const Slice&, const Slice* below, const Slice& operand, std::string* result,
             rocksdb::Logger*) const override {
    *result = (below == nullptr ? "" : below->ToString()) + operand.ToString();
    return true;
  }
  const char* Name() const override { return "spillway.test.Append"; }
};

TEST(SpillCompatTransaction, ReadsWhatLiesUnderItInEitherStore) {
  for (const Diversion diversion : {Diversion::always, Diversion::never}) {
    const TemporaryDirectory directory;
    rocksdb::Options options;
    options.create_if_missing = true;
    options.merge_operator = std::make_shared<Append>();
    OptimisticTransactionDB* opened = nullptr;
    ASSERT_TRUE(OptimisticTransactionDB::Open(options, SpillOptions(), directory.path("db"), &opened).ok());
    const std::unique_ptr<OptimisticTransactionDB> db(opened);
    db->GetSpillwayDB()->SetDiversion(diversion);
    for (const char* key : {"deleted", "merged", "put", "untouched"}) {
      ASSERT_TRUE(db->Put(WriteOptions(), key, "1").ok());
    }
    const std::unique_ptr<rocksdb::Transaction> transaction(db->BeginTransaction(WriteOptions()));
    const auto get = [&](const char* key) {
      std::string value;
      const Status status = transaction->Get(ReadOptions(), key, &value);
      return status.ok() ? value : status.IsNotFound() ? "none" : status.ToString();
    };
    EXPECT_EQ(get("untouched"), "1");  // with an empty batch
    ASSERT_TRUE(transaction->Put("put", "2").ok());
    ASSERT_TRUE(transaction->Delete("deleted").ok());
    ASSERT_TRUE(transaction->Merge("merged", "2").ok());
    ASSERT_TRUE(transaction->Merge("merged", "3").ok());
    ASSERT_TRUE(transaction->Merge("new", "4").ok());
    ASSERT_TRUE(transaction->Put("both", "5").ok());
    ASSERT_TRUE(transaction->Merge("both", "6").ok());
    EXPECT_EQ(get("put"), "2");
    EXPECT_EQ(get("deleted"), "none");
    EXPECT_EQ(get("merged"), "123");
    EXPECT_EQ(get("new"), "4");
    EXPECT_EQ(get("both"), "56");
    EXPECT_EQ(get("untouched"), "1");
    EXPECT_EQ(get("nowhere"), "none");
#if SPILLWAY_ROCKSDB_AT_LEAST(9, 9)
    const auto refused = [](const char* name, const Status& status) {
      EXPECT_TRUE(status.IsNotSupported()) << name << ": " << status.ToString();
      EXPECT_NE(status.ToString().find(name), std::string::npos) << status.ToString();
    };
    rocksdb::ColumnFamilyHandle* const family = db->DefaultColumnFamily();
    rocksdb::PinnableWideColumns columns;
    const Slice key = "put";
    Status status;
    refused("GetEntity", transaction->GetEntity(ReadOptions(), family, key, &columns));
    refused("GetEntityForUpdate", transaction->GetEntityForUpdate(ReadOptions(), family, key, &columns));
    refused("PutEntity", transaction->PutEntity(family, key, rocksdb::WideColumns{{"c", "v"}}));
    refused("PutEntityUntracked", transaction->PutEntityUntracked(family, key, rocksdb::WideColumns{{"c", "v"}}));
    transaction->MultiGetEntity(ReadOptions(), family, 1, &key, &columns, &status);
    refused("MultiGetEntity", status);
    refused("GetCoalescingIterator", transaction->GetCoalescingIterator(ReadOptions(), {family})->status());
    refused("GetAttributeGroupIterator", transaction->GetAttributeGroupIterator(ReadOptions(), {family})->status());
    refused("CollapseKey", transaction->CollapseKey(ReadOptions(), key, family));
#endif
  }
}

}  // namespace
}  // namespace spillway::clients
