// The log-structured merge tree inside a key-value namespace (K16), without its times: what lies where.
//
//   put, remove → memtable (DRAM) → rotate → run in the making → run on flash → (compaction) → larger run on flash
//
// A run is sorted by key and packed: pairs lie one after another, in whole mapping units of the namespace. One index in
// DRAM knows the newest version of each key; versions that it does not know are garbage, and a run without anything
// newest is freed. That index is the stated simplification: a real one has an index in each run, and reads flash for
// it (docs/BIAS.md).
//
// Whoever calls it gives runs their flash and says when it is written; this class keeps the books and promises that
// everything in DRAM can always be written.
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
#include "ssd/kv/unit_space.h"

namespace spillway::ssd {

class DevLsm {
 public:
  using RunId = std::uint32_t;

  // What a run holds, in order of keys once it is not a memtable any more. A removal is a tombstone: it hides what
  // older runs have.
  struct Item {
    KvKey key;
    std::uint32_t value_bytes = 0;
    std::uint64_t offset = 0;  // in the run's bytes
    bool tombstone = false;

    std::uint64_t stored_bytes() const { return std::uint64_t{kPairHeaderBytes} + key.size + value_bytes; }
  };
  enum class RunState : std::uint8_t {
    memtable,  // still changed in place; DRAM
    rotated,   // on its way to flash, and in DRAM until it is there
    merging,   // made by compaction; what has its units already is on flash
    flash,
  };
  struct Run {
    RunId id = 0;
    RunState state = RunState::memtable;
    bool merged_away = false;  // being compacted into another
    std::uint32_t level = 0;   // compactions that its data went through
    std::uint64_t bytes = 0;   // of its items
    std::uint64_t live = 0;    // items that the index knows
    std::uint64_t tombstones = 0;
    std::vector<Item> items;
    std::size_t looked_at = 0;       // of the items of a rotated run: how many are placed or dropped,
    std::size_t kept = 0;            // and how many are placed
    std::vector<UnitRange> extents;  // of its bytes, in order
    std::uint64_t units = 0;         // in extents
  };
  // The newest version of a key.
  struct Place {
    Run* run = nullptr;
    std::uint32_t value_bytes = 0;
    std::uint64_t where = 0;  // memtable: index of the item; else offset in the run's bytes
  };
  using Index = std::map<KvKey, Place>;

  DevLsm(const NamespacesConfig& config, std::uint32_t unit_bytes, std::uint32_t first_unit, std::uint32_t units);

  DevLsm(DevLsm&&) = default;
  DevLsm(const DevLsm&) = delete;  // the index points to runs

  // --- Looking
  const Index& index() const { return index_; }
  Index::const_iterator first_of(const KvRange& range) const {
    return range.after_begin ? index_.upper_bound(range.begin) : index_.lower_bound(range.begin);
  }
  bool in_dram(const Place& place) const { return place.run->state <= RunState::rotated; }
  // Appends the units that hold this pair, merged with the last of `ranges` where they follow it. REQUIRES: !in_dram
  void add_units_of(const KvKey& key, const Place& place, std::vector<UnitRange>& ranges) const;

  // --- Changing. So many more bytes of pairs (with headers):
  enum class Room : std::uint8_t { here, after_rotation, none };
  Room room_for(std::uint64_t bytes, bool is_removal) const;
  // REQUIRES: room_for() said here
  void put(const KvPair& pair);
  // Forgets the key; a tombstone where flash still has it. REQUIRES: it is there, and room for an item of its key
  void remove(const KvKey& key);
  void remove_range(const KvRange& range);

  // --- From DRAM to flash. The memtable becomes a run in the making, and a new one is begun.
  // REQUIRES: nothing is rotated, and the memtable is not empty
  Run& rotate();
  Run* rotated() { return rotated_; }
  const Run* rotated() const { return rotated_; }
  // Gives the rotated run's next item its place behind the others, or drops it where it is not the newest any more.
  // Returns the bytes that it takes. REQUIRES: some are not looked at yet
  std::uint64_t place_next();
  // Up to `most` units in a row for a rotated or merging run, out of what was promised to it.
  UnitRange give_units(Run& run, std::uint32_t most);
  // Units of the bytes placed so far that it has not been given; without the last, partial one unless `all`.
  std::uint64_t units_missing(const Run& run, bool all) const {
    return (all ? units_of(run.bytes) : run.bytes / unit_bytes_) -
           std::min(run.units, all ? units_of(run.bytes) : run.bytes / unit_bytes_);
  }
  // All of the run is on flash.
  void finish_rotated();

  // --- Compaction. The youngest runs of one level that are enough to be merged, oldest first; none when there are
  // none, or no flash for what they come to.
  std::vector<Run*> wants_compaction() const;
  Run& begin_merge(const std::vector<Run*>& sources);
  // Moves an item of a source into `into` if it is still needed. Returns the bytes that it takes.
  std::uint64_t move_item(Run& source, const Item& item, Run& into);
  void finish_merge(Run& into);

  const UnitSpace& units() const { return space_; }
  // What became free since the last call; it is to be deallocated.
  std::vector<UnitRange> take_freed() { return std::exchange(freed_, {}); }

  // --- State and checks
  // Puts sorted pairs into an empty namespace, as one run; nothing when they do not fit. The caller writes its units.
  Run* fill(const std::vector<KvPair>& pairs);
  using Visit = std::function<bool(void* bytes, std::size_t size)>;
  // REQUIRES: nothing is being merged. False: truncated, or it contradicts itself.
  bool visit_state(const Visit& visit, bool loading);
  // `is_written`: does flash (or the way to it) hold this unit? Not asked where there is nobody to.
  std::optional<std::string> audit(const std::function<bool(std::uint32_t unit)>& is_written) const;

 private:
  std::uint64_t units_of(std::uint64_t bytes) const { return (bytes + unit_bytes_ - 1) / unit_bytes_; }
  void forget(Index::iterator entry);
  void free_dead_runs();
  void free_run(std::list<Run>::iterator run);
  Run& new_run(std::list<Run>::iterator before, RunState state);
  void begin_rotated_anew();
  bool visit_run(const Visit& visit, bool loading, Run& run);
  bool visit_index(const Visit& visit, bool loading);
  std::optional<std::string> audit_runs(std::vector<std::uint8_t>& owned) const;

  const NamespacesConfig config_;
  const std::uint32_t unit_bytes_;
  const std::uint32_t first_unit_;
  const std::uint32_t units_;
  UnitSpace space_;
  std::uint64_t promised_to_rotated_ = 0;  // units that it was not given yet
  std::uint64_t promised_to_merge_ = 0;
  bool merge_has_oldest_ = false;  // what is merged includes the oldest run: a tombstone has nothing to hide
  std::list<Run> runs_;            // oldest first; rotated and merging ones in their place, the memtable last
  Run* rotated_ = nullptr;
  RunId next_run_ = 1;
  Index index_;
  std::vector<UnitRange> freed_;
};

}  // namespace spillway::ssd
