#include "spill/commit/doubts.h"

#include <algorithm>

#include "spill/store/batch_visitor.h"

namespace spillway::spill {

using rocksdb::Slice;
using rocksdb::Status;

void Doubts::add(const rocksdb::WriteBatch& batch) {
  const std::lock_guard lock(mutex_);
  const Status visited = visit_batch(batch, [this](const BatchOperation& operation) {
    switch (operation.kind) {
      case OperationKind::put:
      case OperationKind::remove:
      case OperationKind::single_remove:
      case OperationKind::merge:
        keys_.emplace(operation.family, operation.key.ToString());
        return Status();
      case OperationKind::remove_range:
        ranges_.push_back({operation.family, operation.key.ToString(), operation.value.ToString()});
        return Status();
      case OperationKind::log_data:
        return Status();
      default:
        return unknown_operation(operation);
    }
  });
  visited.PermitUncheckedError();  // the batch was prepared, so nothing else is in it
  has_any_.store(true, std::memory_order_seq_cst);
}

void Doubts::clear() {
  const std::lock_guard lock(mutex_);
  has_any_.store(false, std::memory_order_seq_cst);
  keys_.clear();
  ranges_.clear();
}

bool Doubts::has(std::uint32_t family, std::string_view key, const ColumnFamilies& families) const {
  const std::lock_guard lock(mutex_);
  if (keys_.contains({family, std::string(key)})) return true;
  const rocksdb::Comparator& order = *families.comparator(family);
  const Slice slice(key.data(), key.size());
  return std::any_of(ranges_.begin(), ranges_.end(), [&](const Range& range) {
    return range.family == family && order.Compare(range.begin, slice) <= 0 && order.Compare(slice, range.end) < 0;
  });
}

}  // namespace spillway::spill
