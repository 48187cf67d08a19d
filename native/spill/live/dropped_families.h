// Column families that were dropped before what the spill store has of them was brought back: there was no space. Their
// handles read on, and nothing of them changes any more, so the view of the moment of the drop serves each reader.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/mutex.h"
#include "spill/live/generation.h"

namespace spillway::spill {

// Thread-safe. A view keeps its generations, and their place in the store, until it is released.
class DroppedFamilies {
 public:
  bool has_any() const { return has_any_.load(std::memory_order_acquire); }

  // REQUIRES: the family was dropped, the view is of that moment, and no generation was brought back since.
  void keep(std::uint32_t family, View view) {
    const ExclusiveLock lock(mutex_);
    views_.insert_or_assign(family, std::move(view));
    has_any_.store(true, std::memory_order_release);
  }
  // The family has no handle any more.
  void release(std::uint32_t family) {
    if (!has_any()) return;
    std::optional<View> gone;  // destroyed after the lock is released
    const ExclusiveLock lock(mutex_);
    const auto found = views_.find(family);
    if (found == views_.end()) return;
    gone = std::move(found->second);
    views_.erase(found);
    has_any_.store(!views_.empty(), std::memory_order_release);
  }
  void release_all() {
    std::unordered_map<std::uint32_t, View> gone;
    const ExclusiveLock lock(mutex_);
    gone.swap(views_);
    has_any_.store(false, std::memory_order_release);
  }

  // In which a reader whose own view is of sequence `up_to` has to read the family instead. Nothing if the family was
  // not kept, or if the reader's view is older, and so has all of it.
  std::optional<View> view_of(std::uint32_t family, Sequence up_to = ~Sequence{0}) const {
    if (!has_any()) return std::nullopt;
    const SharedLock lock(mutex_);
    const auto found = views_.find(family);
    if (found == views_.end() || up_to < found->second.up_to) return std::nullopt;
    return found->second;
  }

 private:
  mutable SharedMutex mutex_;
  std::unordered_map<std::uint32_t, View> views_ GUARDED_BY(mutex_);
  std::atomic<bool> has_any_{false};
};

}  // namespace spillway::spill
