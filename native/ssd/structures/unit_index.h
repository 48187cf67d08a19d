// A fixed-capacity hash table from logical unit to slot number: open addressing, linear probing, no tombstones.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "ssd/structures/flat_array.h"
#include "ssd/structures/prefetch.h"

namespace spillway::ssd {

class UnitIndex {
 public:
  static constexpr std::uint32_t kAbsent = ~std::uint32_t{0};

  // Holds up to `capacity` units at a load of at most one half.
  explicit UnitIndex(std::size_t capacity)
      : mask_(std::bit_ceil(std::max<std::size_t>(capacity, 4) * 2) - 1), entries_(mask_ + 1) {}

  std::uint32_t find(std::uint32_t unit) const {
    for (std::size_t i = home(unit);; i = (i + 1) & mask_) {
      if (entries_[i].slot_plus_1 == 0) return kAbsent;
      if (entries_[i].unit == unit) return entries_[i].slot_plus_1 - 1;
    }
  }

  // REQUIRES: find(unit) == kAbsent and fewer than `capacity` units inside
  void insert(std::uint32_t unit, std::uint32_t slot) {
    std::size_t i = home(unit);
    while (entries_[i].slot_plus_1 != 0) i = (i + 1) & mask_;
    entries_[i] = {unit, slot + 1};
  }

  // REQUIRES: find(unit) != kAbsent
  void erase(std::uint32_t unit) {
    std::size_t hole = home(unit);
    while (entries_[hole].unit != unit || entries_[hole].slot_plus_1 == 0) hole = (hole + 1) & mask_;
    // Close the gap: an entry may move into the hole unless its home lies cyclically in (hole, entry].
    for (std::size_t i = (hole + 1) & mask_; entries_[i].slot_plus_1 != 0; i = (i + 1) & mask_) {
      const std::size_t distance_home = (i - home(entries_[i].unit)) & mask_;
      const std::size_t distance_hole = (i - hole) & mask_;
      if (distance_home >= distance_hole) {
        entries_[hole] = entries_[i];
        hole = i;
      }
    }
    entries_[hole] = {};
  }

  void prefetch(std::uint32_t unit) const { ssd::prefetch(&entries_[home(unit)]); }

  void clear() { std::fill(entries_.begin(), entries_.end(), Entry()); }

 private:
  struct Entry {
    std::uint32_t unit = 0;
    std::uint32_t slot_plus_1 = 0;
  };
  std::size_t home(std::uint32_t unit) const {
    return static_cast<std::size_t>((unit * std::uint64_t{0x9E3779B97F4A7C15ULL}) >> 32) & mask_;
  }

  std::size_t mask_;
  FlatArray<Entry> entries_;
};

}  // namespace spillway::ssd
