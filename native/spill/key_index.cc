#include "spill/key_index.h"

#include <algorithm>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace spillway::spill {
namespace {

// So many that threads rarely meet at one lock, and that a shard which grows holds its own up for less than 1 ms at
// 4 million keys. Source: guess
constexpr unsigned kShardBits = 8;
constexpr std::size_t kShards = std::size_t{1} << kShardBits;
constexpr std::size_t kFirstSlots = 16;

std::uint64_t hash_of(std::uint32_t column_family, std::string_view key) {
  constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;  // 2^64 divided by the golden ratio
  return std::hash<std::string_view>{}(key) ^ (column_family * kGolden);
}

// Slots are chosen by the low bits, shards by the high ones.
std::size_t shard_of(std::uint64_t hash) { return hash >> (64 - kShardBits); }

}  // namespace

// Linear probing in a power of two of slots, three quarters of them used at most. The stored hash spares a miss the way
// to the entry.
struct alignas(64) KeyIndex::Shard {
  struct Slot {
    std::uint64_t hash = 0;
    const Entry* entry = nullptr;  // null: empty
  };

  std::mutex mutex;
  std::size_t used = 0;
  std::size_t mask = 0;
  std::vector<Slot> slots;

  // Where the key is, or the empty slot where it would go; null if there are no slots.
  Slot* find(std::uint64_t hash, std::uint32_t column_family, std::string_view key) {
    if (slots.empty()) return nullptr;
    for (std::size_t at = hash & mask;; at = (at + 1) & mask) {
      Slot& slot = slots[at];
      if (slot.entry == nullptr) return &slot;
      if (slot.hash == hash && slot.entry->column_family == column_family && slot.entry->key() == key) return &slot;
    }
  }

  void resize(std::size_t count) {
    const std::vector<Slot> old = std::exchange(slots, std::vector<Slot>(count));
    mask = count - 1;
    for (const Slot& slot : old) {
      if (slot.entry == nullptr) continue;
      std::size_t at = slot.hash & mask;
      while (slots[at].entry != nullptr) at = (at + 1) & mask;
      slots[at] = slot;
    }
  }

  // Closes the gap that it leaves: whatever was pushed beyond it by it moves back.
  void erase(Slot* slot) {
    auto gap = static_cast<std::size_t>(slot - slots.data());
    for (std::size_t at = (gap + 1) & mask; slots[at].entry != nullptr; at = (at + 1) & mask) {
      const std::size_t home = slots[at].hash & mask;
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
  const std::uint64_t hash = hash_of(column_family, key);
  Shard& shard = shards_[shard_of(hash)];
  const std::scoped_lock lock(shard.mutex);
  const Shard::Slot* const slot = shard.find(hash, column_family, key);
  return slot != nullptr && slot->entry != nullptr;
}

std::optional<KeyIndex::Found> KeyIndex::find(std::uint32_t column_family, std::string_view key) const {
  if (empty()) return std::nullopt;
  const std::uint64_t hash = hash_of(column_family, key);
  Shard& shard = shards_[shard_of(hash)];
  const std::scoped_lock lock(shard.mutex);
  const Shard::Slot* const slot = shard.find(hash, column_family, key);
  if (slot == nullptr || slot->entry == nullptr) return std::nullopt;
  // Under the lock: who takes the generation's entries out of here still holds it.
  return Found{*slot->entry, slot->entry->generation->shared_from_this()};
}

void KeyIndex::insert(const Entry* entry) {
  const std::uint64_t hash = hash_of(entry->column_family, entry->key());
  Shard& shard = shards_[shard_of(hash)];
  const std::scoped_lock lock(shard.mutex);
  Shard::Slot* slot = shard.find(hash, entry->column_family, entry->key());
  if (slot != nullptr && slot->entry != nullptr) {
    slot->entry = entry;
    return;
  }
  if (4 * (shard.used + 1) > 3 * shard.slots.size()) {
    const std::size_t before = shard.slots.size();
    shard.resize(std::max(kFirstSlots, 2 * before));
    memory_bytes_.fetch_add((shard.slots.size() - before) * sizeof(Shard::Slot), std::memory_order_relaxed);
    slot = shard.find(hash, entry->column_family, entry->key());
  }
  *slot = {hash, entry};
  ++shard.used;
  size_.fetch_add(1, std::memory_order_release);
}

void KeyIndex::remove(const Generation& generation) {
  generation.for_each([&](const Entry& entry) {
    const std::uint64_t hash = hash_of(entry.column_family, entry.key());
    Shard& shard = shards_[shard_of(hash)];
    const std::scoped_lock lock(shard.mutex);
    Shard::Slot* const slot = shard.find(hash, entry.column_family, entry.key());
    if (slot == nullptr || slot->entry == nullptr || slot->entry->generation != &generation) return;
    const std::size_t before = shard.slots.size();
    shard.erase(slot);
    memory_bytes_.fetch_sub((before - shard.slots.size()) * sizeof(Shard::Slot), std::memory_order_relaxed);
    size_.fetch_sub(1, std::memory_order_release);
  });
}

}  // namespace spillway::spill
