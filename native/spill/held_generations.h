// Generations that were brought back, as long as snapshots and iterators read them: their entries stay in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "spill/generation.h"

namespace spillway::spill {

// Thread-safe. Holds none itself.
class HeldGenerations {
 public:
  void add(const std::shared_ptr<const Generation>& brought_back) {
    const std::lock_guard lock(mutex_);
    generations_.push_back(brought_back);
  }

  std::uint64_t memory_bytes() const {
    const std::lock_guard lock(mutex_);
    std::uint64_t bytes = 0;
    std::erase_if(generations_, [&](const std::weak_ptr<const Generation>& one) {
      const auto held = one.lock();
      if (held != nullptr) bytes += held->memory_bytes();
      return held == nullptr;
    });
    return bytes;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::vector<std::weak_ptr<const Generation>> generations_;
};

}  // namespace spillway::spill
