// The range tombstones of a generation: added in the commit queue, never removed, read by any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "spill/live/column_families.h"
#include "spill/live/commit_role.h"
#include "spill/live/memory_count.h"
#include "spill/live/newest_ranges.h"
#include "spill/store/store.h"

namespace spillway::spill {

// [begin, end) of a column family was deleted: everything older, in this store and in RocksDB.
struct RangeTombstone {
  std::uint32_t column_family = 0;
  std::string begin;
  std::string end;
  Sequence sequence = 0;
};

class RangeTombstones {
 public:
  // `sum`: as EntryList's.
  explicit RangeTombstones(const ColumnFamilies& families, MemoryCount::Sum sum = nullptr)
      : families_(families), memory_(std::move(sum)) {}

  void add(RangeTombstone tombstone) REQUIRES(in_commit_queue);

  std::uint64_t size() const { return count_.load(std::memory_order_acquire); }
  std::vector<RangeTombstone> all() const;  // oldest first
  // The sequence of the newest up to `up_to` that covers the key, or 0.
  Sequence covering(std::uint32_t column_family, std::string_view key, Sequence up_to) const;
  std::uint64_t memory_bytes() const { return memory_.bytes(); }

 private:
  const ColumnFamilies& families_;
  mutable SharedMutex mutex_;
  std::vector<RangeTombstone> all_ GUARDED_BY(mutex_);
  std::unordered_map<std::uint32_t, NewestRanges> newest_ GUARDED_BY(mutex_);  // by column family
  std::atomic<std::uint64_t> count_{0};
  MemoryCount memory_;
};

}  // namespace spillway::spill
