// Transactions over spillway::DB: the classic anomalies with all writes diverted, locks, save points, refusals.
#include "spill_transactions.h"

#include <gtest/gtest.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/utilities/transaction_db_mutex.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "at_each_step.h"
#include "temporary_directory.h"

namespace spillway::clients {
namespace {

class NoMutexes final : public rocksdb::TransactionDBMutexFactory {
 public:
  std::shared_ptr<rocksdb::TransactionDBMutex> AllocateMutex() override { return nullptr; }
  std::shared_ptr<rocksdb::TransactionDBCondVar> AllocateCondVar() override { return nullptr; }
};

Status lock(Transaction& transaction, const std::string& key, bool exclusive = true) {
  std::string value;
  const Status status = transaction.GetForUpdate(ReadOptions(), key, &value, exclusive);
  return status.IsNotFound() ? Status() : status;
}

void expect_refused(const char* name, const Status& status) {
  EXPECT_TRUE(status.IsNotSupported()) << name << ": " << status.ToString();
  EXPECT_NE(status.ToString().find(name), std::string::npos) << name << ": " << status.ToString();
}

// --- Optimistic

class SpillOptimistic : public ::testing::TestWithParam<Diversion> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(
        OptimisticTransactionDB::Open(rocksdb_options(), spill_options(), directory_.path("db"), &opened_).ok());
    db_.reset(opened_);
    opened_->GetSpillwayDB()->SetDiversion(GetParam());
    put("x", "0");
    put("y", "0");
  }
  void put(const std::string& key, const std::string& value) { ASSERT_TRUE(db_->Put(WriteOptions(), key, value).ok()); }
  std::unique_ptr<Transaction> begin(bool set_snapshot = false) {
    rocksdb::OptimisticTransactionOptions options;
    options.set_snapshot = set_snapshot;
    return std::unique_ptr<Transaction>(db_->BeginTransaction(WriteOptions(), options));
  }

  TemporaryDirectory directory_;
  OptimisticTransactionDB* opened_ = nullptr;
  std::unique_ptr<rocksdb::OptimisticTransactionDB> db_;
};

// While RocksDB is stalled a merge waits. A range deletion and other writes are diverted nevertheless.
TEST(SpillTransactions, AWaitingWriteDelaysNoOther) {
  const TemporaryDirectory directory;
  rocksdb::Options options = rocksdb_options();
  options.write_buffer_size = 128 << 10;
  OptimisticTransactionDB* opened = nullptr;
  ASSERT_TRUE(OptimisticTransactionDB::Open(options, spill_options(), directory.path("db"), &opened).ok());
  const std::unique_ptr<rocksdb::OptimisticTransactionDB> db(opened);
  DB& spilling = *opened->GetSpillwayDB();
  ASSERT_TRUE(spilling.PauseBackgroundWork().ok());
  for (int i = 0; i < 1'000 && spilling.GetSpillStatistics().diverted_writes == 0; ++i) {
    ASSERT_TRUE(db->Put(WriteOptions(), "fill " + std::to_string(i), std::string(20'000, 'v')).ok());
  }
  ASSERT_GT(spilling.GetSpillStatistics().diverted_writes, 0U);
  auto merged = std::async(std::launch::async, [&] { return db->Merge(WriteOptions(), "m", "1"); });
  EXPECT_EQ(merged.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout);
  auto others = std::async(std::launch::async, [&] {
    Status status = db->DeleteRange(WriteOptions(), db->DefaultColumnFamily(), "x", "y");
    if (status.ok()) status = db->Put(WriteOptions(), "p", "1");
    return status.ok() ? db->Put(WriteOptions(), "m", "0") : status;
  });
  EXPECT_EQ(others.wait_for(std::chrono::seconds(10)), std::future_status::ready) << "they wait for the merge";
  ASSERT_TRUE(spilling.ContinueBackgroundWork().ok());
  EXPECT_TRUE(others.get().ok());
  EXPECT_TRUE(merged.get().ok());
  EXPECT_EQ(value_in(*db, "m"), "0,1");
}

// Diversion continues while an ingestion brings back what was diverted before.
// Writers of a key do not wait in the queue of commits but before it, for its lock.
TEST(SpillTransactions, AWaitForAWriteOfTheSameKeyIsCounted) {
  constexpr std::chrono::milliseconds kHeld{200};
  const TemporaryDirectory directory;
  OptimisticTransactionDB* opened = nullptr;
  ASSERT_TRUE(OptimisticTransactionDB::Open(rocksdb_options(), spill_options(), directory.path("db"), &opened).ok());
  const std::unique_ptr<rocksdb::OptimisticTransactionDB> db(opened);
  DB& spilling = *opened->GetSpillwayDB();
  spilling.SetDiversion(Diversion::always);
  std::future<Status> behind;
  {
    const AtStep held("spill.commit.before_append", [&] {
      std::atomic<bool> is_routed = false;
      behind = std::async(std::launch::async, [&] {
        is_routed = true;
        return db->Put(WriteOptions(), "key", "2");
      });
      while (!is_routed) std::this_thread::yield();
      std::this_thread::sleep_for(kHeld);
    });
    ASSERT_TRUE(db->Put(WriteOptions(), "key", "1").ok());
  }
  EXPECT_TRUE(behind.get().ok());
  const SpillStatistics seen = spilling.GetSpillStatistics();
  EXPECT_GT(seen.waits_commits, 0U);
  EXPECT_GT(seen.wait_commits_us, static_cast<std::uint64_t>(std::chrono::microseconds(kHeld).count() / 4));
}

TEST(SpillTransactions, OthersWriteWhileAnIngestionWaitsForTheRollback) {
  const TemporaryDirectory directory;
  TransactionDB* opened = nullptr;
  SpillOptions spill = spill_options();
  spill.put_back_bytes = 0;
  ASSERT_TRUE(
      TransactionDB::Open(rocksdb_options(), rocksdb::TransactionDBOptions(), spill, directory.path("db"), &opened)
          .ok());
  const std::unique_ptr<rocksdb::TransactionDB> db(opened);
  opened->GetSpillwayDB()->SetDiversion(Diversion::always);
  ASSERT_TRUE(db->Put(WriteOptions(), "a", "1").ok());
  rocksdb::SstFileWriter writer({}, {});
  ASSERT_TRUE(writer.Open(directory.path("one.sst")).ok());
  ASSERT_TRUE(writer.Put("ingested", "1").ok());
  ASSERT_TRUE(writer.Finish().ok());
  std::atomic<bool> was_written{false};
  const AtStep beside("spill.rollback.sorted", [&] {
    auto written = std::async(std::launch::async, [&] { return db->Put(WriteOptions(), "b", "1"); });
    was_written = written.wait_for(std::chrono::seconds(10)) == std::future_status::ready;
    EXPECT_TRUE(was_written) << "it waits for the ingestion";
    if (!was_written) std::thread([w = std::move(written)]() mutable { w.wait(); }).detach();
  });
  ASSERT_TRUE(db->IngestExternalFile({directory.path("one.sst")}, {}).ok());
  EXPECT_TRUE(beside.was_reached());
  EXPECT_EQ(value_in(*db, "b"), "1");
  EXPECT_EQ(value_in(*db, "ingested"), "1");
}

TEST_P(SpillOptimistic, AnUpdateIsNotLost) {
  for (const bool before_a_rollback : {false, true}) {
    const auto one = begin();
    ASSERT_TRUE(lock(*one, "x").ok());
    const auto two = begin();
    ASSERT_TRUE(lock(*two, "x").ok());
    ASSERT_TRUE(two->Put("x", "two").ok());
    ASSERT_TRUE(two->Commit().ok());
    if (before_a_rollback) {
      ASSERT_TRUE(opened_->GetSpillwayDB()->Rollback().ok());
    }
    ASSERT_TRUE(one->Put("x", "one").ok());
    EXPECT_TRUE(one->Commit().IsBusy());
    EXPECT_EQ(value_in(*db_, "x"), "two");
  }
}

TEST_P(SpillOptimistic, AReadForUpdatePreventsWriteSkew) {
  const auto one = begin();
  const auto two = begin();
  for (const auto& transaction : {one.get(), two.get()}) {
    ASSERT_TRUE(lock(*transaction, "x").ok());
    ASSERT_TRUE(lock(*transaction, "y").ok());
  }
  ASSERT_TRUE(one->Put("x", "1").ok());
  ASSERT_TRUE(two->Put("y", "1").ok());
  EXPECT_TRUE(one->Commit().ok());
  EXPECT_TRUE(two->Commit().IsBusy());
  EXPECT_EQ(value_in(*db_, "x") + value_in(*db_, "y"), "10");
}

TEST_P(SpillOptimistic, OnlyTheTransactionSeesItsWrites) {
  const auto one = begin();
  ASSERT_TRUE(one->Put("x", "1").ok());
  ASSERT_TRUE(one->Delete("y").ok());
  ASSERT_TRUE(one->Merge("x", "2").ok());
  ASSERT_TRUE(one->Merge("z", "3").ok());
  EXPECT_EQ(value_in(*one, "x") + value_in(*one, "y") + value_in(*one, "z"), "1,2-3");
  EXPECT_EQ(value_in(*db_, "x") + value_in(*db_, "y") + value_in(*db_, "z"), "00-");
  const std::unique_ptr<rocksdb::Iterator> iterator(one->GetIterator(ReadOptions()));
  std::string all;
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
    all += iterator->key().ToString() + "=" + iterator->value().ToString() + " ";
  }
  EXPECT_EQ(all, "x=1,2 z=3 ");
  std::vector<std::string> values;
  const auto statuses = one->MultiGet(ReadOptions(), {Slice("x"), Slice("y"), Slice("z")}, &values);
  EXPECT_TRUE(statuses[0].ok() && statuses[1].IsNotFound() && statuses[2].ok());
  EXPECT_EQ(values[0] + values[2], "1,23");
  ASSERT_TRUE(one->Rollback().ok());
  EXPECT_EQ(value_in(*one, "x"), "0");
  ASSERT_TRUE(one->Put("x", "4").ok());
  ASSERT_TRUE(one->Merge("y", "5").ok());
  ASSERT_TRUE(one->Commit().ok());
  EXPECT_EQ(value_in(*db_, "x") + value_in(*db_, "y"), "40,5");
  // None of these calls hands out RocksDB.
  EXPECT_FALSE(opened_->GetSpillwayDB()->GetSpillStatistics().root_handed_out);
}

// Any write of the key, by any thread and any call.
TEST_P(SpillOptimistic, EveryWriteOfAKeyIsAConflict) {
  const std::string file = directory_.path("one.sst");
  rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), rocksdb_options());
  ASSERT_TRUE(writer.Open(file).ok());
  ASSERT_TRUE(writer.Put("x", "ingested").ok());
  ASSERT_TRUE(writer.Finish().ok());
  rocksdb::ColumnFamilyHandle* const family = db_->DefaultColumnFamily();
  const std::vector<std::function<Status()>> writes{
      [&] { return db_->Put(WriteOptions(), "x", "1"); },
      [&] { return db_->Delete(WriteOptions(), "x"); },
      [&] { return db_->SingleDelete(WriteOptions(), "x"); },
      [&] { return db_->Merge(WriteOptions(), "x", "1"); },
      [&] { return db_->DeleteRange(WriteOptions(), family, "a", "z"); },
      [&] { return opened_->GetSpillwayDB()->Put(WriteOptions(), "x", "1"); },
      [&] { return db_->GetBaseDB()->Put(WriteOptions(), "x", "1"); },
      [&] { return db_->IngestExternalFile(family, {file}, rocksdb::IngestExternalFileOptions()); },
  };
  for (std::size_t i = 0; i < writes.size(); ++i) {
    const auto one = begin();
    ASSERT_TRUE(lock(*one, "x").ok());
    ASSERT_TRUE(one->Put("y", "late").ok());
    const Status status = writes[i]();
    ASSERT_TRUE(status.ok()) << i << status.ToString();
    EXPECT_TRUE(one->Commit().IsBusy()) << i;
  }
  EXPECT_NE(value_in(*db_, "y"), "late");
}

TEST_P(SpillOptimistic, WritesSinceTheSnapshotAreConflicts) {
  const auto one = begin(/*set_snapshot=*/true);
  put("x", "later");
  ReadOptions at;
  at.snapshot = one->GetSnapshot();
  std::string value;
  ASSERT_TRUE(one->Get(at, "x", &value).ok());
  EXPECT_EQ(value, "0");
  ASSERT_TRUE(one->Put("x", "one").ok());
  EXPECT_TRUE(one->Commit().IsBusy());
  ASSERT_TRUE(one->Rollback().ok());
  one->SetSnapshot();
  ASSERT_TRUE(one->Put("x", "again").ok());
  EXPECT_TRUE(one->Commit().ok());
}

TEST_P(SpillOptimistic, WhatIsUndoneOrUntrackedIsNoConflict) {
  const auto one = begin();
  ASSERT_TRUE(one->Put("z", "1").ok());
  one->SetSavePoint();
  ASSERT_TRUE(one->Put("x", "1").ok());
  ASSERT_TRUE(one->RollbackToSavePoint().ok());
  ASSERT_TRUE(lock(*one, "y").ok());
  one->UndoGetForUpdate("y");
  ASSERT_TRUE(one->PutUntracked("u", "1").ok());
  put("x", "2");
  put("y", "2");
  put("u", "2");
  EXPECT_TRUE(one->Commit().ok());
  EXPECT_EQ(value_in(*db_, "x") + value_in(*db_, "y") + value_in(*db_, "u") + value_in(*db_, "z"), "2211");
}

INSTANTIATE_TEST_SUITE_P(WhereverWritesGo, SpillOptimistic, ::testing::Values(Diversion::never, Diversion::always),
                         [](const auto& one) { return one.param == Diversion::never ? "Never" : "Always"; });

// --- Pessimistic

class SpillPessimistic : public ::testing::TestWithParam<Diversion> {
 protected:
  void SetUp() override {
    transactions_.transaction_lock_timeout = 1;
    transactions_.default_lock_timeout = 1;
    open();
    put("x", "0");
    put("y", "0");
  }
  void open() {
    db_.reset();
    ASSERT_TRUE(
        TransactionDB::Open(rocksdb_options(), transactions_, spill_options(), directory_.path("db"), &opened_).ok());
    db_.reset(opened_);
    opened_->GetSpillwayDB()->SetDiversion(GetParam());
  }
  void put(const std::string& key, const std::string& value) { ASSERT_TRUE(db_->Put(WriteOptions(), key, value).ok()); }
  std::unique_ptr<Transaction> begin(const rocksdb::TransactionOptions& options = {}) {
    return std::unique_ptr<Transaction>(db_->BeginTransaction(WriteOptions(), options));
  }

  TemporaryDirectory directory_;
  rocksdb::TransactionDBOptions transactions_;
  TransactionDB* opened_ = nullptr;
  std::unique_ptr<rocksdb::TransactionDB> db_;
};

TEST_P(SpillPessimistic, ALockedKeyIsExclusiveUntilTheEnd) {
  const auto one = begin();
  ASSERT_TRUE(one->Put("x", "1").ok());
  const auto two = begin();
  EXPECT_TRUE(two->Put("x", "2").IsTimedOut());
  EXPECT_TRUE(lock(*two, "x").IsTimedOut());
  EXPECT_TRUE(db_->Put(WriteOptions(), "x", "3").IsTimedOut());
  EXPECT_TRUE(db_->Delete(WriteOptions(), "x").IsTimedOut());
  EXPECT_TRUE(db_->SingleDelete(WriteOptions(), "x").IsTimedOut());
  EXPECT_TRUE(db_->Merge(WriteOptions(), "x", "3").IsTimedOut());
  rocksdb::WriteBatch batch;
  ASSERT_TRUE(batch.Put("w", "3").ok());
  ASSERT_TRUE(batch.Put("x", "3").ok());
  EXPECT_TRUE(db_->Write(WriteOptions(), &batch).IsTimedOut());
  EXPECT_EQ(value_in(*db_, "w") + value_in(*db_, "x"), "-0");
  EXPECT_EQ(db_->GetLockStatusData().size(), 1U);
  EXPECT_EQ(db_->GetLockStatusData().begin()->second.ids, std::vector{one->GetID()});
  ASSERT_TRUE(one->Commit().ok());
  EXPECT_TRUE(db_->GetLockStatusData().empty());
  ASSERT_TRUE(two->Put("x", "2").ok());
  ASSERT_TRUE(two->Rollback().ok());
  EXPECT_EQ(value_in(*db_, "x"), "1");
}

TEST_P(SpillPessimistic, SharedLocksAreSharedAndMadeExclusiveByTheLastHolder) {
  const auto one = begin();
  auto two = begin();
  ASSERT_TRUE(lock(*one, "x", /*exclusive=*/false).ok());
  ASSERT_TRUE(lock(*two, "x", /*exclusive=*/false).ok());
  EXPECT_TRUE(one->Put("x", "1").IsTimedOut());
  two.reset();
  EXPECT_TRUE(one->Put("x", "1").ok());
  const auto three = begin();
  EXPECT_TRUE(lock(*three, "x", /*exclusive=*/false).IsTimedOut());
}

TEST_P(SpillPessimistic, ADeadlockIsReportedToOneOfTheTwo) {
  rocksdb::TransactionOptions patient;
  patient.lock_timeout = 60'000;
  patient.deadlock_detect = true;
  const auto one = begin(patient);
  const auto two = begin(patient);
  ASSERT_TRUE(lock(*one, "x").ok());
  ASSERT_TRUE(lock(*two, "y").ok());
  std::atomic<int> deadlocks{0};
  const auto ask = [&](Transaction& transaction, const char* key) {
    const Status status = lock(transaction, key);
    if (status.IsDeadlock()) {
      ++deadlocks;
      EXPECT_TRUE(transaction.Rollback().ok());
    } else {
      EXPECT_TRUE(status.ok()) << status.ToString();
    }
  };
  std::thread first(ask, std::ref(*one), "y");
  std::thread second(ask, std::ref(*two), "x");
  first.join();
  second.join();
  EXPECT_EQ(deadlocks, 1);
  ASSERT_EQ(db_->GetDeadlockInfoBuffer().size(), 1U);
  EXPECT_EQ(db_->GetDeadlockInfoBuffer().front().path.size(), 2U);
}

TEST_P(SpillPessimistic, AnExpiredTransactionLosesItsLocks) {
  rocksdb::TransactionOptions expires;
  expires.expiration = 0;
  const auto one = begin(expires);
  ASSERT_TRUE(one->Put("x", "1").ok());
  const auto two = begin();
  ASSERT_TRUE(two->Put("x", "2").ok());
  EXPECT_TRUE(one->Put("y", "1").IsExpired());
  EXPECT_TRUE(one->Commit().IsExpired());
  EXPECT_TRUE(two->Commit().ok());
  const auto three = begin(expires);
  ASSERT_TRUE(three->Put("y", "3").ok());
  EXPECT_TRUE(three->Commit().IsExpired());
  EXPECT_EQ(value_in(*db_, "x") + value_in(*db_, "y"), "20");
}

TEST_P(SpillPessimistic, WritesSinceTheSnapshotAreConflicts) {
  rocksdb::TransactionOptions with_snapshot;
  with_snapshot.set_snapshot = true;
  const auto one = begin(with_snapshot);
  put("x", "later");
  EXPECT_TRUE(one->Put("x", "1").IsBusy());
  EXPECT_TRUE(lock(*one, "x").IsBusy());
  EXPECT_TRUE(one->Put("y", "1").ok());
  EXPECT_TRUE(db_->Put(WriteOptions(), "x", "free").ok());  // a refused transaction holds no lock
  EXPECT_TRUE(one->PutUntracked("x", "1").ok());
  EXPECT_TRUE(one->Commit().ok());
  EXPECT_EQ(value_in(*db_, "x") + value_in(*db_, "y"), "11");
}

TEST_P(SpillPessimistic, GoingBackToASavePointGivesItsLocksBack) {
  const auto one = begin();
  ASSERT_TRUE(one->Put("x", "1").ok());
  one->SetSavePoint();
  ASSERT_TRUE(one->Put("x", "2").ok());
  ASSERT_TRUE(one->Put("y", "2").ok());
  EXPECT_EQ(one->GetNumKeys(), 2U);
  ASSERT_TRUE(one->RollbackToSavePoint().ok());
  EXPECT_EQ(one->GetNumKeys(), 1U);
  EXPECT_EQ(value_in(*one, "x") + value_in(*one, "y"), "10");
  put("y", "free");
  EXPECT_TRUE(db_->Put(WriteOptions(), "x", "locked").IsTimedOut());
  EXPECT_TRUE(one->RollbackToSavePoint().IsNotFound());
  EXPECT_TRUE(one->Commit().ok());
  EXPECT_EQ(value_in(*db_, "x") + value_in(*db_, "y"), "1free");
}

TEST_P(SpillPessimistic, ATransactionIsRebuiltFromABatchAndUsedAgain) {
  rocksdb::WriteBatch batch;
  ASSERT_TRUE(batch.Put("x", "batch").ok());
  ASSERT_TRUE(batch.Merge("y", "1").ok());
  ASSERT_TRUE(batch.Delete("z").ok());
  auto one = begin();
  ASSERT_TRUE(one->RebuildFromWriteBatch(&batch).ok());
  EXPECT_EQ(value_in(*one, "x") + value_in(*one, "y"), "batch0,1");
  Transaction* const again = db_->BeginTransaction(WriteOptions(), rocksdb::TransactionOptions(), one.release());
  one.reset(again);
  EXPECT_EQ(one->GetNumKeys(), 0U);
  EXPECT_TRUE(db_->GetLockStatusData().empty());
  EXPECT_EQ(value_in(*one, "x"), "0");
}

// RocksDB says the same of such a transaction.
TEST_P(SpillPessimistic, CommitIsRefusedIfATransactionWouldNeedPrepare) {
  rocksdb::TransactionOptions prepared;
  prepared.skip_prepare = false;
  const std::unique_ptr<Transaction> one(db_->BeginTransaction(WriteOptions(), prepared));
  ASSERT_TRUE(one->Put("x", "not prepared").ok());
  const Status status = one->Commit();
  EXPECT_EQ(status.ToString(), Status::TxnNotPrepared().ToString());
  EXPECT_TRUE(one->Rollback().ok());
  EXPECT_EQ(value_in(*begin(), "x"), "0");
  prepared.expiration = 100'000;  // RocksDB requires no Prepare then
  const std::unique_ptr<Transaction> expiring(db_->BeginTransaction(WriteOptions(), prepared));
  ASSERT_TRUE(expiring->Put("x", "1").ok());
  EXPECT_TRUE(expiring->Commit().ok());
  EXPECT_EQ(value_in(*begin(), "x"), "1");
}

TEST_P(SpillPessimistic, UnsupportedCallsReturnNotSupported) {
  auto one = begin();
  expect_refused("Prepare", one->Prepare());
  expect_refused("SetName", one->SetName("one"));
  expect_refused("GetRangeLock",
                 one->GetRangeLock(db_->DefaultColumnFamily(), rocksdb::Endpoint("a"), rocksdb::Endpoint("b")));
  expect_refused("SetReadTimestampForValidation", one->SetReadTimestampForValidation(1));
  expect_refused("SetCommitTimestamp", one->SetCommitTimestamp(1));
  ASSERT_TRUE(one->GetCommitTimeWriteBatch()->Put("x", "1").ok());
  expect_refused("GetCommitTimeWriteBatch", one->Commit());
  expect_refused("CreateTimestampedSnapshot", db_->CreateTimestampedSnapshot(1).first);
  std::vector<std::shared_ptr<const rocksdb::Snapshot>> snapshots;
  expect_refused("GetTimestampedSnapshots", db_->GetAllTimestampedSnapshots(snapshots));
  expect_refused("DeleteRange", db_->DeleteRange(WriteOptions(), db_->DefaultColumnFamily(), "a", "b"));
  rocksdb::WriteBatch batch;
  ASSERT_TRUE(batch.DeleteRange("a", "b").ok());
  expect_refused("DeleteRange", db_->Write(WriteOptions(), &batch));
  one.reset();
  db_.reset();
  const auto opens = [&](const rocksdb::TransactionDBOptions& options) {
    return TransactionDB::Open(rocksdb_options(), options, spill_options(), directory_.path("db"), &opened_);
  };
  rocksdb::TransactionDBOptions refused;
  refused.write_policy = rocksdb::TxnDBWritePolicy::WRITE_PREPARED;
  expect_refused("write_policy", opens(refused));
  refused = {};
  refused.lock_mgr_handle.reset(rocksdb::NewRangeLockManager(nullptr));
  expect_refused("lock_mgr_handle", opens(refused));
  refused = {};
  refused.custom_mutex_factory = std::make_shared<NoMutexes>();
  expect_refused("custom_mutex_factory", opens(refused));
}

INSTANTIATE_TEST_SUITE_P(WhereverWritesGo, SpillPessimistic, ::testing::Values(Diversion::never, Diversion::always),
                         [](const auto& one) { return one.param == Diversion::never ? "Never" : "Always"; });

}  // namespace
}  // namespace spillway::clients
