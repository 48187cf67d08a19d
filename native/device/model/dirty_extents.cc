#include "device/model/dirty_extents.h"

#include <algorithm>
#include <cassert>
#include <iterator>

namespace spillway::device {

DirtyExtents::Extents::const_iterator DirtyExtents::first_behind(std::uint64_t place) const {
  auto found = extents_.upper_bound(place);
  if (found != extents_.begin() && std::prev(found)->second.end > place) --found;
  return found;
}

std::uint64_t DirtyExtents::missing(std::uint64_t begin, std::uint64_t end) const {
  std::uint64_t present = 0;
  for (auto next = first_behind(begin); next != extents_.end() && next->first < end; ++next) {
    present += std::min(next->second.end, end) - std::max(next->first, begin);
  }
  return end - begin - present;
}

void DirtyExtents::insert(const Extent& extent) {
  extents_.emplace(extent.begin, Tail{extent.end, extent.since});
  by_age_.emplace(extent.since, extent.begin);
  bytes_ += extent.end - extent.begin;
}

DirtyExtents::Extents::iterator DirtyExtents::erase(Extents::iterator extent) {
  by_age_.erase({extent->second.since, extent->first});
  bytes_ -= extent->second.end - extent->first;
  return extents_.erase(extent);
}

void DirtyExtents::add(std::uint64_t begin, std::uint64_t end, ssd::Nanos now) {
  assert(begin < end);
  Extent merged{begin, end, now};
  auto next = extents_.lower_bound(begin);
  if (next != extents_.begin() && std::prev(next)->second.end >= begin) --next;
  while (next != extents_.end() && next->first <= end) {
    merged.begin = std::min(merged.begin, next->first);
    merged.end = std::max(merged.end, next->second.end);
    merged.since = std::min(merged.since, next->second.since);
    next = erase(next);
  }
  insert(merged);
}

DirtyExtents::Extent DirtyExtents::take(std::uint64_t begin, std::uint64_t most_bytes) {
  const auto found = extents_.find(begin);
  assert(found != extents_.end() && most_bytes > 0);
  Extent taken{begin, found->second.end, found->second.since};
  erase(found);
  if (taken.end - taken.begin > most_bytes) {
    insert({begin + most_bytes, taken.end, taken.since});
    taken.end = begin + most_bytes;
  }
  return taken;
}

}  // namespace spillway::device
