#include "spill/commit/doubts.h"

#include <algorithm>

#include "spill/store/batch_visitor.h"

namespace spillway::spill {

using rocksdb::Slice;
using rocksdb::Status;

void Doubts::add(const rocksdb::WriteBatch& batch) {
  std::vector<std::pair<std::uint32_t, std::string>> keys;
  std::vector<Range> ranges;
  const Status visited = visit_batch(batch, [&](const BatchOperation& operation) {
    switch (operation.kind) {
      case OperationKind::put:
      case OperationKind::remove:
      case OperationKind::single_remove:
      case OperationKind::merge:
        keys.emplace_back(operation.family, operation.key.ToString());
        return Status();
      case OperationKind::remove_range:
        ranges.push_back({operation.family, operation.key.ToString(), operation.value.ToString()});
        return Status();
      case OperationKind::log_data:
        return Status();
      default:
        return unknown_operation(operation);
    }
  });
  visited.PermitUncheckedError();  // cannot fail: prepare() accepted every operation
  const MutexLock lock(mutex_);
  keys_.insert(keys.begin(), keys.end());
  ranges_.insert(ranges_.end(), ranges.begin(), ranges.end());
  has_any_.store(true, std::memory_order_seq_cst);
}

void Doubts::clear() {
  const MutexLock lock(mutex_);
  has_any_.store(false, std::memory_order_seq_cst);
  keys_.clear();
  ranges_.clear();
}

bool Doubts::has(std::uint32_t family, std::string_view key, const ColumnFamilies& families) const {
  const MutexLock lock(mutex_);
  if (keys_.contains({family, std::string(key)})) return true;
  const rocksdb::Comparator& order = *families.comparator(family);
  const Slice slice(key.data(), key.size());
  return std::any_of(ranges_.begin(), ranges_.end(), [&](const Range& range) {
    return range.family == family && order.Compare(range.begin, slice) <= 0 && order.Compare(slice, range.end) < 0;
  });
}

}  // namespace spillway::spill
