#include "spill/transactions/pessimistic.h"

#include <set>

#include "spill/compat/refusals.h"
#include "spill/compat/rocksdb_calls.h"
#include "spill/store/batch_visitor.h"

namespace spillway::spill {
namespace {

using rocksdb::Status;
using rocksdb::WriteBatch;

// A timeout in RocksDB's options, in milliseconds; negative: no limit.
std::optional<std::chrono::microseconds> timeout_of(std::int64_t milliseconds) {
  if (milliseconds < 0) return std::nullopt;
  return std::chrono::milliseconds(milliseconds);
}

Status refuse_range_deletion() {
  return Status::NotSupported(
      "spillway::TransactionDB does not support DeleteRange: keys are locked one by one; delete them in a transaction");
}

// The keys that a batch writes, in the order in which all batches lock them.
Status find_keys(const WriteBatch& batch, std::set<LockTable::Key>* keys) {
  return visit_batch(batch, [keys](const BatchOperation& operation) {
    switch (operation.kind) {
      case OperationKind::put:
      case OperationKind::remove:
      case OperationKind::single_remove:
      case OperationKind::merge:
        keys->emplace(operation.family, operation.key.ToString());
        return Status();
      case OperationKind::remove_range:
        return refuse_range_deletion();
      case OperationKind::log_data:
        return Status();
      default:
        return unknown_operation(operation);
    }
  });
}

}  // namespace

// --- The database

PessimisticDb::PessimisticDb(DbImpl* db, const rocksdb::TransactionDBOptions& options)
    : TransactionDB(db),
      spill_(*db),
      options_(options),
      locks_(options, [this](rocksdb::TransactionID id) { return take_expired_locks(id); }) {}

rocksdb::Transaction* PessimisticDb::BeginTransaction(const rocksdb::WriteOptions& options,
                                                      const rocksdb::TransactionOptions& transaction,
                                                      rocksdb::Transaction* old) {
  if (old == nullptr) return new PessimisticTransaction(*this, options, transaction);  // NOLINT: the user's
  static_cast<PessimisticTransaction*>(old)->begin_again(options, transaction);
  return old;
}

void PessimisticDb::add_expiring(rocksdb::TransactionID id, PessimisticTransaction* transaction) {
  const MutexLock lock(expiring_mutex_);
  expiring_[id] = transaction;
}

void PessimisticDb::remove_expiring(rocksdb::TransactionID id) {
  const MutexLock lock(expiring_mutex_);
  expiring_.erase(id);
}

bool PessimisticDb::take_expired_locks(rocksdb::TransactionID id) {
  const MutexLock lock(expiring_mutex_);  // so the transaction cannot be destroyed meanwhile
  const auto found = expiring_.find(id);
  return found != expiring_.end() && found->second->drop_expired_locks();
}

std::pair<Status, std::shared_ptr<const rocksdb::Snapshot>> PessimisticDb::CreateTimestampedSnapshot(
    rocksdb::TxnTimestamp) {
  return {refuse_in_transaction("CreateTimestampedSnapshot", "user-defined timestamps are not supported"), nullptr};
}

Status PessimisticDb::GetTimestampedSnapshots(rocksdb::TxnTimestamp, rocksdb::TxnTimestamp,
                                              std::vector<std::shared_ptr<const rocksdb::Snapshot>>&) const {
  return refuse_in_transaction("GetTimestampedSnapshots", "user-defined timestamps are not supported");
}

Status PessimisticDb::Write(const rocksdb::WriteOptions& options, WriteBatch* batch) {
  return Write(options, rocksdb::TransactionDBWriteOptimizations(), batch);
}

Status PessimisticDb::Write(const rocksdb::WriteOptions& options,
                            const rocksdb::TransactionDBWriteOptimizations& optimizations, WriteBatch* batch) {
  if (batch == nullptr || optimizations.skip_concurrency_control || options_.skip_concurrency_control) {
    return spill_.Write(options, batch);
  }
  std::set<LockTable::Key> keys;
  if (Status status = find_keys(*batch, &keys); !status.ok()) return status;
  Locker locker;
  locker.id = next_id();
  std::vector<const LockTable::Key*> locked;
  Status status;
  for (const LockTable::Key& key : keys) {
    status = locks_.lock(locker, key, /*exclusive=*/true, timeout_of(options_.default_lock_timeout));
    if (!status.ok()) break;
    locked.push_back(&key);
  }
  if (status.ok()) status = spill_.Write(options, batch);
  for (const LockTable::Key* key : locked) locks_.unlock(locker.id, *key);
  return status;
}

Status PessimisticDb::Put(const rocksdb::WriteOptions& options, Family* family, const Slice& key, const Slice& value) {
  WriteBatch batch;
  const Status status = batch.Put(family, key, value);
  return status.ok() ? Write(options, &batch) : status;
}

Status PessimisticDb::Delete(const rocksdb::WriteOptions& options, Family* family, const Slice& key) {
  WriteBatch batch;
  const Status status = batch.Delete(family, key);
  return status.ok() ? Write(options, &batch) : status;
}

Status PessimisticDb::SingleDelete(const rocksdb::WriteOptions& options, Family* family, const Slice& key) {
  WriteBatch batch;
  const Status status = batch.SingleDelete(family, key);
  return status.ok() ? Write(options, &batch) : status;
}

Status PessimisticDb::Merge(const rocksdb::WriteOptions& options, Family* family, const Slice& key,
                            const Slice& operand) {
  WriteBatch batch;
  const Status status = batch.Merge(family, key, operand);
  return status.ok() ? Write(options, &batch) : status;
}

Status PessimisticDb::DeleteRange(const rocksdb::WriteOptions&, Family*, const Slice&, const Slice&) {
  return refuse_range_deletion();
}

// --- A transaction

PessimisticTransaction::PessimisticTransaction(PessimisticDb& db, const rocksdb::WriteOptions& options,
                                               const rocksdb::TransactionOptions& transaction)
    : SpillTransaction(db.spill(), options), owner_(db) {
  start(transaction);
}

PessimisticTransaction::~PessimisticTransaction() { finish(); }

void PessimisticTransaction::begin_again(const rocksdb::WriteOptions& options,
                                         const rocksdb::TransactionOptions& transaction) {
  finish();
  begin(options);
  start(transaction);
}

void PessimisticTransaction::start(const rocksdb::TransactionOptions& transaction) {
  txn_state_ = STARTED;
  locker_ = {};
  locker_.id = owner_.next_id();
  locker_.detects_deadlocks = transaction.deadlock_detect;
  locker_.detect_depth = transaction.deadlock_detect_depth;
  if (transaction.expiration >= 0) {
    locker_.expires = began() + std::chrono::milliseconds(transaction.expiration);
    owner_.add_expiring(locker_.id, this);
  }
  const auto& defaults = owner_.transaction_options();
  SetLockTimeout(transaction.lock_timeout < 0 ? defaults.transaction_lock_timeout : transaction.lock_timeout);
  takes_locks_ = !transaction.skip_concurrency_control && !defaults.skip_concurrency_control;
  // As in RocksDB, a transaction that can expire needs no Prepare.
  needs_prepare_ = !transaction.skip_prepare && transaction.expiration < 0;
  batch().SetMaxBytes(transaction.max_write_batch_size);
  if (transaction.set_snapshot) SetSnapshot();
}

void PessimisticTransaction::finish() {
  owner_.remove_expiring(locker_.id);
  clear();
}

bool PessimisticTransaction::drop_expired_locks() {
  TransactionState expected = STARTED;
  return is_expired() && (txn_state_.compare_exchange_strong(expected, LOCKS_STOLEN) || expected == LOCKS_STOLEN);
}

void PessimisticTransaction::SetLockTimeout(std::int64_t timeout_ms) { lock_timeout_ = timeout_of(timeout_ms); }

std::vector<rocksdb::TransactionID> PessimisticTransaction::GetWaitingTxns(std::uint32_t* family,
                                                                           std::string* key) const {
  LockTable::Key waits_for;
  auto holders = owner_.locks().waits_for(locker_.id, &waits_for);
  if (family != nullptr) *family = waits_for.first;
  if (key != nullptr) *key = waits_for.second;
  return holders;
}

Status PessimisticTransaction::acquire(const Key& key, const Tracked* tracked, bool exclusive, bool do_validate,
                                       bool assume_tracked, KeyVersions::Stamp* at) {
  if (txn_state_ == LOCKS_STOLEN) return Status::Expired();
  if (txn_state_ != STARTED) return Status::InvalidArgument("Transaction is not in state for a write or a read.");
  const bool was_locked = tracked != nullptr;
  if (assume_tracked && !was_locked && takes_locks_) {
    return Status::InvalidArgument("assume_tracked is set but it is not tracked yet");
  }
  const bool needs_lock = takes_locks_ && (!was_locked || (exclusive && !tracked->exclusive));
  if (needs_lock) {
    if (Status status = owner_.locks().lock(locker_, key, exclusive, lock_timeout_); !status.ok()) return status;
  }
  set_snapshot_if_needed();
  *at = versions().now();
  const auto snapshot = snapshot_clock();
  if (!do_validate || !snapshot || (was_locked && tracked->at <= *snapshot)) return {};
  // With the lock held, every write to the key is either complete or not begun.
  if (versions().is_written_since(KeyVersions::stripe_of(key.first, key.second), *snapshot)) {
    if (!was_locked) release(key);
    return Status::Busy();
  }
  *at = *snapshot;
  return {};
}

void PessimisticTransaction::release(const Key& key) {
  if (takes_locks_) owner_.locks().unlock(locker_.id, key);
}

Status PessimisticTransaction::Commit() {
  if (Status status = check_commit(); !status.ok()) return status;
  TransactionState expected = STARTED;
  if (!txn_state_.compare_exchange_strong(expected, AWAITING_COMMIT)) {
    if (expected == LOCKS_STOLEN) return Status::Expired();
    return Status::InvalidArgument("Transaction is not in state for commit.");
  }
  if (is_expired()) {
    txn_state_ = STARTED;
    return Status::Expired();
  }
  if (needs_prepare_) {  // Prepare is not supported
    txn_state_ = STARTED;
    return Status::TxnNotPrepared();
  }
  const Status status = db().Write(options(), batch().GetWriteBatch());
  clear();
  txn_state_ = status.ok() ? COMMITTED : STARTED;
  return status;
}

Status PessimisticTransaction::Rollback() {
  if (txn_state_ == COMMITTED) return Status::InvalidArgument("This transaction has already been committed.");
  clear();
  return {};
}

}  // namespace spillway::spill

namespace spillway {
namespace {

using rocksdb::Status;

Status refuse(const rocksdb::TransactionDBOptions& options) {
  const auto no = [](const char* what) {
    return Status::NotSupported(std::string("spillway::TransactionDB does not support ") + what);
  };
  if (options.write_policy != rocksdb::TxnDBWritePolicy::WRITE_COMMITTED) {
    return no("write_policy: a transaction is written when it commits");
  }
  if (options.lock_mgr_handle != nullptr) return no("lock_mgr_handle: keys are locked one by one");
  if (options.custom_mutex_factory != nullptr) return no("custom_mutex_factory: its locks are the standard library's");
  const std::string refused = spill::refused_option(options);
  return refused.empty() ? Status() : no(refused.c_str());
}

void give(DB* opened, const rocksdb::TransactionDBOptions& transactions, TransactionDB** db) {
  auto* const impl = static_cast<spill::DbImpl*>(opened);
  impl->router().note_versions();
  *db = new spill::PessimisticDb(impl, transactions);  // NOLINT: the user's
}

}  // namespace

Status TransactionDB::Open(const rocksdb::Options& options, const rocksdb::TransactionDBOptions& transactions,
                           const SpillOptions& spill, const std::string& name, TransactionDB** db) {
  *db = nullptr;
  if (Status status = refuse(transactions); !status.ok()) return status;
  spillway::DB* opened = nullptr;
  const Status status = spillway::DB::Open(options, spill, name, &opened);
  if (status.ok()) give(opened, transactions, db);
  return status;
}

Status TransactionDB::Open(const rocksdb::DBOptions& options, const rocksdb::TransactionDBOptions& transactions,
                           const SpillOptions& spill, const std::string& name,
                           const std::vector<rocksdb::ColumnFamilyDescriptor>& column_families,
                           std::vector<rocksdb::ColumnFamilyHandle*>* handles, TransactionDB** db) {
  *db = nullptr;
  if (Status status = refuse(transactions); !status.ok()) return status;
  spillway::DB* opened = nullptr;
  const Status status = spillway::DB::Open(options, spill, name, column_families, handles, &opened);
  if (status.ok()) give(opened, transactions, db);
  return status;
}

}  // namespace spillway
