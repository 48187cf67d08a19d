// Block and hybrid mapping: each flash page has a fixed place in an erase block, next to its logical neighbours (C15).
//
// A *row* is one erase block in each plane of a die. The logical range is divided into *super pages* of one flash page
// in each plane. Super page s is on die s % D, in logical row s / D / b of that die, at page s / D % b of the row (D
// dies, b pages in an erase block). So consecutive super pages are on consecutive dies, and each logical row belongs to
// one die. Its data is in one physical row, each super page at its own page. Erase blocks are programmed in page order,
// and a skipped page stays unwritten until the row is written again.
//
//   append         if no super page at or after this page was written, it is programmed in its place
//   block mapping  otherwise a new row is begun for the logical row, and takes super pages in order. Skipped ones are
//                  copied from the old row. The new row ends when a super page comes too late, or when another logical
//                  row of the die needs it: the rest is copied and the old row erased (a partial merge, or a switch if
//                  there was nothing to copy). Each die has at most one such row at a time.
//   hybrid         otherwise the super page goes to the logical row's log, a row that takes super pages in any order. A
//                  die has layout.log_rows of them. If all are in use, the least recently written one is merged. A log
//                  in order ends as above, any other by copying log and data to a third row (a full merge). This is
//                  BAST: Kim, Kim, Noh, Min, Cho, "A space-efficient flash translation layer for CompactFlash systems",
//                  IEEE Transactions on Consumer Electronics 48(2), 2002. There, units are pages and erase blocks;
//                  here, super pages and rows. The choice of the least recently written log is made here, not in the
//                  paper.
//
// Write amplification, for a drive that is full, of N logical rows a die and B = b x mapping units in a super page
// units each, under single-unit writes without a write cache:
//   in order      1 (a switch for each row)
//   block         uniform random: a write costs the merge of one row unless it continues the row that is open, so A is
//                 close to B: B (1 - O(1/N))
//   hybrid        uniform random, L logs a die, L < N: a log is there with probability L / N, and a log is merged for
//                 each write without one; while logs are not filled before their turn comes (b N/L >> 1),
//                 A = S + B (1 - L / N) with S units in a super page
// Copied units count as gc, units of a super page that hold no data as padding.
//
// Holds for one writer or several, with TRIM, any write cache and static wear levelling, which moves whole rows.
// Ignores the flash that holds the map itself (4 bytes per row), bad blocks, and all but the oldest unit of the write
// cache in the search for work: a busy die delays the others.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ssd/flash/flash_array.h"
#include "ssd/interface/config.h"
#include "ssd/interface/counters.h"

namespace spillway::ssd {

class Ftl;

class BlockMapping {
 public:
  // REQUIRES: `ftl` outlives this and has its map, erase blocks and counters
  BlockMapping(Ftl& ftl, const SsdConfig& config, const Layout& layout);

  // --- Host writes. A super page is opened, filled unit by unit, and completed with its earlier data.
  bool is_open() const { return host_.open; }
  // Is the super page of this unit the open one?
  bool takes(std::uint32_t unit) const {
    const Place at = place_of(unit);
    return host_.open && host_.row == at.row && host_.page == at.page;
  }
  std::uint32_t die_of(std::uint32_t unit) const { return unit / step_units_ % dies_; }
  // Opens the super page of this unit, with the merges that it needs. REQUIRES: !is_open()
  void open(FlashContext context, std::uint32_t unit);
  // The last missing unit completes the super page. False if the unit replaced an earlier write of it in the open super
  // page, which then never reaches flash. REQUIRES: takes(unit)
  bool write(FlashContext context, std::uint32_t unit, std::uint32_t owner);
  // Programs the open super page, if there is one.
  void complete(FlashContext context);

  // One separate write, without time.
  void overwrite(std::uint32_t unit);

  // As in Ftl.
  std::uint64_t detach_programs(FlashArray& array);
  bool visit_state(const std::function<bool(void* bytes, std::size_t size)>& visit, bool loading);
  std::optional<std::string> audit() const;

 private:
  struct LogicalRow {
    Row data;
    Row log;                     // or the new row of block mapping
    std::uint64_t log_used = 0;  // time of its last write, in super pages of the drive
    bool log_in_order = true;    // page i of it holds super page i
  };
  struct Place {
    std::uint32_t row = 0;  // logical
    std::uint32_t page = 0;
    std::uint32_t index = 0;  // of the unit within its super page
  };
  // A super page that is being assembled for page `to_page` of a row.
  struct Step {
    bool open = false;
    bool to_log = false;
    std::uint32_t row = 0;  // logical
    std::uint32_t page = 0;
    std::uint32_t to_page = 0;
    std::uint32_t program = kNoStep;
    std::array<std::uint32_t, kFlashCauses> by_cause{};  // units
    std::bitset<std::size_t{kMaxPlanes} * 64> has;       // units that are placed in it
  };

  Place place_of(std::uint32_t unit) const {
    const std::uint32_t super_page = unit / step_units_;
    const std::uint32_t in_die = super_page / dies_;
    return {in_die / pages_per_block_ * dies_ + super_page % dies_, in_die % pages_per_block_, unit % step_units_};
  }
  std::uint32_t first_unit(std::uint32_t row, std::uint32_t page) const {
    return ((row / dies_ * pages_per_block_ + page) * dies_ + row % dies_) * step_units_;
  }
  std::uint32_t physical(const Row& row, std::uint32_t page, std::uint32_t index) const {
    return (row.blocks[index / units_per_page_] * pages_per_block_ + page) * units_per_page_ + index % units_per_page_;
  }

  void find_room(FlashContext context, Step& step);
  void begin_log(FlashContext context, std::uint32_t row);
  void touch_log(std::uint32_t row);
  void merge(FlashContext context, std::uint32_t row);
  void copy_all(FlashContext context, std::uint32_t row, FlashCause cause);
  bool copy_page(FlashContext context, std::uint32_t row, std::uint32_t page, Row& to, FlashCause cause);
  bool take_old(FlashContext context, Step& step, const Row& to, FlashCause cause);
  void put(Step& step, const Row& to, std::uint32_t unit, std::uint32_t index);
  void ensure_program(FlashContext context, Step& step, const Row& to);
  void program(FlashContext context, Step& step, Row& to, FlashCause padding);
  Row open_row(std::uint32_t die);
  void erase_row(FlashContext context, Row& row);
  void drop_log(std::uint32_t row);
  void level_wear(FlashContext context);
  bool rebuild_logs();
  std::optional<std::string> audit_row(std::uint32_t row, std::vector<bool>& taken) const;

  Ftl& ftl_;
  const bool hybrid_;
  const std::uint32_t dies_;
  const std::uint32_t planes_per_die_;
  const std::uint32_t pages_per_block_;
  const std::uint32_t units_per_page_;
  const std::uint32_t step_units_;
  const std::uint32_t logs_per_die_;
  std::vector<LogicalRow> rows_;                              // logical row r lies on die r % D
  std::vector<std::map<std::uint64_t, std::uint32_t>> logs_;  // by die: when a log was last used → its logical row
  std::uint64_t super_pages_ = 0;                             // total written to logs
  Step host_;
};

}  // namespace spillway::ssd
