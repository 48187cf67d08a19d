// Entries in the order of arrival, and sorted when a reader first asks for it.
//
// The sorted runs hold the first so many arrivals, older ones in earlier runs, each less than half the one before it:
// runs of similar sizes are merged, so that n entries cost O(n log n) in total.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "spill/live/commit_role.h"
#include "spill/live/entry.h"
#include "spill/live/entry_list.h"
#include "spill/live/memory_count.h"

namespace spillway::spill {

class SortedEntries {
 public:
  // `sum`: as EntryList's.
  explicit SortedEntries(const ColumnFamilies& families, MemoryCount::Sum sum = nullptr);

  // Its sequence is higher than any before.
  const Entry* append(const Entry& fields, std::string_view key) REQUIRES(in_commit_queue) {
    return arrivals_.append(fields, key);
  }
  // The newest entry of a key becomes a newer one. Its place in a sorted run stays right.
  // REQUIRES: nobody reads entries, or will ask for those up to a sequence below the new one
  void replace(const Entry& entry, const Entry& fields) REQUIRES(in_commit_queue) { arrivals_.replace(entry, fields); }
  // Null if there is none.
  const Entry* newest() const REQUIRES(in_commit_queue) { return arrivals_.newest(); }

  // --- By anybody.
  std::uint64_t size() const { return arrivals_.size(); }
  std::uint64_t memory_bytes() const { return arrivals_.memory_bytes() + run_memory_.bytes(); }
  // Runs that hold together every entry with a sequence up to `up_to`, and maybe younger ones.
  std::vector<std::shared_ptr<const SortedRun>> runs(Sequence up_to) const { return runs_with(up_to)->sorted; }
  // The newest entry of that key up to `up_to`, or null.
  const Entry* find(std::uint32_t column_family, std::string_view key, Sequence up_to) const;
  // Every entry in order of arrival, the first `size()` of this moment.
  void for_each(const std::function<void(const Entry&)>& each) const;

 private:
  struct Runs {
    std::vector<std::shared_ptr<const SortedRun>> sorted;
    std::uint64_t entries = 0;
    EntryList::Place behind;  // the last of them
  };
  std::shared_ptr<const Runs> now() const;
  std::shared_ptr<const Runs> runs_with(Sequence up_to) const;
  // Of the arrivals from that place on, which it moves behind them.
  std::shared_ptr<const SortedRun> sort_arrivals(EntryList::Place* from, std::uint64_t count) const;

  const EntryOrder order_;
  EntryList arrivals_;
  mutable MemoryCount run_memory_;  // of the sorted runs

  mutable Mutex sorting_mutex_;  // one sorts at a time; who finds what it needs in runs_ does not wait for it
  mutable Mutex runs_mutex_;
  mutable std::shared_ptr<const Runs> runs_ GUARDED_BY(runs_mutex_);
};

}  // namespace spillway::spill
