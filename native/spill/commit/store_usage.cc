#include "spill/commit/store_usage.h"

#include <algorithm>
#include <limits>

#include "spill/live/sorted_size.h"

namespace spillway::spill {
namespace {

// Share of the store and of the index that is reserved for writes that cannot go to RocksDB.
constexpr double kReserve = 0.1;
// Bytes that an operation takes of the index where none is there to tell. Source: docs/decisions/0041
constexpr double kBytesAKey = 100;

}  // namespace

bool StoreUsage::has_room(std::uint64_t bytes, bool may_use_reserve) const {
  const double used = share_used(bytes, live_.all_memory_bytes(), kept_for_run_.load(std::memory_order_relaxed));
  free_share_.store(1.0 - kReserve - used, std::memory_order_relaxed);
  return used <= (may_use_reserve ? 1.0 : 1.0 - kReserve);
}

StoreRoom StoreUsage::room_now() const {
  const std::uint64_t kept = kept_for_run_.load(std::memory_order_relaxed);
  return {1.0 - kReserve - share_used(0, live_.all_memory_bytes(), kept), returning_.load(std::memory_order_relaxed)};
}

double StoreUsage::share_of(std::uint64_t bytes, std::uint64_t operations) const {
  const std::uint64_t memory = live_.all_memory_bytes();
  if (share_of_store(0, kept_for_run_.load(std::memory_order_relaxed)) >= share_of_index(memory)) {
    return static_cast<double>(bytes) / static_cast<double>(store_.capacity_bytes());
  }
  double bytes_a_key = kBytesAKey;
  if (const std::uint64_t entries = live_.entries(); entries > 0) {
    bytes_a_key = static_cast<double>(live_.memory_bytes()) / static_cast<double>(entries);
  }
  return static_cast<double>(operations) * bytes_a_key / static_cast<double>(index_bytes_);
}

std::uint64_t StoreUsage::room_for_sorted(std::uint64_t more_bytes) const {
  if (has_own_drive_) return 0;
  std::uint64_t room = most_sorted_bytes(more_bytes);
  const auto generations = live_.generations();
  for (const auto& one : *generations) {
    const std::uint64_t more = one == generations->back() ? more_bytes : 0;
    room = std::max(room, most_sorted_bytes(*one, more));
  }
  return room;
}

std::uint64_t StoreUsage::room_for_run(double left_to_writers) const {
  if (has_own_drive_) return std::numeric_limits<std::uint64_t>::max();
  const double share = std::max(1.0 - kReserve - left_to_writers, 0.0);
  const auto most = static_cast<std::uint64_t>(share * static_cast<double>(store_.capacity_bytes()));
  return most - std::min(most, store_.used_bytes());
}

double StoreUsage::share_used(std::uint64_t more_bytes, std::uint64_t memory, std::uint64_t kept) const {
  return std::max(share_of_store(more_bytes, kept), share_of_index(memory));
}

double StoreUsage::share_of_store(std::uint64_t more_bytes, std::uint64_t kept) const {
  const std::uint64_t used = store_.used_bytes() + std::max(room_for_sorted(more_bytes), kept) + more_bytes;
  return static_cast<double>(used) / static_cast<double>(store_.capacity_bytes());
}

double StoreUsage::share_of_index(std::uint64_t memory) const {
  return static_cast<double>(memory) / static_cast<double>(index_bytes_);
}

}  // namespace spillway::spill
