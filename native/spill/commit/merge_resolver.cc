#include "spill/commit/merge_resolver.h"

#include <rocksdb/merge_operator.h>

#include <cstring>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "spill/live/generation.h"
#include "spill/store/batch_visitor.h"

namespace spillway::spill {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

class MergeResolver {
 public:
  MergeResolver(const ColumnFamilies& families, const ValueBefore& value_before, rocksdb::WriteBatch& out)
      : families_(families), value_before_(value_before), out_(out) {}

  Status add(const BatchOperation& operation) {
    using Op = BatchOperation::Kind;
    const auto& [kind, family, key, value] = operation;
    switch (kind) {
      case Op::put:
        written(family, key, value.ToString());
        return out_.Put(use(family).handle, key, value);
      case Op::remove:
      case Op::single_remove:
        written(family, key, std::nullopt);
        return out_.Delete(use(family).handle, key);
      case Op::remove_range:
        range_removed(family, key, value);
        return out_.DeleteRange(use(family).handle, key, value);
      case Op::merge:
        return merge(family, key, value);
      case Op::log_data:
        return {};
      default:
        return unknown_operation(operation);
    }
  }

  // Adds a put of the result for each key whose last operation was a merge.
  Status put_merged() {
    Status status;
    for (const std::string& name : merged_) {
      std::uint32_t family = 0;
      std::memcpy(&family, name.data(), sizeof family);
      const Slice key(name.data() + sizeof family, name.size() - sizeof family);
      if (status.ok()) status = out_.Put(use(family).handle, key, *written_[name]);
    }
    return status;
  }

 private:
  static std::string name_of(std::uint32_t family, const Slice& key) {
    std::string name(reinterpret_cast<const char*>(&family), sizeof(family));
    return name.append(key.data(), key.size());
  }
  UsedColumnFamily use(std::uint32_t family) const { return families_.use(family); }

  void written(std::uint32_t family, const Slice& key, std::optional<std::string> value) {
    const std::string name = name_of(family, key);
    merged_.erase(name);
    written_[name] = std::move(value);
  }

  void range_removed(std::uint32_t family, const Slice& begin, const Slice& end) {
    ranges_.push_back({family, begin.ToString(), end.ToString(), 0});
    for (auto& [name, value] : written_) {
      const Slice key(name.data() + sizeof(family), name.size() - sizeof(family));
      if (name.compare(0, sizeof(family), name_of(family, Slice())) == 0 && covers(ranges_.back(), key)) {
        value = std::nullopt;
        merged_.erase(name);
      }
    }
  }

  bool covers(const RangeTombstone& range, const Slice& key) const {
    const rocksdb::Comparator* const order = families_.comparator(range.column_family);
    return order->Compare(key, range.begin) >= 0 && order->Compare(key, range.end) < 0;
  }

  Status merge(std::uint32_t family, const Slice& key, const Slice& operand) {
    std::optional<std::string> base;
    if (Status status = base_of(family, key, &base); !status.ok()) return status;
    const auto merger = families_.of(family).merge_operator;
    if (merger == nullptr) return Status::InvalidArgument("Merge requires `ColumnFamilyOptions::merge_operator`");
    const Slice base_slice = base ? Slice(*base) : Slice();
    const std::vector<Slice> operands{operand};
    std::string result;
    Slice existing(nullptr, 0);
    rocksdb::MergeOperator::MergeOperationOutput output(result, existing);
    const rocksdb::MergeOperator::MergeOperationInput input(key, base ? &base_slice : nullptr, operands, nullptr);
    if (!merger->FullMergeV2(input, &output)) return Status::Busy("the merge operator refuses an operand");
    if (existing.data() != nullptr) result = existing.ToString();
    const std::string name = name_of(family, key);
    written_[name] = std::move(result);
    merged_.insert(name);
    return {};
  }

  Status base_of(std::uint32_t family, const Slice& key, std::optional<std::string>* base) {
    if (const auto before = written_.find(name_of(family, key)); before != written_.end()) {
      *base = before->second;
      return {};
    }
    for (const RangeTombstone& range : ranges_) {
      if (range.column_family == family && covers(range, key)) return {};
    }
    return value_before_(family, key, base);
  }

  const ColumnFamilies& families_;
  const ValueBefore& value_before_;
  rocksdb::WriteBatch& out_;
  std::unordered_map<std::string, std::optional<std::string>> written_;  // values written by this batch
  std::set<std::string> merged_;                                         // those whose last operation was a merge
  std::vector<RangeTombstone> ranges_;
};

}  // namespace

Status resolve_merges(const rocksdb::WriteBatch& batch, const ColumnFamilies& families, const ValueBefore& value_before,
                      rocksdb::WriteBatch* resolved) {
  MergeResolver resolver(families, value_before, *resolved);
  const Status status = visit_batch(batch, [&](const BatchOperation& operation) { return resolver.add(operation); });
  return status.ok() ? resolver.put_merged() : status;
}

}  // namespace spillway::spill
