// Entries in the order of arrival, one behind the other in blocks that are freed together.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "spill/live/commit_role.h"
#include "spill/live/entry.h"
#include "spill/live/memory_count.h"

namespace spillway::spill {

// Grows in the commit queue; any thread reads the first size() entries. An entry never moves. Where some were replaced,
// only the sequences of a key's entries grow.
class EntryList {
  struct Block;

 public:
  // Between two entries, or before the first or behind the last. Valid while the list lives.
  class Place {
    friend class EntryList;
    const Block* block_ = nullptr;  // null: before the first
    const std::byte* at_ = nullptr;
  };

  // `sum`: of the memory of many lists; null: nobody asks for it.
  explicit EntryList(MemoryCount::Sum sum = nullptr) : memory_(std::move(sum)) {}
  ~EntryList();
  EntryList(const EntryList&) = delete;
  EntryList& operator=(const EntryList&) = delete;

  // Copies the fields and the key, whose length it sets.
  const Entry* append(Entry fields, std::string_view key) REQUIRES(in_commit_queue);
  // The entry becomes a newer version of its key. REQUIRES: it is in this list, and nobody reads it meanwhile
  void replace(const Entry& entry, const Entry& fields) REQUIRES(in_commit_queue);
  // Null if there is none.
  const Entry* newest() const REQUIRES(in_commit_queue) { return newest_; }

  // --- By anybody.
  std::uint64_t size() const { return size_.load(std::memory_order_acquire); }
  std::size_t memory_bytes() const { return memory_.bytes(); }
  // Moves the place behind the next entry, which it returns. REQUIRES: that is one of the first size() entries
  const Entry& next(Place* place) const;

 private:
  static std::byte* first_of(Block* block);
  std::byte* allocate(std::size_t bytes) REQUIRES(in_commit_queue);
  void add_block(std::size_t least_bytes) REQUIRES(in_commit_queue);

  std::atomic<Block*> first_{nullptr};
  std::atomic<std::uint64_t> size_{0};
  MemoryCount memory_;
  Block* last_ GUARDED_BY(in_commit_queue) = nullptr;
  std::byte* free_ GUARDED_BY(in_commit_queue) = nullptr;  // in the last block
  std::size_t free_bytes_ GUARDED_BY(in_commit_queue) = 0;
  const Entry* newest_ GUARDED_BY(in_commit_queue) = nullptr;
};

}  // namespace spillway::spill
