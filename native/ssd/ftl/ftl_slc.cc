// The SLC cache: erase blocks in SLC mode that take host data first, and folding of that data (decision 0006).
//
// The cache is a log of rows, one erase block in each plane of a die. It has layout.slc_blocks of its own, and main
// blocks while these hold little data. A block of the cache does not count as clean from its opening to its erase. The
// unused blocks of its own are part of the reserve. So no flash counts both for main data and for the cache, and a fold
// frees more than it takes.
#include <algorithm>
#include <cassert>

#include "ssd/ftl/ftl.h"

namespace spillway::ssd {

// The most erase blocks of the cache. It shrinks as data in the main blocks grows.
std::uint32_t Ftl::most_slc_blocks() const {
  const std::uint64_t main_units = mapped_units_ - blocks_.cached_units();
  if (main_units >= slc_dynamic_until_) return layout_.slc_blocks;
  const std::uint64_t left = slc_dynamic_until_ - main_units;
  return layout_.slc_blocks + static_cast<std::uint32_t>(layout_.slc_dynamic_blocks * left / slc_dynamic_until_);
}

// Whether the next host step on this die goes to the cache.
bool Ftl::slc_takes(std::uint32_t die) const {
  if (layout_.slc_pages == 0) return false;
  if (streams_[static_cast<std::size_t>(StreamId::slc)].rows[die].planes > 0) return true;
  if (!slc_has_room() || !has_free_block(die, 0)) return false;
  const std::uint64_t row_units = std::uint64_t{planes_per_die_} * slots_per_block_;
  return !next_slc_row_is_dynamic() || clean_slots_ >= reserve_units() + row_units;
}

bool Ftl::needs_fold(bool idle) const {
  if (slc_rows_.empty()) return false;
  const double watermark = idle ? config_.slc_cache.low_watermark : config_.slc_cache.high_watermark;
  return slc_blocks_ > watermark * most_slc_blocks();
}

bool Ftl::fold(FlashContext context) {
  assert(!slc_rows_.empty());
  if (!ensure_clean_space(context)) return false;
  if (!slc_rows_.empty()) fold_pages(context);  // ensure_clean_space() may have folded it
  return true;
}

// Erases the oldest rows of a full cache whose data was all overwritten or deallocated: no program, one erase.
void Ftl::drop_dead_rows(FlashContext context) {
  while (!slc_rows_.empty() && !slc_has_room()) {
    const Row& row = slc_rows_.front();
    for (std::uint32_t i = 0; i < row.planes; ++i) {
      if (blocks_[row.blocks[i]].valid != 0) return;
    }
    fold_row(context);
  }
}

// Folds the whole oldest row. False if there is none.
bool Ftl::fold_row(FlashContext context) {
  if (slc_rows_.empty()) return false;
  const std::uint32_t before = slc_blocks_;
  while (slc_blocks_ == before) fold_pages(context);
  return true;
}

// Relocates the valid units of the next pages of the oldest row, about one main row's page on each die. Erases the row
// after its last page.
void Ftl::fold_pages(FlashContext context) {
  const Row row = slc_rows_.front();
  const std::uint32_t until = std::min(layout_.slc_pages, fold_page_ + dies_);
  for (std::uint32_t i = 0; i < row.planes; ++i) {
    blocks_.remove_cached(row.blocks[i], move_pages(context, row.blocks[i], fold_page_, until, FlashCause::fold));
  }
  fold_page_ = until;
  if (fold_page_ < layout_.slc_pages) return;
  for (std::uint32_t i = 0; i < row.planes; ++i) {
    assert(blocks_[row.blocks[i]].valid == 0);
    blocks_.begin_collecting(row.blocks[i]);
    free_block(row.blocks[i]);
  }
  slc_rows_.pop();
  fold_page_ = 0;
  slc_blocks_ -= row.planes;
  counters_->slc_blocks_folded += row.planes;
  if (context.array == nullptr) return;
  queue_erase(context, row.blocks[0], true);
  ++folds_in_flight_;
}

}  // namespace spillway::ssd
