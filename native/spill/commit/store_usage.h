// How full the spill store and the key index are. Sorted files of a rollback are on the same file system as the store's
// logs and count towards its capacity: space for those of the largest generation is always kept free.
#pragma once

#include <atomic>
#include <cstdint>

#include "spill/live/live_set.h"
#include "spill/store/drain_pacer.h"
#include "spill/store/store.h"
#include "spillway/options.h"

namespace spillway::spill {

// Thread-safe.
class StoreUsage {
 public:
  StoreUsage(const SpillOptions& options, const Store& store, const LiveSet& live)
      : has_own_drive_(options.store != nullptr), index_bytes_(options.index_bytes), store_(store), live_(live) {}

  // The larger of two shares: of the store's capacity and of the index's memory. 1: full. What is kept for a run does
  // not count.
  double share_used() const { return share_used(0, live_.memory_bytes(), 0); }
  // Whether `bytes` more fit. A reserve is kept for writes that cannot go to RocksDB.
  bool has_room(std::uint64_t bytes, bool may_use_reserve) const;
  // Room for writes that can go to RocksDB, as shares of the store's capacity or of the index's memory.
  StoreRoom room_now() const;
  // The same when has_room() was last called.
  StoreRoom room() const {
    return {free_share_.load(std::memory_order_relaxed), returning_.load(std::memory_order_relaxed)};
  }
  // The share that a group takes of the one of the two of which less is free.
  double share_of(std::uint64_t bytes, std::uint64_t operations) const;
  // Most bytes that the sorted files of a run may have, if a share of the capacity is left to writers. No limit where
  // they are not on the store's drive.
  std::uint64_t room_for_run(double left_to_writers) const;
  // Keeps so much of the capacity free for them, if it is more than what is always kept. Nothing where they are not on
  // the store's drive.
  void keep_for_run(std::uint64_t bytes) { kept_for_run_.store(has_own_drive_ ? 0 : bytes, std::memory_order_relaxed); }
  // Of what a rollback in progress will release at its end, the share that has not yet come back.
  void set_returning(double share) { returning_.store(share, std::memory_order_relaxed); }

 private:
  double share_used(std::uint64_t more_bytes, std::uint64_t memory, std::uint64_t kept) const;
  double share_of_store(std::uint64_t more_bytes, std::uint64_t kept) const;
  double share_of_index(std::uint64_t memory) const;
  // Size of the sorted files of the largest generation, if the newest one had `more_bytes` more.
  std::uint64_t room_for_sorted(std::uint64_t more_bytes) const;

  const bool has_own_drive_;  // a key-value namespace has its own capacity: sorted files use RocksDB's drive
  const std::uint64_t index_bytes_;
  const Store& store_;
  const LiveSet& live_;
  mutable std::atomic<double> free_share_{1};
  std::atomic<double> returning_{0};
  std::atomic<std::uint64_t> kept_for_run_{0};
};

}  // namespace spillway::spill
