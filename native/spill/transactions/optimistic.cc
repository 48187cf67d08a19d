// Optimistic transactions take no locks. A commit is refused if a key that it depends on was written since it was read.
#include <memory>

#include "spill/transactions/transaction.h"
#include "spillway/transaction_db.h"

namespace spillway {
namespace spill {
namespace {

using rocksdb::Status;

class OptimisticTransaction final : public SpillTransaction {
 public:
  OptimisticTransaction(DbImpl& db, const rocksdb::WriteOptions& options,
                        const rocksdb::OptimisticTransactionOptions& transaction)
      : SpillTransaction(db, options) {
    if (transaction.set_snapshot) SetSnapshot();
  }

  void begin_again(const rocksdb::WriteOptions& options, const rocksdb::OptimisticTransactionOptions& transaction) {
    begin(options);
    txn_state_ = STARTED;
    if (transaction.set_snapshot) SetSnapshot();
  }

  Status Commit() override {
    if (Status status = check_commit(); !status.ok()) return status;
    std::vector<KeyVersions::Seen> seen;
    seen.reserve(tracked().size());
    for (const auto& [key, one] : tracked()) {
      seen.push_back({KeyVersions::stripe_of(key.first, key.second), one.at});
    }
    const Status status = db().router().write_if_unchanged(options(), batch().GetWriteBatch(), seen);
    if (!status.ok()) return status;
    clear();
    txn_state_ = COMMITTED;
    return status;
  }

  Status Rollback() override {
    clear();
    return {};
  }

  void SetLockTimeout(std::int64_t) override {}  // there are no locks

 private:
  Status acquire(const Key&, const Tracked*, bool, bool do_validate, bool, KeyVersions::Stamp* at) override {
    if (!do_validate) return {};
    set_snapshot_if_needed();
    *at = snapshot_clock().value_or(versions().now());
    return {};
  }
  bool tracks_unvalidated() const override { return false; }
  void release(const Key&) override {}
};

class OptimisticDb final : public UniformOptimisticDb {
 public:
  explicit OptimisticDb(DbImpl* db) : UniformOptimisticDb(db), spill_(*db) {}

  rocksdb::Transaction* BeginTransaction(const rocksdb::WriteOptions& options,
                                         const rocksdb::OptimisticTransactionOptions& transaction,
                                         rocksdb::Transaction* old) override {
    if (old == nullptr) return new OptimisticTransaction(spill_, options, transaction);  // NOLINT: the user's
    static_cast<OptimisticTransaction*>(old)->begin_again(options, transaction);
    return old;
  }
  spillway::DB* GetSpillwayDB() override { return &spill_; }

  // A StackableDB does not forward these.
  Status Resume() override { return spill_.Resume(); }
  using rocksdb::StackableDB::DeleteRange;
  using rocksdb::StackableDB::Get;
  using rocksdb::StackableDB::Merge;
  using rocksdb::StackableDB::MultiGet;
  Status GetStatsHistory(std::uint64_t start_s, std::uint64_t end_s,
                         std::unique_ptr<rocksdb::StatsHistoryIterator>* iterator) override {
    return spill_.GetStatsHistory(start_s, end_s, iterator);
  }
  void GetAllColumnFamilyMetaData(std::vector<rocksdb::ColumnFamilyMetaData>* metadata) override {
    spill_.GetAllColumnFamilyMetaData(metadata);
  }

 private:
  DbImpl& spill_;
};

}  // namespace
}  // namespace spill

using rocksdb::Status;

Status OptimisticTransactionDB::Open(const rocksdb::Options& options, const SpillOptions& spill,
                                     const std::string& name, OptimisticTransactionDB** db) {
  *db = nullptr;
  spillway::DB* opened = nullptr;
  Status status = spillway::DB::Open(options, spill, name, &opened);
  if (!status.ok()) return status;
  auto* const impl = static_cast<spill::DbImpl*>(opened);
  impl->router().note_versions();
  *db = new spill::OptimisticDb(impl);  // NOLINT: the user's
  return status;
}

Status OptimisticTransactionDB::Open(const rocksdb::DBOptions& options, const SpillOptions& spill,
                                     const std::string& name,
                                     const std::vector<rocksdb::ColumnFamilyDescriptor>& column_families,
                                     std::vector<rocksdb::ColumnFamilyHandle*>* handles, OptimisticTransactionDB** db) {
  *db = nullptr;
  spillway::DB* opened = nullptr;
  Status status = spillway::DB::Open(options, spill, name, column_families, handles, &opened);
  if (!status.ok()) return status;
  auto* const impl = static_cast<spill::DbImpl*>(opened);
  impl->router().note_versions();
  *db = new spill::OptimisticDb(impl);  // NOLINT: the user's
  return status;
}

}  // namespace spillway
