// How full the spill store and the key index are, and what of the store is kept free for the sorted files of a
// rollback.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "spill/live/live_set.h"
#include "spill/store/store.h"
#include "spillway/options.h"

namespace spillway::spill {

// Thread-safe.
class StoreUsage {
 public:
  StoreUsage(const SpillOptions& options, const Store& store, const LiveSet& live)
      : has_own_drive_(options.store != nullptr), index_bytes_(options.index_bytes), store_(store), live_(live) {}

  // Share of the store's capacity or of the index's memory, whichever is more. 1: full.
  double share_used() const { return share_used(0, 0); }
  // Whether `bytes` more fit. Writes that could go to RocksDB leave a reserve to those that cannot.
  bool has_room(std::uint64_t bytes, bool may_use_reserve) const;

  // --- Sorted files of a rollback, which lie beside the store's logs and count for its capacity
  // As many of the oldest generations as there is room for sorted files of, and one in any case: that room is kept free
  // for it. What they take counts as used until release_sorted().
  std::shared_ptr<const Generations> reserve_sorted(const std::shared_ptr<const Generations>& wanted)
      REQUIRES(in_commit_queue);
  void release_sorted() { sorted_bytes_.store(0, std::memory_order_release); }

 private:
  double share_used(std::uint64_t more_bytes, std::uint64_t more_memory) const;
  // What the next rollback writes: for the largest generation, should the newest have so many more bytes.
  std::uint64_t room_for_sorted(std::uint64_t more_bytes) const;

  const bool has_own_drive_;  // a key-value namespace has its capacity for itself: sorted files lie beside RocksDB's
  const std::uint64_t index_bytes_;
  const Store& store_;
  const LiveSet& live_;
  std::atomic<std::uint64_t> sorted_bytes_{0};  // that the sorted files of a rollback under way may have
};

}  // namespace spillway::spill
