// Counts memory, and adds it to a sum that many share.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace spillway::spill {

// Thread-safe.
class MemoryCount {
 public:
  using Sum = std::shared_ptr<std::atomic<std::uint64_t>>;

  explicit MemoryCount(Sum sum) : sum_(std::move(sum)) {}
  ~MemoryCount() {
    if (sum_) sum_->fetch_sub(bytes(), std::memory_order_relaxed);
  }
  MemoryCount(const MemoryCount&) = delete;
  MemoryCount& operator=(const MemoryCount&) = delete;

  void add(std::uint64_t bytes) {
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
    if (sum_) sum_->fetch_add(bytes, std::memory_order_relaxed);
  }
  std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  const Sum sum_;  // null: nobody asks for it
  std::atomic<std::uint64_t> bytes_{0};
};

}  // namespace spillway::spill
