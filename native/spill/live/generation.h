// One generation of diverted writes: its entries in memory, and what the rest of the library asks about them.
//
// Entries are added in the commit queue, and never removed; any thread reads them. A newer version of a key takes the
// place of an older one where no view can ask for that. They are sorted when a reader first asks for an order, so a
// write pays nothing for an order that no reader needs.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/mutex.h"
#include "spill/live/column_families.h"
#include "spill/live/commit_role.h"
#include "spill/live/entry.h"
#include "spill/live/memory_count.h"
#include "spill/live/range_tombstones.h"
#include "spill/live/sorted_entries.h"
#include "spill/store/store.h"

namespace spillway::spill {

// How many operations on single keys there are.
struct Tally {
  std::uint64_t puts = 0;
  std::uint64_t removes = 0;
  std::uint64_t put_bytes = 0;  // keys and values

  Tally& operator+=(const Tally& other) {
    puts += other.puts;
    removes += other.removes;
    put_bytes += other.put_bytes;
    return *this;
  }
};

class Generation : public std::enable_shared_from_this<Generation> {
 public:
  // `on_last_use` is called when the last reference to a dropped one is released. `memory`: a sum over generations,
  // which has this one's memory until then.
  Generation(GenerationId id, const ColumnFamilies& families, std::function<void(GenerationId)> on_last_use,
             MemoryCount::Sum memory = nullptr);
  ~Generation();
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;

  GenerationId id() const { return id_; }

  // --- In the commit queue; sequences grow.
  const Entry* add(std::uint32_t column_family, std::string_view key, Sequence sequence, Kind kind,
                   const Location& value, std::uint32_t value_checksum = 0) REQUIRES(in_commit_queue);
  // The same, but in the place of `older`, of the same key. REQUIRES: that is the newest of its key, and of this
  // generation; no view has it (LiveSet::begin_replacing)
  void replace(const Entry& older, Sequence sequence, Kind kind, const Location& value, std::uint32_t value_checksum)
      REQUIRES(in_commit_queue);
  void add(RangeTombstone tombstone) REQUIRES(in_commit_queue);
  void count(std::uint32_t column_family, const Tally& added) REQUIRES(in_commit_queue);  // what was added of a batch
  bool has_any_of(std::uint32_t column_family) const REQUIRES(in_commit_queue) {
    return column_families_.contains(column_family);
  }
  bool is_dropped() const { return is_dropped_.load(std::memory_order_acquire); }
  void mark_dropped() REQUIRES(in_commit_queue) {
    is_dropped_.store(true, std::memory_order_release);
  }  // the store has dropped it

  // --- By anybody.
  // Runs that hold together every entry with a sequence up to `up_to`, and maybe younger ones, which the reader skips.
  std::vector<std::shared_ptr<const SortedRun>> sorted_runs(Sequence up_to) const { return entries_.runs(up_to); }
  // The newest entry of that key up to `up_to`, or null.
  const Entry* find(std::uint32_t column_family, std::string_view key, Sequence up_to) const {
    return entries_.find(column_family, key, up_to);
  }
  bool has_range_tombstones() const { return tombstones_.size() > 0; }
  std::vector<RangeTombstone> range_tombstones() const { return tombstones_.all(); }  // oldest first
  // The sequence of the newest range tombstone up to `up_to` that covers the key, or 0.
  Sequence covering_tombstone(std::uint32_t column_family, std::string_view key, Sequence up_to) const {
    return tombstones_.covering(column_family, key, up_to);
  }

  std::uint64_t range_tombstone_count() const { return tombstones_.size(); }
  std::uint64_t entries() const { return operations_.load(std::memory_order_relaxed); }  // those replaced as well
  std::uint64_t column_families() const { return family_count_.load(std::memory_order_relaxed); }  // that it has any of
  Tally tally(std::optional<std::uint32_t> column_family) const;                            // without one: of all
  std::uint64_t user_bytes() const { return user_bytes_.load(std::memory_order_relaxed); }  // keys and values
  std::uint64_t key_bytes() const { return key_bytes_.load(std::memory_order_relaxed); }    // of all entries()
  std::uint64_t memory_bytes() const { return entries_.memory_bytes() + tombstones_.memory_bytes(); }
  Sequence last_sequence() const { return last_sequence_.load(std::memory_order_acquire); }
  // Every entry of this moment that was not replaced. Valid while the generation lives.
  void for_each(const std::function<void(const Entry&)>& each) const { entries_.for_each(each); }

 private:
  void has_some_of(std::uint32_t column_family) REQUIRES(in_commit_queue);
  void count_operation(std::size_t key_bytes, std::size_t value_bytes, Sequence sequence) REQUIRES(in_commit_queue);

  const GenerationId id_;
  const std::function<void(GenerationId)> on_last_use_;
  SortedEntries entries_;
  RangeTombstones tombstones_;

  std::unordered_set<std::uint32_t> column_families_ GUARDED_BY(in_commit_queue);  // of everything that was added
  std::atomic<std::uint64_t> family_count_{0};
  mutable Mutex tallies_mutex_;
  std::unordered_map<std::uint32_t, Tally> tallies_ GUARDED_BY(tallies_mutex_);  // by column family

  std::atomic<std::uint64_t> operations_{0};
  std::atomic<std::uint64_t> user_bytes_{0};
  std::atomic<std::uint64_t> key_bytes_{0};
  std::atomic<Sequence> last_sequence_{0};
  std::atomic<bool> is_dropped_{false};
};

// The generations that count, oldest first; immutable once published.
using Generations = std::vector<std::shared_ptr<Generation>>;

// While a view has one, no entry that it may read is replaced.
struct ViewPin {};

// What a reader sees of the spill store: these generations, up to this sequence.
struct View {
  std::shared_ptr<const Generations> generations;
  Sequence up_to = 0;
  std::shared_ptr<const ViewPin> pin = nullptr;  // null: it is asked for range tombstones alone

  // The newest entry of the key, or null. Its value's generation lives as long as the view.
  const Entry* find(std::uint32_t column_family, std::string_view key) const;
  // The sequence of the newest range tombstone that covers the key, or 0.
  Sequence covering_tombstone(std::uint32_t column_family, std::string_view key, const ColumnFamilies& families) const;
};

}  // namespace spillway::spill
