#include "spill/store/kv/kv_durable.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <optional>

#include "spill/store/checksum.h"

namespace spillway::spill {

namespace {

struct Word {
  GenerationId generation = 0;
  std::uint64_t offset = 0;
};
constexpr std::size_t kWords = 93;  // that a slot has space for; of more generations the newest are said
struct Slot {
  std::uint32_t checksum = 0;
  std::uint32_t count = 0;
  std::uint64_t number = 0;
  GenerationId dropped = 0;
  std::array<Word, kWords> words{};
};
static_assert(2 * sizeof(Slot) <= KvDurable::kBytes);

std::uint32_t checksum(const Slot& slot) {
  const auto* const behind = reinterpret_cast<const char*>(&slot.count);
  return crc32c(rocksdb::Slice(behind, sizeof slot - offsetof(Slot, count)));
}

std::optional<Slot> slot_at(const char* memory) {
  Slot slot;
  std::memcpy(&slot, memory, sizeof slot);
  if (slot.count > kWords || slot.number == 0 || slot.checksum != checksum(slot)) return std::nullopt;
  return slot;
}

Slot newest_slot(const char* memory) {
  const auto first = slot_at(memory);
  const auto second = slot_at(memory + sizeof(Slot));
  if (!first && !second) return {};
  return !second || (first && first->number > second->number) ? *first : *second;
}

}  // namespace

KvDurable::Last KvDurable::read() const {
  const Slot newest = newest_slot(memory_);
  Last last;
  for (std::uint32_t i = 0; i < newest.count; ++i) last[newest.words[i].generation] = newest.words[i].offset;
  return last;
}

GenerationId KvDurable::dropped() const { return newest_slot(memory_).dropped; }

void KvDurable::add(const Last& last) {
  const MutexLock lock(mutex_);
  bool is_new = false;
  for (const auto& [generation, offset] : last) {
    const auto [said, is_first] = said_.try_emplace(generation, offset);
    is_new = is_new || is_first || said->second < offset;
    said->second = std::max(said->second, offset);
  }
  if (is_new) write(++number_ % 2);
}

void KvDurable::forget(GenerationId generation) {
  const MutexLock lock(mutex_);
  said_.erase(generation);
}

void KvDurable::drop(GenerationId generation) {
  const MutexLock lock(mutex_);
  said_dropped_ = generation;
  write(++number_ % 2);
}

void KvDurable::replace(const Last& last) {
  const MutexLock lock(mutex_);
  said_dropped_ = std::max(said_dropped_, dropped());
  for (const char* one : {memory_, memory_ + sizeof(Slot)}) {
    if (const auto slot = slot_at(one)) number_ = std::max(number_, slot->number);
  }
  said_ = last;
  write(++number_ % 2);
  write(++number_ % 2);
}

void KvDurable::write(std::size_t at) {
  Slot slot;
  slot.number = number_;
  slot.dropped = said_dropped_;
  while (said_.size() > kWords) said_.erase(said_.begin());
  for (const auto& [generation, offset] : said_) slot.words[slot.count++] = {generation, offset};
  slot.checksum = checksum(slot);
  std::memcpy(memory_ + at * sizeof(Slot), &slot, sizeof slot);
}

}  // namespace spillway::spill
