// Pessimistic transactions: a key is locked before it is written or read for update. Writes outside a transaction lock
// their keys too.
#pragma once

#include <atomic>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "spill/transactions/lock_table.h"
#include "spill/transactions/transaction.h"
#include "spillway/transaction_db.h"

namespace spillway::spill {

class PessimisticTransaction;

class PessimisticDb final : public spillway::TransactionDB {
 public:
  using Status = rocksdb::Status;
  using Family = rocksdb::ColumnFamilyHandle;
  using Slice = rocksdb::Slice;

  PessimisticDb(DbImpl* db, const rocksdb::TransactionDBOptions& options);

  const rocksdb::TransactionDBOptions& transaction_options() const { return options_; }
  DbImpl& spill() { return spill_; }
  LockTable& locks() { return locks_; }
  rocksdb::TransactionID next_id() { return next_id_.fetch_add(1, std::memory_order_relaxed); }
  // Registers a transaction that can expire, so that other transactions can take its locks.
  void add_expiring(rocksdb::TransactionID id, PessimisticTransaction* transaction);
  void remove_expiring(rocksdb::TransactionID id);

  // --- spillway::TransactionDB
  spillway::DB* GetSpillwayDB() override { return &spill_; }

  // --- rocksdb::TransactionDB
  rocksdb::Transaction* BeginTransaction(const rocksdb::WriteOptions& options,
                                         const rocksdb::TransactionOptions& transaction,
                                         rocksdb::Transaction* old) override;
  rocksdb::Transaction* GetTransactionByName(const rocksdb::TransactionName&) override { return nullptr; }
  void GetAllPreparedTransactions(std::vector<rocksdb::Transaction*>* all) override { all->clear(); }
  std::unordered_multimap<std::uint32_t, rocksdb::KeyLockInfo> GetLockStatusData() override { return locks_.locks(); }
  std::vector<rocksdb::DeadlockPath> GetDeadlockInfoBuffer() override { return locks_.deadlocks(); }
  void SetDeadlockInfoBufferSize(std::uint32_t count) override { locks_.keep_deadlocks(count); }
  std::pair<Status, std::shared_ptr<const rocksdb::Snapshot>> CreateTimestampedSnapshot(rocksdb::TxnTimestamp) override;
  std::shared_ptr<const rocksdb::Snapshot> GetTimestampedSnapshot(rocksdb::TxnTimestamp) const override {
    return nullptr;
  }
  void ReleaseTimestampedSnapshotsOlderThan(rocksdb::TxnTimestamp) override {}
  Status GetTimestampedSnapshots(rocksdb::TxnTimestamp, rocksdb::TxnTimestamp,
                                 std::vector<std::shared_ptr<const rocksdb::Snapshot>>& snapshots) const override;

  // --- Writes outside a transaction
  using rocksdb::TransactionDB::Delete;
  using rocksdb::TransactionDB::DeleteRange;
  using rocksdb::TransactionDB::Get;
  using rocksdb::TransactionDB::Merge;
  using rocksdb::TransactionDB::MultiGet;
  using rocksdb::TransactionDB::Put;
  using rocksdb::TransactionDB::SingleDelete;
  Status Put(const rocksdb::WriteOptions& options, Family* family, const Slice& key, const Slice& value) override;
  Status Delete(const rocksdb::WriteOptions& options, Family* family, const Slice& key) override;
  Status SingleDelete(const rocksdb::WriteOptions& options, Family* family, const Slice& key) override;
  Status Merge(const rocksdb::WriteOptions& options, Family* family, const Slice& key, const Slice& operand) override;
  Status DeleteRange(const rocksdb::WriteOptions& options, Family* family, const Slice& begin,
                     const Slice& end) override;
  Status Write(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch) override;
  Status Write(const rocksdb::WriteOptions& options, const rocksdb::TransactionDBWriteOptimizations& optimizations,
               rocksdb::WriteBatch* batch) override;

  // --- Calls that a StackableDB does not forward
  Status Resume() override { return spill_.Resume(); }
  Status GetStatsHistory(std::uint64_t start_s, std::uint64_t end_s,
                         std::unique_ptr<rocksdb::StatsHistoryIterator>* iterator) override {
    return spill_.GetStatsHistory(start_s, end_s, iterator);
  }
  void GetAllColumnFamilyMetaData(std::vector<rocksdb::ColumnFamilyMetaData>* metadata) override {
    spill_.GetAllColumnFamilyMetaData(metadata);
  }

 private:
  bool take_expired_locks(rocksdb::TransactionID id) EXCLUDES(expiring_mutex_);

  DbImpl& spill_;
  const rocksdb::TransactionDBOptions options_;
  LockTable locks_;
  std::atomic<rocksdb::TransactionID> next_id_{1};
  Mutex expiring_mutex_;
  std::unordered_map<rocksdb::TransactionID, PessimisticTransaction*> expiring_ GUARDED_BY(expiring_mutex_);
};

class PessimisticTransaction final : public SpillTransaction {
 public:
  PessimisticTransaction(PessimisticDb& db, const rocksdb::WriteOptions& options,
                         const rocksdb::TransactionOptions& transaction);
  ~PessimisticTransaction() override;

  void begin_again(const rocksdb::WriteOptions& options, const rocksdb::TransactionOptions& transaction);
  // Another transaction takes its locks. Returns false if it is committing.
  bool drop_expired_locks();

  Status Commit() override;
  Status Rollback() override;
  void SetLockTimeout(std::int64_t timeout_ms) override;
  rocksdb::TransactionID GetID() const override { return locker_.id; }
  bool IsDeadlockDetect() const override { return locker_.detects_deadlocks; }
  std::vector<rocksdb::TransactionID> GetWaitingTxns(std::uint32_t* family, std::string* key) const override;

 private:
  void start(const rocksdb::TransactionOptions& transaction);
  void finish();
  bool is_expired() const { return std::chrono::steady_clock::now() >= locker_.expires; }
  Status acquire(const Key& key, const Tracked* tracked, bool exclusive, bool do_validate, bool assume_tracked,
                 KeyVersions::Stamp* at) override;
  bool tracks_unvalidated() const override { return true; }
  void release(const Key& key) override;

  PessimisticDb& owner_;
  Locker locker_;
  std::optional<std::chrono::microseconds> lock_timeout_;
  bool takes_locks_ = true;
  bool needs_prepare_ = false;
};

}  // namespace spillway::spill
