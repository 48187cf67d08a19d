// Written units in the drive's DRAM that wait to be programmed, first in, first out.
//
// A unit that is written again while it waits is replaced, and programmed once. Units take room in the cache until
// their program has finished; the caller counts those being programmed.
#pragma once

#include <bit>
#include <cassert>
#include <cstdint>
#include <utility>
#include <vector>

#include "ssd/structures/unit_index.h"

namespace spillway::ssd {

class WriteCache {
 public:
  static constexpr std::uint32_t kNoOwner = ~std::uint32_t{0};

  struct Entry {
    std::uint32_t unit = 0;
    std::uint32_t owner = kNoOwner;  // command that waits for this unit's program (drives without a write cache)
    bool dropped = false;            // deallocated while it waited
    std::uint8_t slots = 1;          // of flash that it takes
  };

  // `slots`: the most units that may wait at once.
  explicit WriteCache(std::size_t slots) : index_(slots), entries_(std::bit_ceil(slots + 1)), limit_(slots) {}

  std::uint64_t waiting() const { return waiting_; }
  std::uint64_t admitted() const { return tail_; }  // entries ever admitted, replaced ones not counted twice
  std::uint64_t taken() const { return head_; }     // entries ever taken out; entries leave in order

  bool holds(std::uint32_t unit) const { return waiting_ != 0 && index_.find(unit) != UnitIndex::kAbsent; }

  // REQUIRES: !holds(unit) and waiting() < slots
  void admit(std::uint32_t unit, std::uint32_t owner, std::uint8_t slots) {
    assert(tail_ - head_ < entries_.size());
    const auto slot = static_cast<std::uint32_t>(tail_ & (entries_.size() - 1));
    entries_[slot] = {unit, owner, false, slots};
    index_.insert(unit, slot);
    ++tail_;
    ++waiting_;
  }

  // The unit `ahead` entries after the front; any unit if fewer wait. For prefetching.
  std::uint32_t peek(std::uint64_t ahead) const { return entries_[(head_ + ahead) & (entries_.size() - 1)].unit; }

  void prefetch(std::uint32_t unit) const { index_.prefetch(unit); }

  // Slots of flash that the oldest waiting entry takes. REQUIRES: waiting() > 0
  std::uint8_t front_slots() const { return entries_[head_ & (entries_.size() - 1)].slots; }
  // Of a waiting unit. REQUIRES: holds(unit)
  std::uint8_t slots_of(std::uint32_t unit) const { return entries_[index_.find(unit)].slots; }
  void set_slots(std::uint32_t unit, std::uint8_t slots) { entries_[index_.find(unit)].slots = slots; }

  // Whether the ring has room for one more. Dropped entries stay in it until they reach the front.
  bool has_slot() const { return tail_ - head_ < limit_; }

  // The unit is written again while it waits. `owner` becomes its owner; returns the previous one.
  // REQUIRES: holds(unit)
  std::uint32_t replace(std::uint32_t unit, std::uint32_t owner) {
    return std::exchange(entries_[index_.find(unit)].owner, owner);
  }

  // The unit was deallocated. Returns its owner. REQUIRES: holds(unit)
  std::uint32_t drop(std::uint32_t unit) {
    const std::uint32_t slot = index_.find(unit);
    const std::uint32_t owner = entries_[slot].owner;
    entries_[slot].dropped = true;
    index_.erase(unit);
    --waiting_;
    skip_dropped();
    return owner;
  }

  // Removes and returns the oldest waiting entry. REQUIRES: waiting() > 0
  Entry take() {
    const Entry entry = entries_[head_ & (entries_.size() - 1)];
    assert(!entry.dropped);
    ++head_;
    --waiting_;
    index_.erase(entry.unit);
    skip_dropped();
    return entry;
  }

 private:
  void skip_dropped() {
    while (head_ < tail_ && entries_[head_ & (entries_.size() - 1)].dropped) ++head_;
  }

  UnitIndex index_;
  std::vector<Entry> entries_;
  std::size_t limit_;
  std::uint64_t head_ = 0;
  std::uint64_t tail_ = 0;
  std::uint64_t waiting_ = 0;
};

}  // namespace spillway::ssd
