#include "spill/read/iterator.h"

#include <string>
#include <utility>

#include "spill/compat/refreshable_iterator.h"
#include "spill/compat/rocksdb_calls.h"
#include "spill/read/merged_iterator.h"

namespace spillway::spill {

using rocksdb::ReadOptions;
using rocksdb::Slice;
using rocksdb::Status;

namespace {

// While the view is empty, RocksDB's own iterator; otherwise a merged one. Refresh() chooses again.
class ViewIterator final : public RefreshableIterator {
 public:
  ViewIterator(IteratorSource base, IteratedFamily family, const ReadOptions& options, ValueReader values,
               RenewSource renew)
      : options_(options), family_(std::move(family)), values_(values), renew_(std::move(renew)) {
    take(std::move(base));
  }

  bool Valid() const override { return now_->Valid(); }
  Status status() const override { return now_->status(); }
  Slice key() const override { return now_->key(); }
  Slice value() const override { return now_->value(); }
  const rocksdb::WideColumns& columns() const override { return now_->columns(); }
  Slice timestamp() const override { return now_->timestamp(); }
  void SeekToFirst() override { now_->SeekToFirst(); }
  void SeekToLast() override { now_->SeekToLast(); }
  void Seek(const Slice& target) override { now_->Seek(target); }
  void SeekForPrev(const Slice& target) override { now_->SeekForPrev(target); }
  void Next() override { now_->Next(); }
  void Prev() override { now_->Prev(); }
  Status GetProperty(std::string name, std::string* value) override {
    return now_->GetProperty(std::move(name), value);
  }

 private:
  Status refresh_to(const rocksdb::Snapshot* snapshot) override {
    if (options_.snapshot && !kRefreshLeavesSnapshots) {
      return Status::NotSupported("Refresh of an iterator on a snapshot");
    }
    IteratorSource base = renew_(snapshot);
    // Without a handle, RocksDB 7.8's own Refresh may read a column family that was just freed.
    if (base.main == nullptr) return Status::NotSupported("Refresh of an iterator whose column family has no handle");
    take(std::move(base));
    return now_->status();
  }

  void take(IteratorSource base) {
    now_.reset();  // before the objects that it uses
    holds_.reset();
    if (is_empty(base.view.generations)) {
      now_ = std::move(base.main);
      holds_ = std::move(base.holds);
    } else {
      now_ = make_merged_iterator(std::move(base), family_, options_, values_);
    }
  }

  const ReadOptions options_;
  const IteratedFamily family_;
  const ValueReader values_;
  const RenewSource renew_;
  std::shared_ptr<void> holds_;  // used by now_ if that is RocksDB's own iterator
  std::unique_ptr<rocksdb::Iterator> now_;
};

}  // namespace

ReadOptions main_options(ReadOptions options, const std::shared_ptr<const Generations>& generations) {
  prepare_values(options);
  if (is_empty(generations)) return options;
  options.total_order_seek = true;
  options.auto_prefix_mode = false;
  options.prefix_same_as_start = false;
  return options;
}

std::shared_ptr<const rocksdb::SliceTransform> prefix_extractor_of(rocksdb::ColumnFamilyHandle* handle,
                                                                   const ReadOptions& options, const View& view) {
  rocksdb::ColumnFamilyDescriptor descriptor;
  if (!options.prefix_same_as_start || is_empty(view.generations) || !handle->GetDescriptor(&descriptor).ok()) {
    return nullptr;
  }
  return descriptor.options.prefix_extractor;
}

std::unique_ptr<rocksdb::Iterator> make_iterator(IteratorSource base, IteratedFamily family,
                                                 const rocksdb::ReadOptions& options, ValueReader values,
                                                 RenewSource renew) {
  return std::make_unique<ViewIterator>(std::move(base), std::move(family), options, values, std::move(renew));
}

}  // namespace spillway::spill
