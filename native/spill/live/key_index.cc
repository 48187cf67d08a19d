#include "spill/live/key_index.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "spill/live/huge_pages.h"

namespace spillway::spill {
namespace {

// Few enough that the tables of a large index use huge pages (from 2^16 slots on, with some 800 000 keys), and many
// enough that threads rarely wait for the same lock and a growing table blocks one key in 32. Measured by
// bench/spill_overheads with 16, 32 and 256.
constexpr unsigned kShardBits = 5;
constexpr std::size_t kShards = std::size_t{1} << kShardBits;
constexpr std::size_t kFirstSlots = 16;

constexpr std::size_t kKeyBytesInSlot = 16;

// A key as slots hold it: whole if it is short, so that nothing but the slot has to be looked at, which costs a cache
// miss less. Of a longer key there is its hash, and the entry has the rest.
struct Probe {
  std::uint64_t hash = 0;
  std::uint64_t id = 0;  // column family, length up to 17, 24 bits of the hash, which say where to begin
  std::array<std::uint64_t, 2> words{};
  std::string_view key;

  Probe(std::uint32_t column_family, std::string_view of) : hash(std::hash<std::string_view>{}(of)), key(of) {
    constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;  // 2^64 divided by the golden ratio
    hash ^= column_family * kGolden;
    const std::uint64_t length = std::min(key.size(), kKeyBytesInSlot + 1);
    id = std::uint64_t{column_family} << 32 | length << 24 | (hash & 0xFFFFFF);
    if (is_short()) {
      std::memcpy(words.data(), key.data(), key.size());
    } else {
      words[0] = hash;
    }
  }
  bool is_short() const { return key.size() <= kKeyBytesInSlot; }
  std::size_t shard() const { return hash >> (64 - kShardBits); }
};

}  // namespace

// Linear probing in a power of two of slots, three quarters of them used at most.
struct alignas(64) KeyIndex::Shard {
  struct alignas(32) Slot {
    const Entry* entry = nullptr;  // null: empty
    std::uint64_t id = 0;
    std::array<std::uint64_t, 2> words{};

    bool holds(const Probe& probe) const {
      return id == probe.id && words == probe.words && (probe.is_short() || entry->key() == probe.key);
    }
  };

  using Slots = std::vector<Slot, HugePages<Slot>>;

  Mutex mutex;
  std::size_t used GUARDED_BY(mutex) = 0;
  std::size_t mask GUARDED_BY(mutex) = 0;
  Slots slots GUARDED_BY(mutex);

  // Where the key is, or the empty slot where it would go; null if there are no slots.
  Slot* find(const Probe& probe) REQUIRES(mutex) {
    if (slots.empty()) return nullptr;
    for (std::size_t at = probe.id & mask;; at = (at + 1) & mask) {
      Slot& slot = slots[at];
      if (slot.entry == nullptr || slot.holds(probe)) return &slot;
    }
  }

  void resize(std::size_t count) REQUIRES(mutex) {
    const Slots old = std::exchange(slots, Slots(count));
    mask = count - 1;
    for (const Slot& slot : old) {
      if (slot.entry == nullptr) continue;
      std::size_t at = slot.id & mask;
      while (slots[at].entry != nullptr) at = (at + 1) & mask;
      slots[at] = slot;
    }
  }

  // Closes the gap that it leaves: whatever was pushed beyond it by it moves back.
  void erase(Slot* slot) REQUIRES(mutex) {
    auto gap = static_cast<std::size_t>(slot - slots.data());
    for (std::size_t at = (gap + 1) & mask; slots[at].entry != nullptr; at = (at + 1) & mask) {
      const std::size_t home = slots[at].id & mask;
      if (((at - home) & mask) >= ((at - gap) & mask)) {
        slots[gap] = slots[at];
        gap = at;
      }
    }
    slots[gap] = {};
    if (--used == 0) slots = {};
  }
};

KeyIndex::KeyIndex() : shards_(std::make_unique<Shard[]>(kShards)), memory_bytes_(kShards * sizeof(Shard)) {}
KeyIndex::~KeyIndex() = default;

bool KeyIndex::contains(std::uint32_t column_family, std::string_view key) const {
  if (empty()) return false;
  const Probe probe(column_family, key);
  Shard& shard = shards_[probe.shard()];
  const MutexLock lock(shard.mutex);
  const Shard::Slot* const slot = shard.find(probe);
  return slot != nullptr && slot->entry != nullptr;
}

std::optional<KeyIndex::Found> KeyIndex::find(std::uint32_t column_family, std::string_view key) const {
  if (empty()) return std::nullopt;
  const Probe probe(column_family, key);
  Shard& shard = shards_[probe.shard()];
  const MutexLock lock(shard.mutex);
  const Shard::Slot* const slot = shard.find(probe);
  if (slot == nullptr || slot->entry == nullptr) return std::nullopt;
  // Under the lock: who takes the generation's entries out of here still holds it.
  return Found{*slot->entry, slot->entry->generation->shared_from_this()};
}

void KeyIndex::insert(const Entry* entry) {
  const Probe probe(entry->column_family, entry->key());
  Shard& shard = shards_[probe.shard()];
  const MutexLock lock(shard.mutex);
  Shard::Slot* slot = shard.find(probe);
  if (slot != nullptr && slot->entry != nullptr) {
    slot->entry = entry;
    return;
  }
  if (4 * (shard.used + 1) > 3 * shard.slots.size()) {
    const std::size_t before = shard.slots.size();
    shard.resize(std::max(kFirstSlots, 2 * before));
    memory_bytes_.fetch_add((shard.slots.size() - before) * sizeof(Shard::Slot), std::memory_order_relaxed);
    slot = shard.find(probe);
  }
  *slot = {entry, probe.id, probe.words};
  ++shard.used;
  size_.fetch_add(1, std::memory_order_release);
}

void KeyIndex::remove(const Generation& generation) {
  generation.for_each([&](const Entry& entry) {
    const Probe probe(entry.column_family, entry.key());
    Shard& shard = shards_[probe.shard()];
    const MutexLock lock(shard.mutex);
    Shard::Slot* const slot = shard.find(probe);
    // Another entry of the key is a newer one; if it is of this generation, its turn comes.
    if (slot == nullptr || slot->entry != &entry) return;
    const std::size_t before = shard.slots.size();
    shard.erase(slot);
    memory_bytes_.fetch_sub((before - shard.slots.size()) * sizeof(Shard::Slot), std::memory_order_relaxed);
    size_.fetch_sub(1, std::memory_order_release);
  });
}

}  // namespace spillway::spill
