// Allocates the logical units of a key-value namespace: free extents, first fit.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <iterator>
#include <map>

namespace spillway::ssd {

struct UnitRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

class UnitAllocator {
 public:
  UnitAllocator(std::uint32_t first, std::uint32_t count) : free_units_(count) { free_.emplace(first, count); }

  std::uint64_t free_units() const { return free_units_; }
  const std::map<std::uint32_t, std::uint32_t>& free_extents() const { return free_; }

  // Up to `most` consecutive units: the front of the first free extent. REQUIRES: free_units() > 0 and most > 0
  UnitRange allocate(std::uint32_t most) {
    assert(!free_.empty() && most > 0);
    const auto extent = free_.begin();
    const UnitRange taken{extent->first, std::min(most, extent->second)};
    const UnitRange rest{taken.first + taken.count, extent->second - taken.count};
    free_.erase(extent);
    if (rest.count > 0) free_.emplace(rest.first, rest.count);
    free_units_ -= taken.count;
    return taken;
  }

  // False if some of these are not free: the saved state is inconsistent.
  bool allocate_exactly(UnitRange wanted) {
    auto extent = free_.upper_bound(wanted.first);
    if (extent == free_.begin()) return false;
    --extent;
    const UnitRange held{extent->first, extent->second};
    if (std::uint64_t{wanted.first} + wanted.count > std::uint64_t{held.first} + held.count) return false;
    free_.erase(extent);
    if (wanted.first > held.first) free_.emplace(held.first, wanted.first - held.first);
    const std::uint32_t behind = held.first + held.count - (wanted.first + wanted.count);
    if (behind > 0) free_.emplace(wanted.first + wanted.count, behind);
    free_units_ -= wanted.count;
    return true;
  }

  // REQUIRES: the units are allocated
  void release(UnitRange units) {
    free_units_ += units.count;
    auto next = free_.lower_bound(units.first);
    if (next != free_.end() && units.first + units.count == next->first) {
      units.count += next->second;
      next = free_.erase(next);
    }
    if (next != free_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == units.first) {
        before->second += units.count;
        return;
      }
    }
    free_.emplace(units.first, units.count);
  }

 private:
  std::map<std::uint32_t, std::uint32_t> free_;  // first → count; no two are adjacent
  std::uint64_t free_units_;
};

}  // namespace spillway::ssd
