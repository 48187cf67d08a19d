#include "ssd/ftl/mapping_cache.h"

#include "ssd/structures/prefetch.h"

namespace spillway::ssd {

MappingCache::MappingCache(std::size_t entries, std::uint64_t logical_units, std::uint32_t entries_per_unit)
    : entries_per_unit_(entries_per_unit), index_(entries), slots_(entries) {
  if (entries == 0) return;
  written_at_.assign((logical_units + entries_per_unit - 1) / entries_per_unit, 0);
  clear();
}

void MappingCache::clear() {
  index_.clear();
  unused_.clear();
  for (std::size_t slot = slots_.size(); slot-- > 0;) {
    slots_[slot] = {};
    unused_.push_back(static_cast<std::uint32_t>(slot));
  }
  written_at_.assign(written_at_.size(), 0);
  now_ = 0;
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
  if (change) slots_[slot].changed_at = ++now_;
  return outcome;
}

bool MappingCache::change_if_cached(std::uint32_t unit) {
  if (holds_everything()) return true;
  const std::uint32_t slot = index_.find(unit);
  if (slot == UnitIndex::kAbsent) return false;
  slots_[slot].changed_at = ++now_;
  return true;
}

void MappingCache::forget(std::uint32_t unit) {
  if (holds_everything()) return;
  const std::uint32_t slot = index_.find(unit);
  if (slot == UnitIndex::kAbsent) return;
  unlink_recency(slot);
  index_.erase(unit);
  unused_.push_back(slot);
}

std::uint32_t MappingCache::evict_oldest() {
  const std::uint32_t slot = oldest_;
  const Slot& entry = slots_[slot];
  std::uint32_t write_back = kNone;
  if (is_changed(entry)) {
    write_back = translation_unit_of(entry);
    written_at_[write_back] = ++now_;
  }
  unlink_recency(slot);
  index_.erase(entry.unit);
  unused_.push_back(slot);
  if (oldest_ != kNone) {  // prefetch for the next eviction
    index_.prefetch(slots_[oldest_].unit);
    ssd::prefetch(&written_at_[translation_unit_of(slots_[oldest_])]);
    ssd::prefetch(&slots_[slots_[oldest_].newer == kNone ? oldest_ : slots_[oldest_].newer]);
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

}  // namespace spillway::ssd
