#include "spill/live/key_index.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <memory>
#include <new>
#include <utility>

#include "base/mutex.h"
#include "spill/live/huge_pages.h"

namespace spillway::spill {

// With a name, for a member of KeyIndex is made of it.
namespace key_table {

// Enough that threads rarely wait for the same lock, that a growing table blocks few keys, and that the hash bits of a
// slot tell keys of one shard apart; few enough that they take little beside 10 000 keys. Measured by
// bench/spill_overheads.
constexpr unsigned kShardBits = 6;
constexpr std::size_t kShards = std::size_t{1} << kShardBits;
constexpr std::uint64_t kFirstSlots = 8;

constexpr unsigned kZeroBits = std::countr_zero(alignof(Entry));
constexpr unsigned kAddressBits = kEntryAddressBits - kZeroBits;
constexpr unsigned kSlotHashBits = 64 - kAddressBits;

struct Probe {
  std::uint32_t column_family;
  std::string_view key;
  std::size_t shard;        // the highest bits of the hash
  std::uint64_t slot_hash;  // those below them

  Probe(std::uint32_t family, std::string_view of) : column_family(family), key(of) {
    constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;  // 2^64 divided by the golden ratio
    const std::uint64_t hash = std::hash<std::string_view>{}(of) ^ (family * kGolden);
    shard = hash >> (64 - kShardBits);
    slot_hash = hash << kShardBits >> kAddressBits;
  }
};

// An entry's address and part of its key's hash.
class Slot {
 public:
  Slot() = default;
  Slot(const Entry* entry, std::uint64_t hash)
      : bits_(hash << kAddressBits | reinterpret_cast<std::uintptr_t>(entry) >> kZeroBits) {}
  bool empty() const { return bits_ == 0; }
  std::uint64_t hash() const { return bits_ >> kAddressBits; }
  const Entry* entry() const {
    return reinterpret_cast<const Entry*>(bits_ << kSlotHashBits >> (kSlotHashBits - kZeroBits));
  }
  bool holds(const Probe& probe) const {
    return hash() == probe.slot_hash && entry()->column_family == probe.column_family && entry()->key() == probe.key;
  }

 private:
  std::uint64_t bits_ = 0;
};

// Linear probing. A key's place is its hash scaled to the number of slots, so a table of any size is made from another
// one without a look at the entries: it grows by a quarter when three quarters are used, and shrinks when less than
// 9/20 are. So a key takes 10.7 to 17.8 bytes, and more than 13.4 only after removals.
class Table {
 public:
  Table() = default;
  ~Table() { resize(0); }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  std::size_t memory_bytes() const { return count_ * sizeof(Slot); }

  // The slot of the key, or the empty one where its probing ends; null if there are no slots.
  Slot* find(const Probe& probe) {
    return probe_from(probe.slot_hash, [&](const Slot& slot) { return slot.holds(probe); });
  }
  // The slot of that entry of the key; empty or null if there is none.
  Slot* find(const Probe& probe, const Entry* entry) {
    return probe_from(probe.slot_hash, [&](const Slot& slot) { return slot.entry() == entry; });
  }

  // REQUIRES: find(probe) has returned `empty`
  void insert(Slot* empty, Slot filled) {
    if (4 * (used_ + 1) > 3 * count_) {
      resize(std::max(kFirstSlots, count_ + count_ / 4));
      empty = probe_from(filled.hash(), [](const Slot&) { return false; });
    }
    *empty = filled;
    ++used_;
  }

  // Closes the gap that it leaves: whatever was pushed beyond it by it moves back.
  void erase(Slot* slot) {
    auto gap = static_cast<std::size_t>(slot - slots_);
    for (std::size_t at = next(gap); !slots_[at].empty(); at = next(at)) {
      if (distance(home(slots_[at].hash()), at) >= distance(gap, at)) {
        slots_[gap] = slots_[at];
        gap = at;
      }
    }
    slots_[gap] = {};
    --used_;
    if (used_ == 0) {
      resize(0);
    } else if (20 * used_ < 9 * count_ && count_ > kFirstSlots) {
      shrink();
    }
  }

 private:
  std::size_t home(std::uint64_t hash) const { return hash * count_ >> kSlotHashBits; }
  std::size_t next(std::size_t at) const { return at + 1 == count_ ? 0 : at + 1; }
  std::size_t distance(std::size_t from, std::size_t to) const { return to >= from ? to - from : to + count_ - from; }

  template <typename IsIt>
  Slot* probe_from(std::uint64_t hash, const IsIt& is_it) {
    if (count_ == 0) return nullptr;
    for (std::size_t at = home(hash);; at = next(at)) {
      Slot& slot = slots_[at];
      if (slot.empty() || is_it(slot)) return &slot;
    }
  }

  // REQUIRES: more than are used, or none. Changes nothing where there is no memory for them.
  void resize(std::uint64_t count) {
    Slot* const slots = count == 0 ? nullptr : HugePages<Slot>().allocate(count);
    std::uninitialized_value_construct_n(slots, count);
    Slot* const old = std::exchange(slots_, slots);
    const std::uint64_t old_count = std::exchange(count_, count);
    for (std::uint64_t i = 0; count > 0 && i < old_count; ++i) {
      if (!old[i].empty()) *probe_from(old[i].hash(), [](const Slot&) { return false; }) = old[i];
    }
    if (old != nullptr) HugePages<Slot>().deallocate(old, old_count);
  }
  void shrink() {
    try {
      resize(std::max(kFirstSlots, used_ * 5 / 3 + 1));
    } catch (const std::bad_alloc&) {  // a removal does not fail: the next one tries again
    }
  }

  Slot* slots_ = nullptr;
  std::uint64_t count_ = 0;
  std::uint64_t used_ = 0;
};

}  // namespace key_table

using key_table::kShards;
using key_table::Probe;
using key_table::Slot;

struct alignas(64) KeyIndex::Shard {
  Mutex mutex;
  key_table::Table table GUARDED_BY(mutex);
};

KeyIndex::KeyIndex() : shards_(std::make_unique<Shard[]>(kShards)), memory_bytes_(kShards * sizeof(Shard)) {}
KeyIndex::~KeyIndex() = default;

bool KeyIndex::contains(std::uint32_t column_family, std::string_view key) const {
  if (empty()) return false;
  const Probe probe(column_family, key);
  Shard& shard = shards_[probe.shard];
  const MutexLock lock(shard.mutex);
  const Slot* const slot = shard.table.find(probe);
  return slot != nullptr && !slot->empty();
}

std::optional<KeyIndex::Found> KeyIndex::find(std::uint32_t column_family, std::string_view key) const {
  if (empty()) return std::nullopt;
  const Probe probe(column_family, key);
  Shard& shard = shards_[probe.shard];
  const MutexLock lock(shard.mutex);
  const Slot* const slot = shard.table.find(probe);
  if (slot == nullptr || slot->empty()) return std::nullopt;
  // Under the lock: who takes the generation's entries out of here still holds it.
  const Entry& entry = *slot->entry();
  return Found{entry, entry.generation->shared_from_this()};
}

template <typename Make>
void KeyIndex::place(std::uint32_t column_family, std::string_view key, const Make& make) {
  const Probe probe(column_family, key);
  Shard& shard = shards_[probe.shard];
  const MutexLock lock(shard.mutex);
  Slot* const slot = shard.table.find(probe);
  const bool is_there = slot != nullptr && !slot->empty();
  const Entry* const entry = make(is_there ? slot->entry() : nullptr);
  if (entry == nullptr) return;
  if (is_there) {
    *slot = {entry, probe.slot_hash};
    return;
  }
  const std::size_t before = shard.table.memory_bytes();
  shard.table.insert(slot, {entry, probe.slot_hash});
  memory_bytes_.fetch_add(shard.table.memory_bytes() - before, std::memory_order_relaxed);
  size_.fetch_add(1, std::memory_order_release);
}

void KeyIndex::insert(const Entry* entry) {
  place(entry->column_family, entry->key(), [&](const Entry*) { return entry; });
}

// find() copies entries under the lock under which they are replaced here.
void KeyIndex::write(const Version& version, Generation& to, bool may_replace) {
  place(version.column_family, version.key, [&](const Entry* before) -> const Entry* {
    in_commit_queue.assume_held();  // as by this function's caller
    if (!may_replace || before == nullptr || before->generation != &to) {
      return to.add(version.column_family, version.key, version.sequence, version.kind, version.value,
                    version.value_checksum);
    }
    to.replace(*before, version.sequence, version.kind, version.value, version.value_checksum);
    return nullptr;
  });
}

void KeyIndex::remove(const Generation& generation) {
  generation.for_each([&](const Entry& entry) {
    const Probe probe(entry.column_family, entry.key());
    Shard& shard = shards_[probe.shard];
    const MutexLock lock(shard.mutex);
    Slot* const slot = shard.table.find(probe, &entry);
    // Another entry of the key is a newer one; if it is of this generation, its turn comes.
    if (slot == nullptr || slot->empty()) return;
    const std::size_t before = shard.table.memory_bytes();
    shard.table.erase(slot);
    memory_bytes_.fetch_sub(before - shard.table.memory_bytes(), std::memory_order_relaxed);
    size_.fetch_sub(1, std::memory_order_release);
  });
}

}  // namespace spillway::spill
