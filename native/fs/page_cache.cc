#include "fs/page_cache.h"

namespace spillway::fs {

bool PageCache::touch(std::uint64_t file, std::uint64_t page) {
  const std::lock_guard lock(mutex_);
  const auto found = index_.find({file, page});
  if (found == index_.end()) return false;
  slots_[found->second].used = true;
  return true;
}

void PageCache::insert(std::uint64_t file, std::uint64_t first_page, std::uint64_t pages) {
  if (!enabled()) return;
  const std::lock_guard lock(mutex_);
  for (std::uint64_t page = first_page; page < first_page + pages; ++page) {
    const Key key{file, page};
    if (index_.contains(key)) continue;
    const std::size_t slot = free_slot();
    slots_[slot] = {key, false, true};
    index_.emplace(key, slot);
  }
}

void PageCache::drop(std::uint64_t file, std::uint64_t first_page, std::uint64_t pages) {
  if (!enabled()) return;
  const std::lock_guard lock(mutex_);
  for (std::uint64_t page = first_page; page < first_page + pages; ++page) {
    const auto found = index_.find({file, page});
    if (found == index_.end()) continue;
    slots_[found->second] = {};
    index_.erase(found);
  }
}

std::size_t PageCache::free_slot() {
  if (slots_.size() < capacity_) {
    slots_.emplace_back();
    return slots_.size() - 1;
  }
  while (true) {
    const std::size_t at = hand_;
    hand_ = (hand_ + 1) % slots_.size();
    Slot& slot = slots_[at];
    if (!slot.holds) return at;
    if (!slot.used) {
      index_.erase(slot.key);
      return at;
    }
    slot.used = false;
  }
}

}  // namespace spillway::fs
