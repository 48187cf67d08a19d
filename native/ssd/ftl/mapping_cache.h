// The part of the logical-to-physical map that is in DRAM if the whole map does not fit (M8; Gupta et al., DFTL, 2009).
//
// Entries are cached individually and evicted in LRU order. The rest of the map is on flash in translation units of
// `entries_per_unit` consecutive entries. A miss reads the translation unit of its entry. Evicting a changed entry
// writes its translation unit back with all changed entries of that unit, so random writes share the cost. This class
// has no map and does no flash operation: the caller owns the map, reads and programs.
#pragma once

#include <cstdint>
#include <vector>

#include "ssd/structures/unit_index.h"

namespace spillway::ssd {

class MappingCache {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  // `entries`: capacity; 0: the whole map fits, and every access hits.
  MappingCache(std::size_t entries, std::uint64_t logical_units, std::uint32_t entries_per_unit);

  bool holds_everything() const { return slots_.size() == 0; }

  struct Outcome {
    bool hit = true;
    std::uint32_t write_back = kNone;  // translation unit that must be read, changed and programmed
  };
  // Looks an entry up for reading, or for changing it, and makes it the most recently used.
  Outcome access(std::uint32_t unit, bool change);
  // Marks a cached entry as changed. Returns false if the entry is not cached.
  bool change_if_cached(std::uint32_t unit);
  void prefetch(std::uint32_t unit) const { index_.prefetch(unit); }
  // The entry to be evicted next, or kNone. For prefetching.
  std::uint32_t next_to_evict() const { return oldest_ == kNone ? kNone : slots_[oldest_].unit; }
  // Forgets an entry (its unit was deallocated).
  void forget(std::uint32_t unit);
  // Forgets everything, as a power cycle after a clean shutdown does.
  void clear();

 private:
  struct Slot {
    std::uint32_t unit = 0;
    std::uint32_t older = kNone, newer = kNone;  // recency
    std::uint64_t changed_at = 0;                // 0: as read
  };

  std::uint32_t translation_unit_of(const Slot& slot) const { return slot.unit / entries_per_unit_; }
  // An entry is dirty if it was changed after its translation unit was last written back. So a write-back takes one
  // store, for any number of the unit's entries in the cache.
  bool is_changed(const Slot& slot) const { return slot.changed_at > written_at_[translation_unit_of(slot)]; }
  void unlink_recency(std::uint32_t slot);
  void link_newest(std::uint32_t slot);
  std::uint32_t evict_oldest();  // returns the translation unit to write back, or kNone

  std::uint32_t entries_per_unit_;
  UnitIndex index_;
  FlatArray<Slot> slots_;
  std::vector<std::uint64_t> written_at_;  // by translation unit
  std::vector<std::uint32_t> unused_;
  std::uint32_t oldest_ = kNone;
  std::uint32_t newest_ = kNone;
  std::uint64_t now_ = 0;  // counts changes and write-backs
};

}  // namespace spillway::ssd
