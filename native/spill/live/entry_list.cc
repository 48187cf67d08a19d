#include "spill/live/entry_list.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "spill/live/huge_pages.h"

namespace spillway::spill {
namespace {

// A new block is an eighth of the list, so that little is unused, and small at first, because there are many
// generations. Source: guess.
constexpr std::size_t kShareOfList = 8;
constexpr std::size_t kLeastBlockBytes = std::size_t{4} << 10;
constexpr std::size_t kMostBlockBytes = std::size_t{2} << 20;

// Blocks begin at a cache line, and so do entries of keys of 16 bytes, which fill one each.
constexpr std::size_t kCacheLine = 64;
struct alignas(kCacheLine) CacheLine {
  std::byte bytes[kCacheLine];
};

constexpr std::size_t rounded_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

// A header before its entries. A reader that is to read one more entry than the block has finds its end set: whoever
// made that entry known had set it before.
struct alignas(kCacheLine) EntryList::Block {
  std::size_t lines = 0;
  std::atomic<Block*> next{nullptr};
  std::atomic<const std::byte*> end{nullptr};  // of its last entry, once there is a next block
};

std::byte* EntryList::first_of(Block* block) { return reinterpret_cast<std::byte*>(block + 1); }

EntryList::~EntryList() {
  Block* block = first_.load(std::memory_order_relaxed);
  while (block != nullptr) {
    Block* const next = block->next.load(std::memory_order_relaxed);
    const std::size_t lines = block->lines;
    block->~Block();
    HugePages<CacheLine>().deallocate(reinterpret_cast<CacheLine*>(block), lines);
    block = next;
  }
}

void EntryList::add_block(std::size_t least_bytes) {
  const std::size_t usual = std::clamp(memory_bytes() / kShareOfList, kLeastBlockBytes, kMostBlockBytes);
  const std::size_t bytes = rounded_up(std::max(sizeof(Block) + least_bytes, usual), kCacheLine);
  CacheLine* const memory = HugePages<CacheLine>().allocate(bytes / kCacheLine);
  if ((reinterpret_cast<std::uintptr_t>(memory) + bytes) >> kEntryAddressBits != 0) {
    HugePages<CacheLine>().deallocate(memory, bytes / kCacheLine);
    throw std::bad_alloc();
  }
  auto* const block = new (memory) Block{.lines = bytes / kCacheLine};
  if (last_ == nullptr) {
    first_.store(block, std::memory_order_relaxed);
  } else {
    last_->next.store(block, std::memory_order_relaxed);
    last_->end.store(free_, std::memory_order_relaxed);
  }
  last_ = block;
  free_ = first_of(block);
  free_bytes_ = bytes - sizeof(Block);
  memory_.add(bytes);
}

std::byte* EntryList::allocate(std::size_t bytes) {
  if (bytes > free_bytes_) add_block(bytes);
  std::byte* const allocated = free_;
  free_ += bytes;
  free_bytes_ -= bytes;
  return allocated;
}

const Entry* EntryList::append(Entry fields, std::string_view key) {
  fields.key_bytes = static_cast<std::uint32_t>(key.size());
  std::byte* const place = allocate(fields.bytes());
  newest_ = new (place) Entry(fields);
  if (!key.empty()) std::memcpy(place + sizeof(Entry), key.data(), key.size());
  size_.store(size_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  return newest_;
}

void EntryList::replace(const Entry& entry, const Entry& fields) {
  auto& replaced = const_cast<Entry&>(entry);  // as append() made it
  replaced.sequence = fields.sequence;
  replaced.value = fields.value;
  replaced.value_checksum = fields.value_checksum;
  replaced.kind = fields.kind;
}

const Entry& EntryList::next(Place* place) const {
  if (place->block_ == nullptr || place->at_ == place->block_->end.load(std::memory_order_relaxed)) {
    const auto& link = place->block_ == nullptr ? first_ : place->block_->next;
    Block* const block = link.load(std::memory_order_relaxed);
    place->block_ = block;
    place->at_ = first_of(block);
  }
  const Entry& entry = *std::launder(reinterpret_cast<const Entry*>(place->at_));
  place->at_ += entry.bytes();
  return entry;
}

}  // namespace spillway::spill
