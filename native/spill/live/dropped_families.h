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

  // In which a reader of now has to read the family. Nothing if the family was not kept.
  std::optional<View> view_of(std::uint32_t family) const { return view_of(family, View{nullptr, ~Sequence{0}}); }
  // In which a reader with a view of its own has to read the family instead. Nothing also if that view is older than
  // the drop, and so has all of the family.
  std::optional<View> view_of(std::uint32_t family, const View& own) const {
    if (!has_any()) return std::nullopt;
    const SharedLock lock(mutex_);
    const auto found = views_.find(family);
    if (found == views_.end() || is_older(own, found->second)) return std::nullopt;
    return found->second;
  }

 private:
  // If both have the same writes, the older one may have generations that have come back since, oldest first.
  static bool is_older(const View& view, const View& than) {
    if (view.up_to != than.up_to) return view.up_to < than.up_to;
    return oldest_generation(view) < oldest_generation(than);
  }
  static GenerationId oldest_generation(const View& view) {
    const bool has_none = view.generations == nullptr || view.generations->empty();
    return has_none ? ~GenerationId{0} : view.generations->front()->id();
  }

  mutable SharedMutex mutex_;
  std::unordered_map<std::uint32_t, View> views_ GUARDED_BY(mutex_);
  std::atomic<bool> has_any_{false};
};

}  // namespace spillway::spill
