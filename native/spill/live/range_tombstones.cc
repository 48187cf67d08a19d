#include "spill/live/range_tombstones.h"

#include <utility>

namespace spillway::spill {
namespace {

bool covers(const RangeTombstone& tombstone, const rocksdb::Comparator& order, const rocksdb::Slice& key) {
  return order.Compare(tombstone.begin, key) <= 0 && order.Compare(key, tombstone.end) < 0;
}

}  // namespace

void RangeTombstones::add(RangeTombstone tombstone) {
  const std::size_t bytes = tombstone.begin.size() + tombstone.end.size();
  // It is kept itself, and in the newest ranges it makes at most two more.
  memory_.add(3 * (sizeof(RangeTombstone) + bytes));
  const ExclusiveLock lock(mutex_);
  newest_.try_emplace(tombstone.column_family, families_.comparator(tombstone.column_family))
      .first->second.add(tombstone.begin, tombstone.end, tombstone.sequence);
  all_.push_back(std::move(tombstone));
  count_.fetch_add(1, std::memory_order_release);
}

std::vector<RangeTombstone> RangeTombstones::all() const {
  const SharedLock lock(mutex_);
  return all_;
}

Sequence RangeTombstones::covering(std::uint32_t column_family, std::string_view key, Sequence up_to) const {
  if (size() == 0) return 0;
  const SharedLock lock(mutex_);
  const auto ranges = newest_.find(column_family);
  if (ranges == newest_.end()) return 0;
  const Sequence newest = ranges->second.newest(key);
  if (newest <= up_to) return newest;
  // What covers it came after this view: of those before that, one after the other.
  const rocksdb::Comparator& order = *families_.comparator(column_family);
  for (std::size_t i = all_.size(); i-- > 0;) {
    const RangeTombstone& one = all_[i];
    if (one.sequence <= up_to && one.column_family == column_family && covers(one, order, key)) return one.sequence;
  }
  return 0;
}

}  // namespace spillway::spill
