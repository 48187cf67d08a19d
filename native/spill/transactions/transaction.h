// A transaction over a DbImpl: its writes are kept in an indexed batch until it commits, and its reads check that
// first. Subclasses add concurrency control: optimistic.h, pessimistic.h.
#pragma once

#include <rocksdb/utilities/transaction.h>
#include <rocksdb/utilities/write_batch_with_index.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "spill/commit/key_versions.h"
#include "spill/compat/uniform_transaction.h"
#include "spill/db/db_impl.h"

namespace spillway::spill {

class SpillTransaction : public UniformTransaction {
 public:
  using SliceParts = rocksdb::SliceParts;

  SpillTransaction(DbImpl& db, const rocksdb::WriteOptions& options);
  ~SpillTransaction() override = default;

  // --- Snapshots
  void SetSnapshot() override;
  void SetSnapshotOnNextOperation(std::shared_ptr<rocksdb::TransactionNotifier> notifier) override;
  const rocksdb::Snapshot* GetSnapshot() const override { return snapshot_.taken.get(); }
  std::shared_ptr<const rocksdb::Snapshot> GetTimestampedSnapshot() const override { return nullptr; }
  void ClearSnapshot() override { snapshot_ = {}; }

  // --- Save points
  void SetSavePoint() override;
  Status RollbackToSavePoint() override;
  Status PopSavePoint() override;

  // --- Reads
  Status Get(const ReadOptions& options, Family* family, const Slice& key, std::string* value) override;
  Status Get(const ReadOptions& options, Family* family, const Slice& key, rocksdb::PinnableSlice* value) override;
  Status Get(const ReadOptions& options, const Slice& key, std::string* value) override;
  Status Get(const ReadOptions& options, const Slice& key, rocksdb::PinnableSlice* value) override;
  std::vector<Status> MultiGet(const ReadOptions& options, const std::vector<Family*>& families,
                               const std::vector<Slice>& keys, std::vector<std::string>* values) override;
  std::vector<Status> MultiGet(const ReadOptions& options, const std::vector<Slice>& keys,
                               std::vector<std::string>* values) override;
  void MultiGet(const ReadOptions& options, Family* family, std::size_t count, const Slice* keys,
                rocksdb::PinnableSlice* values, Status* statuses, bool sorted_input) override;
  Status GetForUpdate(const ReadOptions& options, Family* family, const Slice& key, std::string* value, bool exclusive,
                      bool do_validate) override;
  Status GetForUpdate(const ReadOptions& options, Family* family, const Slice& key, rocksdb::PinnableSlice* value,
                      bool exclusive, bool do_validate) override;
  Status GetForUpdate(const ReadOptions& options, const Slice& key, std::string* value, bool exclusive,
                      bool do_validate) override;
  Status GetRangeLock(Family* family, const rocksdb::Endpoint& begin, const rocksdb::Endpoint& end) override;
  std::vector<Status> MultiGetForUpdate(const ReadOptions& options, const std::vector<Family*>& families,
                                        const std::vector<Slice>& keys, std::vector<std::string>* values) override;
  std::vector<Status> MultiGetForUpdate(const ReadOptions& options, const std::vector<Slice>& keys,
                                        std::vector<std::string>* values) override;
  rocksdb::Iterator* GetIterator(const ReadOptions& options) override;
  rocksdb::Iterator* GetIterator(const ReadOptions& options, Family* family) override;

  // --- Writes
  Status Put(Family* family, const Slice& key, const Slice& value, bool assume_tracked) override;
  Status Put(const Slice& key, const Slice& value) override;
  Status Put(Family* family, const SliceParts& key, const SliceParts& value, bool assume_tracked) override;
  Status Put(const SliceParts& key, const SliceParts& value) override;
  Status Merge(Family* family, const Slice& key, const Slice& operand, bool assume_tracked) override;
  Status Merge(const Slice& key, const Slice& operand) override;
  Status Delete(Family* family, const Slice& key, bool assume_tracked) override;
  Status Delete(const Slice& key) override;
  Status Delete(Family* family, const SliceParts& key, bool assume_tracked) override;
  Status Delete(const SliceParts& key) override;
  Status SingleDelete(Family* family, const Slice& key, bool assume_tracked) override;
  Status SingleDelete(const Slice& key) override;
  Status SingleDelete(Family* family, const SliceParts& key, bool assume_tracked) override;
  Status SingleDelete(const SliceParts& key) override;
  Status PutUntracked(Family* family, const Slice& key, const Slice& value) override;
  Status PutUntracked(const Slice& key, const Slice& value) override;
  Status PutUntracked(Family* family, const SliceParts& key, const SliceParts& value) override;
  Status PutUntracked(const SliceParts& key, const SliceParts& value) override;
  Status MergeUntracked(Family* family, const Slice& key, const Slice& operand) override;
  Status MergeUntracked(const Slice& key, const Slice& operand) override;
  Status DeleteUntracked(Family* family, const Slice& key) override;
  Status DeleteUntracked(const Slice& key) override;
  Status DeleteUntracked(Family* family, const SliceParts& key) override;
  Status DeleteUntracked(const SliceParts& key) override;
  Status SingleDeleteUntracked(Family* family, const Slice& key) override;
  Status SingleDeleteUntracked(const Slice& key) override;
  void PutLogData(const Slice& blob) override { (void)batch_.PutLogData(blob); }
  void DisableIndexing() override { is_indexing_ = false; }
  void EnableIndexing() override { is_indexing_ = true; }
  void UndoGetForUpdate(Family* family, const Slice& key) override;
  void UndoGetForUpdate(const Slice& key) override { UndoGetForUpdate(default_family(), key); }
  Status RebuildFromWriteBatch(rocksdb::WriteBatch* source) override;

  // --- State and settings
  std::uint64_t GetNumKeys() const override { return tracked_.size(); }
  std::uint64_t GetNumPuts() const override { return counts_.puts; }
  std::uint64_t GetNumDeletes() const override { return counts_.deletes; }
  std::uint64_t GetNumMerges() const override { return counts_.merges; }
  std::uint64_t GetElapsedTime() const override;
  rocksdb::WriteBatchWithIndex* GetWriteBatch() override { return &batch_; }
  rocksdb::WriteBatch* GetCommitTimeWriteBatch() override { return &commit_time_batch_; }
  rocksdb::WriteOptions* GetWriteOptions() override { return &options_; }
  void SetWriteOptions(const rocksdb::WriteOptions& options) override { options_ = options; }

  // --- Refused
  Status Prepare() override;
  Status SetName(const rocksdb::TransactionName& name) override;
  Status SetReadTimestampForValidation(rocksdb::TxnTimestamp timestamp) override;
  Status SetCommitTimestamp(rocksdb::TxnTimestamp timestamp) override;

 protected:
  using Key = std::pair<std::uint32_t, std::string>;  // column family, key
  struct Tracked {
    bool exclusive = false;
    std::uint64_t reads = 0;
    std::uint64_t writes = 0;
    KeyVersions::Stamp at = 0;  // conflict: another transaction has written the key since this time
  };
  enum class Operation { put, merge, remove, single_delete };

  // Makes sure that this transaction may read or write the key. `tracked`: its earlier state, or null. Sets `at` to the
  // clock value since which no other transaction may have written the key.
  virtual Status acquire(const Key& key, const Tracked* tracked, bool exclusive, bool do_validate, bool assume_tracked,
                         KeyVersions::Stamp* at) = 0;
  // Whether a key that needs no validation is tracked nevertheless.
  virtual bool tracks_unvalidated() const = 0;
  virtual void release(const Key& key) = 0;

  void begin(const rocksdb::WriteOptions& options);  // starts again
  void clear();                                      // forgets all writes and tracked keys
  Status check_commit() const;                       // not OK if the transaction cannot be committed
  void set_snapshot_if_needed();
  std::optional<KeyVersions::Stamp> snapshot_clock() const;
  DbImpl& db() const { return db_; }
  KeyVersions& versions() const { return *db_.router().versions(); }
  rocksdb::WriteBatchWithIndex& batch() { return batch_; }
  const rocksdb::WriteOptions& options() const { return options_; }
  const std::map<Key, Tracked>& tracked() const { return tracked_; }
  std::chrono::steady_clock::time_point began() const { return began_; }

 private:
  struct Counts {
    std::uint64_t puts = 0;
    std::uint64_t deletes = 0;
    std::uint64_t merges = 0;
  };
  struct TakenSnapshot {
    std::shared_ptr<const rocksdb::Snapshot> taken;
    KeyVersions::Stamp at = 0;  // read before it was taken
    bool is_needed = false;     // to be taken with the next operation
    std::shared_ptr<rocksdb::TransactionNotifier> notifier;
  };
  struct SavePoint {
    TakenSnapshot snapshot;
    Counts counts;
    std::map<Key, Tracked> tracked;  // since the save point; only the two counts are used
  };

  // Subtracts that many reads and writes of the key. Keys without any are released.
  void untrack(const Key& key, std::uint64_t reads, std::uint64_t writes);
  // The value of a key that the batch merges: RocksDB's merge of the batch onto the value below it.
  Status get_merged(const ReadOptions& options, Family* family, const Slice& key, rocksdb::PinnableSlice* value);
  Family* default_family() const { return db_.DefaultColumnFamily(); }
  Status try_lock(Family* family, const Slice& key, bool read_only, bool exclusive, bool do_validate,
                  bool assume_tracked);
  Status write(Operation operation, Family* family, const Slice& key, const Slice& value, bool do_validate,
               bool assume_tracked);
  Status write_tracked(Operation operation, Family* family, const Slice& key, const Slice& value, bool assume_tracked) {
    return write(operation, family, key, value, !assume_tracked, assume_tracked);
  }
  Status write_untracked(Operation operation, Family* family, const Slice& key, const Slice& value) {
    return write(operation, family, key, value, false, false);
  }

  DbImpl& db_;
  rocksdb::WriteOptions options_;
  rocksdb::WriteBatchWithIndex batch_;
  rocksdb::WriteBatch commit_time_batch_;
  bool is_indexing_ = true;
  std::chrono::steady_clock::time_point began_;
  std::map<Key, Tracked> tracked_;
  TakenSnapshot snapshot_;
  Counts counts_;
  std::vector<SavePoint> save_points_;
};

}  // namespace spillway::spill
