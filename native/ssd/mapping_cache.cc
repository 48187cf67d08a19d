#include "ssd/mapping_cache.h"

namespace spillway::ssd {

MappingCache::MappingCache(std::size_t entries, std::uint64_t logical_units, std::uint32_t entries_per_unit)
    : entries_per_unit_(entries_per_unit), index_(entries), slots_(entries) {
  if (entries == 0) return;
  changed_head_.assign((logical_units + entries_per_unit - 1) / entries_per_unit, kNone);
  clear();
}

void MappingCache::clear() {
  index_.clear();
  unused_.clear();
  for (std::size_t slot = slots_.size(); slot-- > 0;) {
    slots_[slot] = {};
    unused_.push_back(static_cast<std::uint32_t>(slot));
  }
  changed_head_.assign(changed_head_.size(), kNone);
  oldest_ = newest_ = kNone;
}

MappingCache::Outcome MappingCache::access(std::uint32_t unit, bool change) {
  if (holds_everything()) return {};
  Outcome outcome;
  std::uint32_t slot = index_.find(unit);
  if (slot != UnitIndex::kAbsent) {
    unlink_recency(slot);
  } else {
    outcome.hit = false;
    if (unused_.empty()) outcome.write_back = evict_oldest();
    slot = unused_.back();
    unused_.pop_back();
    slots_[slot] = {};
    slots_[slot].unit = unit;
    index_.insert(unit, slot);
  }
  link_newest(slot);
  if (change) mark_changed(slot);
  return outcome;
}

bool MappingCache::change_if_cached(std::uint32_t unit) {
  if (holds_everything()) return true;
  const std::uint32_t slot = index_.find(unit);
  if (slot == UnitIndex::kAbsent) return false;
  mark_changed(slot);
  return true;
}

void MappingCache::forget(std::uint32_t unit) {
  if (holds_everything()) return;
  const std::uint32_t slot = index_.find(unit);
  if (slot == UnitIndex::kAbsent) return;
  mark_clean(slot);
  unlink_recency(slot);
  index_.erase(unit);
  unused_.push_back(slot);
}

std::uint32_t MappingCache::evict_oldest() {
  const std::uint32_t slot = oldest_;
  const Slot& entry = slots_[slot];
  std::uint32_t write_back = kNone;
  if (entry.changed) {
    write_back = entry.unit / entries_per_unit_;
    for (std::uint32_t s = changed_head_[write_back]; s != kNone;) {
      const std::uint32_t next = slots_[s].next_changed;
      slots_[s].changed = false;
      slots_[s].next_changed = slots_[s].previous_changed = kNone;
      s = next;
    }
    changed_head_[write_back] = kNone;
  }
  unlink_recency(slot);
  index_.erase(entry.unit);
  unused_.push_back(slot);
  if (oldest_ != kNone) {  // the next eviction's first steps
    index_.prefetch(slots_[oldest_].unit);
    __builtin_prefetch(&changed_head_[slots_[oldest_].unit / entries_per_unit_]);
    __builtin_prefetch(&slots_[slots_[oldest_].newer == kNone ? oldest_ : slots_[oldest_].newer]);
  }
  return write_back;
}

void MappingCache::unlink_recency(std::uint32_t slot) {
  const Slot& entry = slots_[slot];
  (entry.older == kNone ? oldest_ : slots_[entry.older].newer) = entry.newer;
  (entry.newer == kNone ? newest_ : slots_[entry.newer].older) = entry.older;
}

void MappingCache::link_newest(std::uint32_t slot) {
  Slot& entry = slots_[slot];
  entry.older = newest_;
  entry.newer = kNone;
  (newest_ == kNone ? oldest_ : slots_[newest_].newer) = slot;
  newest_ = slot;
}

void MappingCache::mark_changed(std::uint32_t slot) {
  Slot& entry = slots_[slot];
  if (entry.changed) return;
  entry.changed = true;
  std::uint32_t& head = changed_head_[entry.unit / entries_per_unit_];
  entry.next_changed = head;
  entry.previous_changed = kNone;
  if (head != kNone) slots_[head].previous_changed = slot;
  head = slot;
}

void MappingCache::mark_clean(std::uint32_t slot) {
  Slot& entry = slots_[slot];
  if (!entry.changed) return;
  entry.changed = false;
  std::uint32_t& head = changed_head_[entry.unit / entries_per_unit_];
  (entry.previous_changed == kNone ? head : slots_[entry.previous_changed].next_changed) = entry.next_changed;
  if (entry.next_changed != kNone) slots_[entry.next_changed].previous_changed = entry.previous_changed;
  entry.next_changed = entry.previous_changed = kNone;
}

}  // namespace spillway::ssd
