// The flash translation layer: the map from logical units to flash, and garbage collection.
//
// State changes at once; flash operations take time. When a stream needs clean space, the valid units of a victim are
// remapped immediately, and the reads, programs and the erase for it are queued on the dies. So write amplification
// does not depend on timing, nothing can deadlock, and backpressure arises as in a real drive: first from full die
// queues, then from a full write cache. (docs/decisions/0003)
//
// This class is page mapping. block_mapping.h has the other schemes, on the same map and erase blocks.
//
// Data is written in *steps*: one flash page in each plane of a die, programmed together. A stream has one *row* of
// open erase blocks on each die and at most one open step. With an SLC cache (docs/decisions/0006) host writes have two
// streams, and use the cache's while that has room.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ssd/flash/flash_array.h"
#include "ssd/ftl/block_mapping.h"
#include "ssd/ftl/mapping_cache.h"
#include "ssd/gc/block_table.h"
#include "ssd/interface/config.h"
#include "ssd/interface/counters.h"
#include "ssd/structures/flat_array.h"
#include "ssd/structures/packed_array.h"
#include "ssd/structures/prefetch.h"
#include "ssd/structures/random.h"
#include "ssd/structures/ring.h"

namespace spillway::ssd {

enum class StreamId : std::uint8_t { host, relocation, mapping, slc };
inline constexpr std::size_t kStreams = 4;
inline constexpr std::size_t kMainStreams = 3;  // those without the SLC cache

class Ftl {
 public:
  static constexpr std::uint32_t kUnmapped = ~std::uint32_t{0};

  Ftl(const SsdConfig& config, const Layout& layout, Counters* counters, std::uint64_t seed);

  // --- Look-ups. `unit` is a logical mapping unit.
  std::uint32_t physical(std::uint32_t unit) const { return map_[unit] - 1; }  // kUnmapped if it has none
  // Prefetch hints before write(): the map entry, and some units later the block to which it points.
  void prefetch_entry(std::uint32_t unit) const {
    ssd::prefetch(map_.address(unit));
    if (mapping_.holds_everything()) return;
    mapping_.prefetch(unit);
    ssd::prefetch(map_.address(logical_units_ + translation_unit_of(unit)));
  }
  void prefetch_place(std::uint32_t unit) const {
    prefetch_physical(map_[unit]);
    if (mapping_.holds_everything()) return;
    prefetch_physical(map_[logical_units_ + translation_unit_of(unit)]);
  }
  // A physical address is the number of a slot: room for one mapping unit, or for one granule of it if the controller
  // compresses (ftl_compression.cc). A unit takes one or several slots, from its address on.
  std::uint32_t block_of(std::uint32_t physical) const { return physical / slots_per_block_; }
  std::uint32_t page_of(std::uint32_t physical) const { return physical % slots_per_block_ / slots_per_page_; }
  std::uint32_t plane_of(std::uint32_t physical) const { return blocks_.plane_of(block_of(physical)); }
  // Whether its program has not finished. Its data is then still in the controller.
  bool in_controller(std::uint32_t physical) const {
    return page_of(physical) >= blocks_[block_of(physical)].programmed_pages;
  }
  std::uint32_t flash_page_of(std::uint32_t physical) const { return physical / slots_per_page_; }
  std::uint32_t slots_of(std::uint32_t unit) const { return compresses_ ? slots_[unit] : 1; }  // REQUIRES: it is mapped
  bool is_compressed(std::uint32_t unit) const { return compresses_ && slots_[unit] < slots_per_unit_; }
  std::uint32_t bytes_of(std::uint32_t unit) const { return slots_of(unit) * slot_bytes_; }
  // The slots of a unit whose compressed share is this many 1/256.
  std::uint8_t slots_for(std::uint32_t compressed_share) const;
  bool compresses() const { return compresses_; }
  std::uint64_t mapped_units() const { return mapped_units_; }
  const BlockTable& blocks() const { return blocks_; }

  // --- Host writes. The caller begins a step on a die, then writes units to it one by one.
  bool host_step_open() const { return streams_[host_].open; }
  // Collects garbage until there is clean space for a step. False if collection cannot free any.
  bool ensure_clean_space(FlashContext context);
  bool can_begin_host_step(std::uint32_t die) const;
  // Begins it in the SLC cache while that has room. REQUIRES: can_begin_host_step(die) and !host_step_open()
  void begin_host_step(std::uint32_t die);
  // Whether the open step has room for this many slots. Without compression it always has.
  bool host_step_fits(std::uint32_t slots) const { return fits(streams_[host_], slots); }
  // REQUIRES: host_step_open() and host_step_fits(slots)
  void write(FlashContext context, std::uint32_t unit, std::uint32_t owner, std::uint8_t slots);
  // Pads and programs the open step.
  void pad_host_step(FlashContext context);
  std::uint64_t last_host_step() const { return host_steps_; }
  void deallocate(FlashContext context, std::uint32_t unit);

  // --- The SLC cache. Its data is folded into the main blocks, oldest rows first.
  // Whether more of the cache is in use than its watermark: the low one for an idle drive, else the high one.
  bool needs_fold(bool idle) const;
  // As many fold programs and erases are in flight as there are dies. More would only delay the host.
  bool fold_limit_reached() const { return folds_in_flight_ >= dies_; }
  // Folds the next pages of the oldest row. False if there is no clean space. REQUIRES: needs_fold()
  bool fold(FlashContext context);
  void fold_erase_done() { --folds_in_flight_; }
  bool is_slc(std::uint32_t physical) const { return blocks_[block_of(physical)].slc; }

  // --- Block and hybrid mapping, which replaces the steps above; nullptr with page mapping.
  BlockMapping* block_mapping() { return block_mapping_ ? &*block_mapping_ : nullptr; }

  // --- Mapping cache. Returns the mapping read that the caller must queue, or kNoOp.
  std::uint32_t look_up_for_read(FlashContext context, std::uint32_t unit, std::uint32_t previous_translation_unit);
  std::uint32_t translation_unit_of(std::uint32_t unit) const { return unit / entries_per_translation_unit_; }

  // A program has finished. Its pages are read from flash from now on.
  void programmed(const ProgramStep& step);

  // Called before preconditioning or saving: drops the programs of open steps from `array`. Returns the number of their
  // host units. REQUIRES: an idle array
  std::uint64_t detach_programs(FlashArray& array);

  // --- Preconditioning (no time passes)
  bool overwrite(std::uint32_t unit, std::uint8_t slots);
  void write_sequentially(std::uint32_t first, std::uint32_t count, std::uint8_t slots);
  void assume_steady(std::uint32_t count, std::uint8_t slots);
  void forget_cached_map() { mapping_.clear(); }

  // --- State. Visits every field that survives a power cycle, in a fixed order.
  bool visit_state(const std::function<bool(void* bytes, std::size_t size)>& visit, bool loading);
  std::optional<std::string> audit() const;

 private:
  friend class BlockMapping;

  struct Stream {
    std::vector<Row> rows;  // by die
    std::uint32_t next_die = 0;
    bool open = false;  // a step is being filled
    bool slc = false;   // its blocks are in SLC mode
    std::uint32_t die = 0;
    std::uint32_t used_slots = 0;                        // slots
    std::uint32_t capacity = 0;                          // slots
    std::array<std::uint32_t, kFlashCauses> by_cause{};  // of the filled slots
    std::uint32_t step = kNoStep;
  };

  void prefetch_physical(std::uint32_t entry) const {
    if (entry == 0) return;
    ssd::prefetch(&valid_.data()[(entry - 1) / 64]);
    ssd::prefetch(&blocks_[block_of(entry - 1)]);
  }
  Stream& stream(StreamId id) {
    return streams_[id == StreamId::relocation && !separate_ ? 0 : static_cast<std::size_t>(id)];
  }

  // Space
  bool collect_garbage(FlashContext context, std::uint64_t needed);
  bool collect_one(FlashContext context);
  bool anything_to_free() const;
  std::uint64_t valid_units(std::uint32_t block) const;
  std::uint64_t most_to_move(std::uint32_t block) const;
  bool may_not_pay(std::uint32_t block) const;
  std::uint64_t valid_slots() const;
  std::uint32_t least_to_move() const;
  bool fits(const Stream& s, std::uint32_t slots) const;
  void pad_unless_fits(FlashContext context, Stream& s, std::uint32_t slots, FlashCause cause);
  void relocate(FlashContext context, std::uint32_t block, FlashCause cause);
  std::uint32_t move_pages(FlashContext context, std::uint32_t block, std::uint32_t begin, std::uint32_t end,
                           FlashCause cause);
  void free_block(std::uint32_t block);
  void queue_erase(FlashContext context, std::uint32_t block, bool folded);
  void level_wear(FlashContext context);
  bool open_row(Stream& s, std::uint32_t die, std::uint32_t spare_blocks);
  bool has_free_block(std::uint32_t die, std::uint32_t spare_blocks) const;
  std::uint32_t pick_die(Stream& s);
  void begin_step(Stream& s, std::uint32_t die);
  void ensure_program(FlashContext context, Stream& s);
  void finish_step(FlashContext context, Stream& s);

  // The SLC cache
  std::uint32_t most_slc_blocks() const;
  bool slc_has_room() const { return slc_blocks_ + planes_per_die_ <= most_slc_blocks(); }
  bool next_slc_row_is_dynamic() const { return slc_has_room() && slc_blocks_ + planes_per_die_ > layout_.slc_blocks; }
  bool slc_takes(std::uint32_t die) const;
  bool only_slc() const { return layout_.slc_pages != 0 && !config_.slc_cache.bypass; }
  bool must_fold() const { return only_slc() && !slc_has_room() && !slc_rows_.empty(); }
  // Slots to keep clean: the reserve and the unused part of the SLC cache's own blocks.
  std::uint64_t reserve_units() const {
    const std::uint32_t unused = layout_.slc_blocks - std::min(layout_.slc_blocks, slc_blocks_);
    return layout_.reserve_units + std::uint64_t{unused} * slots_per_block_;
  }
  void drop_dead_rows(FlashContext context);
  bool fold_row(FlashContext context);
  void fold_pages(FlashContext context);

  // Data
  // Inline, because it runs for each unit that is written or moved. Defined in ftl.cc, as are all its callers.
  [[gnu::always_inline]] inline void place(FlashContext context, Stream& s, std::uint32_t unit, FlashCause cause,
                                           std::uint32_t read);
  void unmap(std::uint32_t unit);
  bool lies_in_a_page(std::uint32_t physical, std::size_t unit) const {
    const std::uint32_t slots = slots_of(static_cast<std::uint32_t>(unit));
    return slots > 0 && slots <= slots_per_unit_ && physical % slots_per_page_ + slots <= slots_per_page_;
  }
  bool is_valid(std::uint32_t physical) const { return (valid_[physical / 64] >> (physical % 64) & 1) != 0; }

  // The map
  bool write_translation_unit(FlashContext context, std::uint32_t translation_unit);
  std::uint32_t translation_read(FlashContext context, std::uint32_t translation_unit, ReadPurpose purpose);
  void update_map_entry(FlashContext context, std::uint32_t unit);
  void assume_steady_in_rows(std::uint32_t count);
  void store_translation_units(std::uint32_t first, std::uint32_t count);

  void write_untimed(std::uint32_t unit, std::uint8_t slots);
  std::vector<std::uint32_t> steady_valid_counts(std::uint32_t count, std::uint32_t blocks,
                                                 std::uint32_t units_per_block);
  void scatter(std::uint32_t count, const std::vector<std::uint32_t>& valid_counts, std::uint8_t slots);
  std::optional<std::string> audit_slc() const;
  std::optional<std::string> audit_open_rows(std::uint64_t& clean) const;
  bool rebuild_from_map(const std::vector<std::uint32_t>& closed);

  const SsdConfig config_;
  const Layout layout_;  // flash in slots, logical range in units
  Counters* counters_;
  const bool compresses_;
  const std::uint32_t slots_per_unit_;
  const std::uint32_t slots_per_page_;
  const std::uint32_t slots_per_block_;
  const std::uint32_t pages_per_block_;
  const std::uint32_t planes_per_die_;
  const std::uint32_t dies_;
  const std::uint32_t slot_bytes_;
  const std::uint32_t entries_per_translation_unit_;
  const std::uint32_t logical_units_;
  const bool separate_;
  // From this many units in the main blocks on, the SLC cache has no dynamic part.
  const std::uint64_t slc_dynamic_until_;
  const std::uint32_t least_gain_;  // slots that collecting a victim must free

  // Logical unit → its first slot + 1 (0: unmapped). Translation units follow the logical ones.
  PackedArray map_;
  PackedArray owner_;               // slot → logical unit; meaningful where valid
  FlatArray<std::uint64_t> valid_;  // bit per slot: a mapped unit begins there
  FlatArray<std::uint8_t> slots_;   // the number of slots of each unit; empty without compression
  BlockTable blocks_;
  MappingCache mapping_;
  std::array<Stream, kStreams> streams_;
  std::size_t host_ = 0;               // the current stream of host data: host or slc
  std::uint32_t slc_blocks_ = 0;       // in the SLC cache, open or full
  Ring<Row> slc_rows_;                 // its full rows, oldest first
  std::uint32_t fold_page_ = 0;        // next page of the oldest row to fold
  std::uint32_t folds_in_flight_ = 0;  // programs and erases
  std::uint64_t clean_slots_ = 0;      // erased and not written: free blocks and the rest of open rows
  std::uint64_t mapped_units_ = 0;
  std::uint64_t host_steps_ = 0;
  std::uint64_t erases_until_levelling_ = 0;
  bool levelling_ = false;
  Random random_;
  std::optional<BlockMapping> block_mapping_;
};

}  // namespace spillway::ssd
