// How full the spill store and the key index are, and the space reserved for the sorted files of a rollback.
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

  // The larger of two shares: of the store's capacity and of the index's memory. 1: full.
  double share_used() const { return share_used(0, 0); }
  // Whether `bytes` more fit. A reserve is kept for writes that cannot go to RocksDB.
  bool has_room(std::uint64_t bytes, bool may_use_reserve) const;
  // What is left for other writes, as a share of the whole.
  double free_share_now() const;
  // The same when has_room() was last called.
  double free_share() const { return free_share_.load(std::memory_order_relaxed); }

  // --- Sorted files of a rollback. They are on the same file system as the store's logs and count towards its capacity
  // Returns the oldest generations whose sorted files fit, at least one: space for one is always kept free. The space
  // counts as used until release_sorted().
  std::shared_ptr<const Generations> reserve_sorted(const std::shared_ptr<const Generations>& wanted)
      REQUIRES(in_commit_queue);
  void release_sorted() { sorted_bytes_.store(0, std::memory_order_release); }

 private:
  double share_used(std::uint64_t more_bytes, std::uint64_t more_memory) const;
  // Size of the sorted files of the largest generation, if the newest one had `more_bytes` more.
  std::uint64_t room_for_sorted(std::uint64_t more_bytes) const;

  const bool has_own_drive_;  // a key-value namespace has its own capacity: sorted files use RocksDB's drive
  const std::uint64_t index_bytes_;
  const Store& store_;
  const LiveSet& live_;
  mutable std::atomic<double> free_share_{1};
  std::atomic<std::uint64_t> sorted_bytes_{0};  // reserved for the sorted files of a rollback in progress
};

}  // namespace spillway::spill
