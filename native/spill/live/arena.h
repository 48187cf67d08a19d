// Memory for entries and their keys, in blocks that are freed together.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <utility>
#include <vector>

#include "spill/live/commit_role.h"
#include "spill/live/huge_pages.h"

namespace spillway::spill {

// Allocates in the commit queue; any thread reads what was allocated.
class Arena {
 public:
  Arena() = default;
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Aligned to `kAlignment`.
  std::byte* allocate(std::size_t bytes) REQUIRES(in_commit_queue) {
    bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    if (bytes > free_bytes_) add_block(bytes);
    free_bytes_ -= bytes;
    return std::exchange(free_, free_ + bytes);
  }
  std::size_t memory_bytes() const { return memory_bytes_.load(std::memory_order_relaxed); }

  static constexpr std::size_t kAlignment = 8;

 private:
  struct Block {
    std::byte* memory = nullptr;
    std::size_t bytes = 0;
  };
  void add_block(std::size_t least_bytes) REQUIRES(in_commit_queue);

  std::vector<Block> blocks_ GUARDED_BY(in_commit_queue);
  std::byte* free_ GUARDED_BY(in_commit_queue) = nullptr;  // in the last block
  std::size_t free_bytes_ GUARDED_BY(in_commit_queue) = 0;
  std::atomic<std::size_t> memory_bytes_{0};
};

}  // namespace spillway::spill
