// One generation of diverted writes: its entries in memory, in the order of arrival and sorted.
//
// Entries are added in the commit queue, and never changed or removed; any thread reads them. Ordered
// views are made on the first request, of what was added since the last one, so a write pays nothing for an order that
// no reader needs. They are sorted runs, which are merged when their sizes are similar, so that n entries cost O(n log
// n) in total.
#pragma once

#include <rocksdb/slice.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "spill/live/column_families.h"
#include "spill/live/commit_role.h"
#include "spill/live/huge_pages.h"
#include "spill/live/newest_ranges.h"
#include "spill/live/segments.h"
#include "spill/store/record.h"
#include "spill/store/store.h"

namespace spillway::spill {

class Generation;

enum class Kind : std::uint8_t { put, remove };

// Where a value lies: `length` bytes from byte `from` of the record at `offset`.
struct Location {
  std::uint64_t offset = 0;
  std::uint32_t from = 0;
  std::uint32_t length = 0;
};

// An operation on one key. Lives in its generation's arena, its key right behind it.
struct Entry {
  const Generation* generation = nullptr;
  Sequence sequence = 0;
  Location value;  // of a put
  std::uint32_t column_family = 0;
  std::uint32_t key_bytes = 0;
  std::uint32_t value_checksum = 0;  // crc32c of a put's value: every read of it is held against this
  Kind kind = Kind::put;

  std::string_view key() const { return {reinterpret_cast<const char*>(this + 1), key_bytes}; }
};
static_assert(sizeof(Entry) == 48, "the index bound counts on it: the checksum lies where there was padding");

// [begin, end) of a column family was deleted: everything older, in this store and in RocksDB.
struct RangeTombstone {
  std::uint32_t column_family = 0;
  std::string begin;
  std::string end;
  Sequence sequence = 0;
};

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

// By column family, then the family's comparator, then the newest first.
class EntryOrder {
 public:
  explicit EntryOrder(const ColumnFamilies& families) : families_(&families) {}
  bool operator()(const Entry* a, const Entry* b) const { return before(*a, b->column_family, b->key(), b->sequence); }
  // Whether `entry` comes before the place of that version of that key.
  bool before(const Entry& entry, std::uint32_t column_family, std::string_view key, Sequence sequence) const;

 private:
  const ColumnFamilies* families_;
};

// Entries sorted by EntryOrder; immutable.
using SortedRun = std::vector<const Entry*>;

class Generation : public std::enable_shared_from_this<Generation> {
 public:
  // `on_last_use` is called when the last reference to a dropped one is released (the store's release).
  Generation(GenerationId id, const ColumnFamilies& families, std::function<void(GenerationId)> on_last_use);
  ~Generation();
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;

  GenerationId id() const { return id_; }

  // --- In the commit queue; sequences grow.
  const Entry* add(std::uint32_t column_family, std::string_view key, Sequence sequence, Kind kind,
                   const Location& value, std::uint32_t value_checksum = 0) REQUIRES(in_commit_queue);
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
  std::vector<std::shared_ptr<const SortedRun>> sorted_runs(Sequence up_to) const;
  // The newest entry of that key up to `up_to`, or null.
  const Entry* find(std::uint32_t column_family, std::string_view key, Sequence up_to) const;
  bool has_range_tombstones() const { return tombstone_count_.load(std::memory_order_acquire) > 0; }
  std::vector<RangeTombstone> range_tombstones() const;  // oldest first
  // The sequence of the newest range tombstone up to `up_to` that covers the key, or 0.
  Sequence covering_tombstone(std::uint32_t column_family, std::string_view key, Sequence up_to) const;

  std::uint64_t range_tombstone_count() const { return tombstone_count_.load(std::memory_order_acquire); }
  std::uint64_t entries() const { return entry_count_.load(std::memory_order_acquire); }
  std::uint64_t column_families() const { return family_count_.load(std::memory_order_relaxed); }  // that it has any of
  Tally tally(std::optional<std::uint32_t> column_family) const;                            // without one: of all
  std::uint64_t user_bytes() const { return user_bytes_.load(std::memory_order_relaxed); }  // keys and values
  std::uint64_t key_bytes() const { return key_bytes_.load(std::memory_order_relaxed); }    // of the entries
  std::uint64_t memory_bytes() const { return memory_bytes_.load(std::memory_order_relaxed); }
  Sequence last_sequence() const { return last_sequence_.load(std::memory_order_acquire); }
  // Every entry in order of arrival, the first `entries()` of this moment. Valid while the generation lives.
  void for_each(const std::function<void(const Entry&)>& each) const;

 private:
  struct Runs;
  std::byte* allocate(std::size_t bytes) REQUIRES(in_commit_queue);
  void has_some_of(std::uint32_t column_family) REQUIRES(in_commit_queue);
  std::shared_ptr<const Runs> runs() const;
  std::shared_ptr<const Runs> runs_with(Sequence up_to) const;
  std::shared_ptr<const SortedRun> sort_arrivals(std::uint64_t from, std::uint64_t to) const;

  const GenerationId id_;
  const EntryOrder order_;
  const ColumnFamilies& families_;
  const std::function<void(GenerationId)> on_last_use_;

  // A block of entries with their keys.
  struct Block {
    explicit Block(std::size_t size) : bytes(size), memory(HugePages<std::byte>().allocate(size)) {}
    Block(Block&& other) noexcept : bytes(other.bytes), memory(std::exchange(other.memory, nullptr)) {}
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;
    ~Block() {
      if (memory != nullptr) HugePages<std::byte>().deallocate(memory, bytes);
    }
    std::size_t bytes;
    std::byte* memory;
  };
  std::vector<Block> blocks_ GUARDED_BY(in_commit_queue);
  std::byte* free_ GUARDED_BY(in_commit_queue) = nullptr;  // in the last block
  std::size_t free_bytes_ GUARDED_BY(in_commit_queue) = 0;
  std::unordered_set<std::uint32_t> column_families_ GUARDED_BY(in_commit_queue);  // of everything that was added
  std::atomic<std::uint64_t> family_count_{0};

  Segments<const Entry*> arrivals_;  // the first entry_count_ of them are there to be read

  // The runs hold the first `entries` arrivals, older ones in earlier runs, each less than half the one before it.
  struct Runs {
    std::vector<std::shared_ptr<const SortedRun>> sorted;
    std::uint64_t entries = 0;
  };
  mutable Mutex sorting_mutex_;  // one sorts at a time; who finds what it needs in runs_ does not wait for it
  mutable Mutex runs_mutex_;
  mutable std::shared_ptr<const Runs> runs_ GUARDED_BY(runs_mutex_);

  mutable SharedMutex tombstones_mutex_;
  std::vector<RangeTombstone> tombstones_ GUARDED_BY(tombstones_mutex_);
  // Of all of them, by column family.
  std::unordered_map<std::uint32_t, NewestRanges> newest_ranges_ GUARDED_BY(tombstones_mutex_);

  mutable Mutex tallies_mutex_;
  std::unordered_map<std::uint32_t, Tally> tallies_ GUARDED_BY(tallies_mutex_);  // by column family

  std::atomic<std::uint64_t> entry_count_{0};
  std::atomic<std::uint64_t> user_bytes_{0};
  std::atomic<std::uint64_t> key_bytes_{0};
  mutable std::atomic<std::uint64_t> memory_bytes_{0};  // sorting for a reader takes some
  std::atomic<Sequence> last_sequence_{0};
  std::atomic<std::uint64_t> tombstone_count_{0};
  std::atomic<bool> is_dropped_{false};
};

// The generations that count, oldest first; immutable once published.
using Generations = std::vector<std::shared_ptr<Generation>>;

// What a reader sees of the spill store: these generations, up to this sequence.
struct View {
  std::shared_ptr<const Generations> generations;
  Sequence up_to = 0;

  // The newest entry of the key, or null. Its value's generation lives as long as the view.
  const Entry* find(std::uint32_t column_family, std::string_view key) const;
  // The sequence of the newest range tombstone that covers the key, or 0.
  Sequence covering_tombstone(std::uint32_t column_family, std::string_view key, const ColumnFamilies& families) const;
};

}  // namespace spillway::spill
