// Generations that were brought back, as long as snapshots and iterators read them: their entries stay in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "spill/live/generation.h"

namespace spillway::spill {

// Thread-safe. Holds none itself.
class HeldGenerations {
 public:
  void add(const std::vector<std::shared_ptr<Generation>>& brought_back) {
    const MutexLock lock(mutex_);
    generations_.insert(generations_.end(), brought_back.begin(), brought_back.end());
  }

  std::uint64_t memory_bytes() const {
    std::vector<std::shared_ptr<const Generation>>
        held;  // of one that others let go meanwhile, the last: after the lock
    const MutexLock lock(mutex_);
    std::uint64_t bytes = 0;
    std::erase_if(generations_, [&](const std::weak_ptr<const Generation>& one) {
      if (held.emplace_back(one.lock()) == nullptr) return true;
      bytes += held.back()->memory_bytes();
      return false;
    });
    return bytes;
  }

 private:
  mutable Mutex mutex_;
  mutable std::vector<std::weak_ptr<const Generation>> generations_ GUARDED_BY(mutex_);
};

}  // namespace spillway::spill
