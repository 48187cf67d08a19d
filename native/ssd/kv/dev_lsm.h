// The log-structured merge tree inside a key-value namespace (K16): its state, without its timing.
//
//   put, remove → memtable (DRAM) → immutable memtable → flush → sorted run on flash → compaction → larger run
//
// A run is sorted by key and packed: pairs are contiguous, in whole mapping units of the namespace. One index in DRAM
// has the newest version of each key. Versions that are not in the index are garbage, and a run with nothing but
// garbage is freed. A real drive has an index in each run and reads flash for it; docs/BIAS.md lists this
// simplification.
//
// KvController writes the runs to flash. This class reserves the flash for them, so everything in DRAM can be written.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ssd/interface/config.h"
#include "ssd/interface/kv_command.h"
#include "ssd/kv/unit_allocator.h"

namespace spillway::ssd {

class DevLsm {
 public:
  using RunId = std::uint32_t;

  // Sorted by key, except in the memtable. A tombstone represents a removal: it hides older versions.
  struct Item {
    KvKey key;
    std::uint32_t value_bytes = 0;
    std::uint64_t offset = 0;  // in the run's bytes
    bool tombstone = false;

    std::uint64_t stored_bytes() const { return std::uint64_t{kPairHeaderBytes} + key.size + value_bytes; }
  };
  enum class RunState : std::uint8_t {
    memtable,    // changed in place, in DRAM
    immutable,   // being flushed; in DRAM until the flush is done
    compacting,  // the output of a compaction in progress
    flash,
  };
  struct Run {
    RunId id = 0;
    RunState state = RunState::memtable;
    bool compacted_away = false;  // an input of a compaction in progress
    std::uint32_t level = 0;      // number of compactions of its data
    std::uint64_t bytes = 0;      // of its items
    std::uint64_t live = 0;       // items that the index points to
    std::uint64_t tombstones = 0;
    std::vector<Item> items;
    std::size_t processed = 0;       // items of an immutable memtable that a flush has placed or dropped
    std::size_t placed = 0;          // of those, the placed ones
    std::vector<UnitRange> extents;  // of its bytes, in order
    std::uint64_t units = 0;         // in extents
  };
  // The newest version of a key.
  struct Location {
    Run* run = nullptr;
    std::uint32_t value_bytes = 0;
    std::uint64_t position = 0;  // memtable: index of the item; else offset in the run's bytes
  };
  using Index = std::map<KvKey, Location>;

  DevLsm(const NamespacesConfig& config, std::uint32_t unit_bytes, std::uint32_t first_unit, std::uint32_t units);

  DevLsm(DevLsm&&) = default;
  DevLsm(const DevLsm&) = delete;  // the index points to runs

  // --- Look-ups
  const Index& index() const { return index_; }
  Index::const_iterator first_of(const KvRange& range) const {
    return range.after_begin ? index_.upper_bound(range.begin) : index_.lower_bound(range.begin);
  }
  bool in_dram(const Location& location) const { return location.run->state <= RunState::immutable; }
  // Appends the units that hold this pair. Extends the last of `ranges` if they follow it. REQUIRES: !in_dram
  void add_units_of(const KvKey& key, const Location& location, std::vector<UnitRange>& ranges) const;

  // The same for `part_bytes` of its value from `offset_bytes` on; none if there are no such bytes.
  void add_units_of_part(const KvKey& key, const Location& location, std::uint32_t offset_bytes,
                         std::uint32_t part_bytes, std::vector<UnitRange>& ranges) const;

  // --- Writes
  // Whether the memtable has room for `bytes` more, of pairs with their headers.
  enum class MemtableRoom : std::uint8_t { available, after_switch, none };
  MemtableRoom room_for(std::uint64_t bytes, bool is_removal) const;
  // REQUIRES: room_for() returned available
  void put(const KvPair& pair);
  // Removes the key from the index and leaves a tombstone. REQUIRES: the key is there, and room_for() its size
  void remove(const KvKey& key);
  void remove_range(const KvRange& range);

  // --- Flush
  // Makes the memtable immutable and begins a new one. REQUIRES: no immutable memtable; the memtable is not empty
  Run& switch_memtable();
  Run* immutable() { return immutable_; }
  const Run* immutable() const { return immutable_; }
  // Appends the next item of the immutable memtable to its run, or drops it if it is no longer the newest version.
  // Returns its bytes in the run. REQUIRES: some items are not processed
  std::uint64_t place_next();
  // Allocates up to `most` consecutive units to a run that is flushed or compacted, from its reservation.
  UnitRange give_units(Run& run, std::uint32_t most);
  // Units that the bytes placed so far still need; the last, partial unit counts only if `all`.
  std::uint64_t units_missing(const Run& run, bool all) const {
    return (all ? units_of(run.bytes) : run.bytes / unit_bytes_) -
           std::min(run.units, all ? units_of(run.bytes) : run.bytes / unit_bytes_);
  }
  // The whole run is on flash.
  void finish_flush();

  // --- Compaction
  // The youngest runs of one level, oldest first, if there are compaction_runs of them and flash for the result; else
  // none.
  std::vector<Run*> pick_compaction() const;
  Run& begin_compaction(const std::vector<Run*>& sources);
  // Appends an item of a source to `into` unless it is garbage. Returns its bytes there.
  std::uint64_t move_item(Run& source, const Item& item, Run& into);
  void finish_compaction(Run& into);

  const UnitAllocator& allocator() const { return allocator_; }
  // Units freed since the last call, for the caller to deallocate.
  std::vector<UnitRange> take_freed() { return std::exchange(freed_, {}); }

  // --- State and checks
  // Puts sorted pairs into an empty namespace as one run; nullptr if they do not fit. The caller writes its units.
  Run* bulk_load(const std::vector<KvPair>& pairs);
  using Visit = std::function<bool(void* bytes, std::size_t size)>;
  // REQUIRES: no compaction in progress. False: the state is truncated or inconsistent.
  bool visit_state(const Visit& visit, bool loading);
  // `is_written`: whether the unit is on flash or in the write cache. May be empty.
  std::optional<std::string> audit(const std::function<bool(std::uint32_t unit)>& is_written) const;

 private:
  void add_units(const Run& run, std::uint64_t from, std::uint64_t bytes, std::vector<UnitRange>& ranges) const;
  std::uint64_t units_of(std::uint64_t bytes) const { return (bytes + unit_bytes_ - 1) / unit_bytes_; }
  void forget(Index::iterator entry);
  void free_dead_runs();
  void free_run(std::list<Run>::iterator run);
  Run& new_run(std::list<Run>::iterator before, RunState state);
  void restart_flush();
  bool visit_run(const Visit& visit, bool loading, Run& run);
  bool visit_index(const Visit& visit, bool loading);
  std::optional<std::string> audit_runs(std::vector<std::uint8_t>& owned) const;

  const NamespacesConfig config_;
  const std::uint32_t unit_bytes_;
  const std::uint32_t first_unit_;
  const std::uint32_t units_;
  UnitAllocator allocator_;
  std::uint64_t reserved_for_flush_ = 0;  // units not yet allocated
  std::uint64_t reserved_for_compaction_ = 0;
  bool compacts_oldest_ = false;  // the oldest run is an input, so tombstones are dropped
  std::list<Run> runs_;           // oldest first, the memtable last
  Run* immutable_ = nullptr;
  RunId next_run_ = 1;
  Index index_;
  std::vector<UnitRange> freed_;
};

}  // namespace spillway::ssd
