#include "spill/transactions/transaction.h"

#include <algorithm>
#include <memory>

#include "spill/compat/refusals.h"
#include "spill/store/batch_visitor.h"

namespace spillway::spill {

using rocksdb::PinnableSlice;
using rocksdb::Status;

namespace {

constexpr const char* kTwoPhases = "two-phase commit is not supported; use Commit";

std::string joined(const rocksdb::SliceParts& parts) {
  std::string all;
  for (int i = 0; i < parts.num_parts; ++i) all.append(parts.parts[i].data(), parts.parts[i].size());
  return all;
}

// An iterator over at most one key, to have RocksDB merge a batch onto it.
class OneKey final : public rocksdb::Iterator {
 public:
  // `value`: null if the key does not exist. The arguments outlive the iterator.
  OneKey(const rocksdb::Comparator& order, const rocksdb::Slice& key, const PinnableSlice* value)
      : order_(order), key_(key), value_(value) {
    if (value != nullptr) columns_.emplace_back(rocksdb::kDefaultWideColumnName, *value);
  }

  bool Valid() const override { return is_at_key_; }
  void SeekToFirst() override { is_at_key_ = value_ != nullptr; }
  void SeekToLast() override { is_at_key_ = value_ != nullptr; }
  void Seek(const rocksdb::Slice& target) override {
    is_at_key_ = value_ != nullptr && order_.Compare(target, key_) <= 0;
  }
  void SeekForPrev(const rocksdb::Slice& target) override {
    is_at_key_ = value_ != nullptr && order_.Compare(target, key_) >= 0;
  }
  void Next() override { is_at_key_ = false; }
  void Prev() override { is_at_key_ = false; }
  rocksdb::Slice key() const override { return key_; }
  rocksdb::Slice value() const override { return *value_; }
  const rocksdb::WideColumns& columns() const override { return columns_; }  // what RocksDB 9 merges onto
  Status status() const override { return {}; }

 private:
  const rocksdb::Comparator& order_;
  const rocksdb::Slice key_;
  const PinnableSlice* const value_;
  rocksdb::WideColumns columns_;
  bool is_at_key_ = false;
};

// Reads a value into a string.
template <typename Read>
Status read_string(std::string* value, const Read& read) {
  PinnableSlice pinned(value);
  const Status status = read(&pinned);
  if (status.ok() && pinned.IsPinned()) value->assign(pinned.data(), pinned.size());
  return status;
}

}  // namespace

SpillTransaction::SpillTransaction(DbImpl& db, const rocksdb::WriteOptions& options)
    : db_(db),
      options_(options),
      batch_(db.DefaultColumnFamily()->GetComparator(), 0, /*overwrite_key=*/true),
      began_(std::chrono::steady_clock::now()) {}

void SpillTransaction::begin(const rocksdb::WriteOptions& options) {
  clear();
  ClearSnapshot();
  options_ = options;
  is_indexing_ = true;
  began_ = std::chrono::steady_clock::now();
}

void SpillTransaction::clear() {
  for (const auto& [key, tracked] : tracked_) release(key);
  tracked_.clear();
  save_points_.clear();
  batch_.Clear();
  commit_time_batch_.Clear();
  counts_ = {};
}

Status SpillTransaction::check_commit() const {
  return commit_time_batch_.Count() == 0 ? Status() : refuse_in_transaction("GetCommitTimeWriteBatch", kTwoPhases);
}

std::uint64_t SpillTransaction::GetElapsedTime() const {
  const auto elapsed = std::chrono::steady_clock::now() - began_;
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(elapsed).count());
}

// --- Snapshots

// The clock is read first, so what is written while the snapshot is taken counts as newer.
void SpillTransaction::SetSnapshot() {
  const KeyVersions::Stamp at = versions().now();
  DbImpl* const db = &db_;
  snapshot_ = {{db->GetSnapshot(), [db](const rocksdb::Snapshot* one) { db->ReleaseSnapshot(one); }}, at, false, {}};
}

void SpillTransaction::SetSnapshotOnNextOperation(std::shared_ptr<rocksdb::TransactionNotifier> notifier) {
  snapshot_.is_needed = true;
  snapshot_.notifier = std::move(notifier);
}

void SpillTransaction::set_snapshot_if_needed() {
  if (!snapshot_.is_needed) return;
  const auto notifier = snapshot_.notifier;
  SetSnapshot();
  if (notifier != nullptr) notifier->SnapshotCreated(GetSnapshot());
}

std::optional<KeyVersions::Stamp> SpillTransaction::snapshot_clock() const {
  if (snapshot_.taken == nullptr) return std::nullopt;
  return snapshot_.at;
}

// --- Save points

void SpillTransaction::SetSavePoint() {
  save_points_.push_back({snapshot_, counts_, {}});
  batch_.SetSavePoint();
}

Status SpillTransaction::RollbackToSavePoint() {
  if (save_points_.empty()) return Status::NotFound();
  const SavePoint point = std::move(save_points_.back());
  save_points_.pop_back();
  snapshot_ = point.snapshot;
  counts_ = point.counts;
  for (const auto& [key, since] : point.tracked) untrack(key, since.reads, since.writes);
  return batch_.RollbackToSavePoint();
}

Status SpillTransaction::PopSavePoint() {
  if (save_points_.empty()) return Status::NotFound();
  const SavePoint point = std::move(save_points_.back());
  save_points_.pop_back();
  if (!save_points_.empty()) {
    for (const auto& [key, since] : point.tracked) {
      Tracked& below = save_points_.back().tracked[key];
      below.reads += since.reads;
      below.writes += since.writes;
    }
  }
  return batch_.PopSavePoint();
}

// --- Keys

Status SpillTransaction::try_lock(Family* family, const Slice& key, bool read_only, bool exclusive, bool do_validate,
                                  bool assume_tracked) {
  const Key name{family->GetID(), key.ToString()};
  const auto known = tracked_.find(name);
  const Tracked* const before = known == tracked_.end() ? nullptr : &known->second;
  KeyVersions::Stamp at = 0;
  if (Status status = acquire(name, before, exclusive, do_validate, assume_tracked, &at); !status.ok()) return status;
  if (!do_validate && !tracks_unvalidated()) return {};
  Tracked& tracked = tracked_[name];
  tracked.at = before == nullptr ? at : std::min(tracked.at, at);
  tracked.exclusive = tracked.exclusive || exclusive;
  ++(read_only ? tracked.reads : tracked.writes);
  if (!save_points_.empty()) {
    Tracked& since = save_points_.back().tracked[name];
    ++(read_only ? since.reads : since.writes);
  }
  return {};
}

void SpillTransaction::untrack(const Key& key, std::uint64_t reads, std::uint64_t writes) {
  const auto known = tracked_.find(key);
  if (known == tracked_.end()) return;
  known->second.reads -= std::min(reads, known->second.reads);
  known->second.writes -= std::min(writes, known->second.writes);
  if (known->second.reads > 0 || known->second.writes > 0) return;
  tracked_.erase(known);
  release(key);
}

void SpillTransaction::UndoGetForUpdate(Family* family, const Slice& key) {
  const Key name{family->GetID(), key.ToString()};
  if (!save_points_.empty()) {
    auto& since = save_points_.back().tracked;
    const auto found = since.find(name);
    // Reads before the save point stay tracked, because RollbackToSavePoint must find them.
    if (found == since.end() || found->second.reads == 0) return;
    if (--found->second.reads == 0 && found->second.writes == 0) since.erase(found);
  }
  untrack(name, 1, 0);
}

// --- Reads

// Not by the batch's GetFromBatchAndDB: from RocksDB 8.6 on it reads RocksDB itself, past the spill store.
Status SpillTransaction::Get(const ReadOptions& options, Family* family, const Slice& key, PinnableSlice* value) {
  if (family == nullptr) family = default_family();
  if (batch_.GetWriteBatch()->Count() == 0) return db_.Get(options, family, key, value);
  const std::unique_ptr<rocksdb::WBWIIterator> written(batch_.NewIterator(family));
  written->Seek(key);
  const auto is_of_key = [&] { return written->Valid() && written->Entry().key == key; };
  if (!is_of_key()) return db_.Get(options, family, key, value);
  const rocksdb::WriteEntry entry = written->Entry();
  written->Next();
  if (is_of_key()) return get_merged(options, family, key, value);
  switch (entry.type) {
    case rocksdb::kPutRecord:
      value->Reset();
      value->PinSelf(entry.value);  // a copy: the batch is gone after the commit
      return {};
    case rocksdb::kDeleteRecord:
    case rocksdb::kSingleDeleteRecord:
      return Status::NotFound();
    default:
      return get_merged(options, family, key, value);
  }
}

Status SpillTransaction::get_merged(const ReadOptions& options, Family* family, const Slice& key,
                                    PinnableSlice* value) {
  PinnableSlice below;
  const Status found = db_.Get(options, family, key, &below);
  if (!found.ok() && !found.IsNotFound()) return found;
  auto one = std::make_unique<OneKey>(*family->GetComparator(), key, found.ok() ? &below : nullptr);
  const std::unique_ptr<rocksdb::Iterator> merged(batch_.NewIteratorWithBase(family, one.release(), &options));
  merged->Seek(key);
  if (!merged->status().ok()) return merged->status();
  if (!merged->Valid() || merged->key() != key) return Status::NotFound();
  value->Reset();
  value->PinSelf(merged->value());
  return {};
}

Status SpillTransaction::Get(const ReadOptions& options, Family* family, const Slice& key, std::string* value) {
  return read_string(value, [&](PinnableSlice* pinned) { return Get(options, family, key, pinned); });
}

Status SpillTransaction::Get(const ReadOptions& options, const Slice& key, std::string* value) {
  return Get(options, default_family(), key, value);
}

Status SpillTransaction::Get(const ReadOptions& options, const Slice& key, PinnableSlice* value) {
  return Get(options, default_family(), key, value);
}

// Reads all keys in one state, as a DB's MultiGet does.
std::vector<Status> SpillTransaction::MultiGet(const ReadOptions& options, const std::vector<Family*>& families,
                                               const std::vector<Slice>& keys, std::vector<std::string>* values) {
  values->resize(keys.size());
  std::vector<Status> statuses(keys.size());
  ReadOptions at = options;
  std::optional<rocksdb::ManagedSnapshot> moment;
  if (options.snapshot == nullptr && keys.size() > 1) at.snapshot = moment.emplace(&db_).snapshot();
  for (std::size_t i = 0; i < keys.size(); ++i) statuses[i] = Get(at, families[i], keys[i], &(*values)[i]);
  return statuses;
}

std::vector<Status> SpillTransaction::MultiGet(const ReadOptions& options, const std::vector<Slice>& keys,
                                               std::vector<std::string>* values) {
  return MultiGet(options, std::vector<Family*>(keys.size(), default_family()), keys, values);
}

void SpillTransaction::MultiGet(const ReadOptions& options, Family* family, std::size_t count, const Slice* keys,
                                PinnableSlice* values, Status* statuses, bool /*sorted_input*/) {
  ReadOptions at = options;
  std::optional<rocksdb::ManagedSnapshot> moment;
  if (options.snapshot == nullptr && count > 1) at.snapshot = moment.emplace(&db_).snapshot();
  for (std::size_t i = 0; i < count; ++i) statuses[i] = Get(at, family, keys[i], &values[i]);
}

Status SpillTransaction::GetForUpdate(const ReadOptions& options, Family* family, const Slice& key,
                                      PinnableSlice* value, bool exclusive, bool do_validate) {
  if (!do_validate && options.snapshot != nullptr) {
    return Status::InvalidArgument("If do_validate is false then GetForUpdate with snapshot is not defined.");
  }
  const Status status = try_lock(family, key, /*read_only=*/true, exclusive, do_validate, /*assume_tracked=*/false);
  return status.ok() && value != nullptr ? Get(options, family, key, value) : status;
}

Status SpillTransaction::GetForUpdate(const ReadOptions& options, Family* family, const Slice& key, std::string* value,
                                      bool exclusive, bool do_validate) {
  if (value == nullptr) {
    return GetForUpdate(options, family, key, static_cast<PinnableSlice*>(nullptr), exclusive, do_validate);
  }
  return read_string(
      value, [&](PinnableSlice* pinned) { return GetForUpdate(options, family, key, pinned, exclusive, do_validate); });
}

Status SpillTransaction::GetForUpdate(const ReadOptions& options, const Slice& key, std::string* value, bool exclusive,
                                      bool do_validate) {
  return GetForUpdate(options, default_family(), key, value, exclusive, do_validate);
}

std::vector<Status> SpillTransaction::MultiGetForUpdate(const ReadOptions& options,
                                                        const std::vector<Family*>& families,
                                                        const std::vector<Slice>& keys,
                                                        std::vector<std::string>* values) {
  values->resize(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const Status status = try_lock(families[i], keys[i], /*read_only=*/true, /*exclusive=*/true, /*do_validate=*/true,
                                   /*assume_tracked=*/false);
    if (!status.ok()) return std::vector<Status>(keys.size(), status);
  }
  return MultiGet(options, families, keys, values);
}

std::vector<Status> SpillTransaction::MultiGetForUpdate(const ReadOptions& options, const std::vector<Slice>& keys,
                                                        std::vector<std::string>* values) {
  return MultiGetForUpdate(options, std::vector<Family*>(keys.size(), default_family()), keys, values);
}

rocksdb::Iterator* SpillTransaction::GetIterator(const ReadOptions& options) {
  return GetIterator(options, default_family());
}

rocksdb::Iterator* SpillTransaction::GetIterator(const ReadOptions& options, Family* family) {
  return batch_.NewIteratorWithBase(family, db_.NewIterator(options, family), &options);
}

// --- Writes

Status SpillTransaction::write(Operation operation, Family* family, const Slice& key, const Slice& value,
                               bool do_validate, bool assume_tracked) {
  const Status locked = try_lock(family, key, /*read_only=*/false, /*exclusive=*/true, do_validate, assume_tracked);
  if (!locked.ok()) return locked;
  rocksdb::WriteBatchBase& to = is_indexing_ ? static_cast<rocksdb::WriteBatchBase&>(batch_) : *batch_.GetWriteBatch();
  Status status;
  switch (operation) {
    case Operation::put:
      status = to.Put(family, key, value);
      if (status.ok()) ++counts_.puts;
      return status;
    case Operation::merge:
      status = to.Merge(family, key, value);
      if (status.ok()) ++counts_.merges;
      return status;
    case Operation::remove:
      status = to.Delete(family, key);
      break;
    case Operation::single_delete:
      status = to.SingleDelete(family, key);
      break;
  }
  if (status.ok()) ++counts_.deletes;
  return status;
}

Status SpillTransaction::Put(Family* family, const Slice& key, const Slice& value, bool assume_tracked) {
  return write_tracked(Operation::put, family, key, value, assume_tracked);
}
Status SpillTransaction::Put(const Slice& key, const Slice& value) { return Put(default_family(), key, value, false); }
Status SpillTransaction::Put(Family* family, const SliceParts& key, const SliceParts& value, bool assume_tracked) {
  return Put(family, joined(key), joined(value), assume_tracked);
}
Status SpillTransaction::Put(const SliceParts& key, const SliceParts& value) {
  return Put(default_family(), key, value, false);
}

Status SpillTransaction::Merge(Family* family, const Slice& key, const Slice& operand, bool assume_tracked) {
  return write_tracked(Operation::merge, family, key, operand, assume_tracked);
}
Status SpillTransaction::Merge(const Slice& key, const Slice& operand) {
  return Merge(default_family(), key, operand, false);
}

Status SpillTransaction::Delete(Family* family, const Slice& key, bool assume_tracked) {
  return write_tracked(Operation::remove, family, key, Slice(), assume_tracked);
}
Status SpillTransaction::Delete(const Slice& key) { return Delete(default_family(), key, false); }
Status SpillTransaction::Delete(Family* family, const SliceParts& key, bool assume_tracked) {
  return Delete(family, joined(key), assume_tracked);
}
Status SpillTransaction::Delete(const SliceParts& key) { return Delete(default_family(), key, false); }

Status SpillTransaction::SingleDelete(Family* family, const Slice& key, bool assume_tracked) {
  return write_tracked(Operation::single_delete, family, key, Slice(), assume_tracked);
}
Status SpillTransaction::SingleDelete(const Slice& key) { return SingleDelete(default_family(), key, false); }
Status SpillTransaction::SingleDelete(Family* family, const SliceParts& key, bool assume_tracked) {
  return SingleDelete(family, joined(key), assume_tracked);
}
Status SpillTransaction::SingleDelete(const SliceParts& key) { return SingleDelete(default_family(), key, false); }

Status SpillTransaction::PutUntracked(Family* family, const Slice& key, const Slice& value) {
  return write_untracked(Operation::put, family, key, value);
}
Status SpillTransaction::PutUntracked(const Slice& key, const Slice& value) {
  return PutUntracked(default_family(), key, value);
}
Status SpillTransaction::PutUntracked(Family* family, const SliceParts& key, const SliceParts& value) {
  return PutUntracked(family, joined(key), joined(value));
}
Status SpillTransaction::PutUntracked(const SliceParts& key, const SliceParts& value) {
  return PutUntracked(default_family(), key, value);
}
Status SpillTransaction::MergeUntracked(Family* family, const Slice& key, const Slice& operand) {
  return write_untracked(Operation::merge, family, key, operand);
}
Status SpillTransaction::MergeUntracked(const Slice& key, const Slice& operand) {
  return MergeUntracked(default_family(), key, operand);
}
Status SpillTransaction::DeleteUntracked(Family* family, const Slice& key) {
  return write_untracked(Operation::remove, family, key, Slice());
}
Status SpillTransaction::DeleteUntracked(const Slice& key) { return DeleteUntracked(default_family(), key); }
Status SpillTransaction::DeleteUntracked(Family* family, const SliceParts& key) {
  return DeleteUntracked(family, joined(key));
}
Status SpillTransaction::DeleteUntracked(const SliceParts& key) { return DeleteUntracked(default_family(), key); }
Status SpillTransaction::SingleDeleteUntracked(Family* family, const Slice& key) {
  return write_untracked(Operation::single_delete, family, key, Slice());
}
Status SpillTransaction::SingleDeleteUntracked(const Slice& key) {
  return SingleDeleteUntracked(default_family(), key);
}

Status SpillTransaction::RebuildFromWriteBatch(rocksdb::WriteBatch* source) {
  return visit_batch(*source, [this](const BatchOperation& operation) {
    if (operation.kind == OperationKind::log_data) return Status();
    if (operation.kind == OperationKind::transaction_marker) return refuse_in_transaction("Prepare", kTwoPhases);
    if (!operation.has_key()) return unknown_operation(operation);
    const UsedColumnFamily known = db_.family_of(operation.family);
    if (known.handle == nullptr) return Status::InvalidArgument("Invalid column family specified in write batch");
    switch (operation.kind) {
      case OperationKind::put:
        return Put(known.handle, operation.key, operation.value, false);
      case OperationKind::remove:
        return Delete(known.handle, operation.key, false);
      case OperationKind::single_remove:
        return SingleDelete(known.handle, operation.key, false);
      case OperationKind::merge:
        return Merge(known.handle, operation.key, operation.value, false);
      default:
        return unknown_operation(operation);
    }
  });
}

// --- Refused

Status SpillTransaction::GetRangeLock(Family*, const rocksdb::Endpoint&, const rocksdb::Endpoint&) {
  return refuse_in_transaction("GetRangeLock", "keys are locked one by one");
}
Status SpillTransaction::Prepare() { return refuse_in_transaction("Prepare", kTwoPhases); }
Status SpillTransaction::SetName(const rocksdb::TransactionName&) {
  return refuse_in_transaction("SetName", kTwoPhases);
}
Status SpillTransaction::SetReadTimestampForValidation(rocksdb::TxnTimestamp) {
  return refuse_in_transaction("SetReadTimestampForValidation", kNoTimestamps);
}
Status SpillTransaction::SetCommitTimestamp(rocksdb::TxnTimestamp) {
  return refuse_in_transaction("SetCommitTimestamp", kNoTimestamps);
}

}  // namespace spillway::spill
