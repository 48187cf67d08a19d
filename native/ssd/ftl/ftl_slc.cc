// The SLC cache: erase blocks with one bit a cell that host data goes to first, and how it leaves them (decision 0006).
//
// The cache is a log of rows, one erase block in each plane of a die. It always has layout.slc_blocks, and as many of
// the main blocks as the fill leaves it. A cached block counts as not clean, whole, from its opening to its erase; what
// is not in use of the cache's own blocks is added to the reserve instead. So main data and cache never compete for
// flash that both count on, and a fold always gives back more than it takes.
#include <algorithm>
#include <cassert>

#include "ssd/ftl/ftl.h"

namespace spillway::ssd {

// How many erase blocks the cache may hold: fewer with every unit that has its place in the main blocks.
std::uint32_t Ftl::most_slc_blocks() const {
  const std::uint64_t main_units = mapped_units_ - blocks_.cached_units();
  if (main_units >= slc_dynamic_until_) return layout_.slc_blocks;
  const std::uint64_t left = slc_dynamic_until_ - main_units;
  return layout_.slc_blocks + static_cast<std::uint32_t>(layout_.slc_dynamic_blocks * left / slc_dynamic_until_);
}

// Does the next host step on this die go to the cache?
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
  if (!slc_rows_.empty()) fold_pages(context);  // making room may have folded it
  return true;
}

// A full cache begins anew with rows whose data was all written again or deallocated: they cost an erase and no
// program.
void Ftl::drop_dead_rows(FlashContext context) {
  while (!slc_rows_.empty() && !slc_has_room()) {
    const Row& row = slc_rows_.front();
    for (std::uint32_t i = 0; i < row.planes; ++i) {
      if (blocks_[row.blocks[i]].valid != 0) return;
    }
    fold_row(context);
  }
}

// The whole of the oldest row, at once. False when there is none.
bool Ftl::fold_row(FlashContext context) {
  if (slc_rows_.empty()) return false;
  const std::uint32_t before = slc_blocks_;
  while (slc_blocks_ == before) fold_pages(context);
  return true;
}

// Moves what is valid in the next pages of the oldest row, about as many as fill one page of a main row on each die;
// after the last of them erases the row.
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
