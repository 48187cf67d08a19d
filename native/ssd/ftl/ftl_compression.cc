// A controller that compresses: mapping units of different sizes share flash pages (C15, decision 0020).
//
// The drive has no contents, so a write command states what a compressor leaves of its data, in 1/256 (Command::
// compressed_share). With G granules in a mapping unit and n = G x units_per_page granules in a flash page, a unit of
// share c takes k = max(1, ceil(c G / 256)) granules in one flash page, so one read returns it. Units are packed in the
// order of their writes. A unit that does not fit into the rest of a page begins the next one, and the rest is padding.
// So for units of one size
//
//   NAND bytes / host bytes = units_per_page / floor(n / k)
//
// without collection. That is c, except for the rounding of k and the packing loss n mod k, at most (k - 1) / n. A page
// never holds fewer units than without compression. For collection the drive has floor(n / k) / units_per_page times
// the flash: T grows by that factor, and the closed forms hold for rho and b in units of that size.
//
// Holds for page mapping without an SLC cache. Ignores the compressor's time and metadata, deduplication, and capacity
// that some such drives return to the host.
#include <algorithm>
#include <bit>
#include <cassert>

#include "ssd/ftl/ftl.h"

namespace spillway::ssd {

std::uint8_t Ftl::slots_for(std::uint32_t compressed_share) const {
  const std::uint32_t slots = (compressed_share * slots_per_unit_ + kIncompressible - 1) / kIncompressible;
  return static_cast<std::uint8_t>(std::clamp(slots, 1U, slots_per_unit_));
}

// Whether the step has room for the slots, in one flash page.
bool Ftl::fits(const Stream& s, std::uint32_t slots) const {
  const std::uint32_t rest_of_page = slots_per_page_ - s.used_slots % slots_per_page_;
  return slots <= rest_of_page || s.used_slots + rest_of_page < s.capacity;
}

// Pads the rest of a page that is too small, and ends a step that has no other page.
void Ftl::pad_unless_fits(FlashContext context, Stream& s, std::uint32_t slots, FlashCause cause) {
  const std::uint32_t rest_of_page = slots_per_page_ - s.used_slots % slots_per_page_;
  if (!s.open || slots <= rest_of_page) return;
  s.by_cause[static_cast<std::size_t>(cause)] += rest_of_page;
  counters_->nand_bytes_padded += std::uint64_t{rest_of_page} * slot_bytes_;
  s.used_slots += rest_of_page;
  if (s.used_slots == s.capacity) finish_step(context, s);
}

std::uint64_t Ftl::valid_units(std::uint32_t block) const {
  std::uint64_t units = 0;
  const std::uint32_t end = (block + 1) * slots_per_block_;
  for (std::uint32_t at = block * slots_per_block_; at < end;) {
    const std::uint32_t count = std::min(end - at, 64 - at % 64);
    const std::uint64_t word = valid_[at / 64] >> (at % 64);
    units += static_cast<std::uint64_t>(std::popcount(count == 64 ? word : word & ((std::uint64_t{1} << count) - 1)));
    at += count;
  }
  return units;
}

// The most flash, in slots, that relocating a block's data can take: as many pages as its units would fill without
// compression, or all of its data and the largest loss at the end of each page.
std::uint64_t Ftl::most_to_move(std::uint32_t block) const {
  const std::uint64_t used_of_page = slots_per_page_ - slots_per_unit_ + 1;
  const std::uint64_t packed =
      (std::uint64_t{blocks_[block].valid} * slots_per_page_ + used_of_page - 1) / used_of_page;
  return std::min(valid_units(block) * slots_per_unit_, packed);
}

// Whether packing loss may exceed the gain of collecting the block. Data of whole units is packed without loss.
bool Ftl::may_not_pay(std::uint32_t block) const {
  const std::uint64_t move = most_to_move(block);
  return move > blocks_[block].valid && move + least_gain_ > slots_per_block_;
}

std::uint64_t Ftl::valid_slots() const {
  std::uint64_t sum = 0;
  for (std::uint32_t block = 0; block < blocks_.size(); ++block) sum += blocks_[block].valid;
  return sum;
}

// The closed block with the least to move (slow). While the map has fewer units than T has room for, some block has
// fewer units than it could hold, and moving those gains space. REQUIRES: there is a closed block
std::uint32_t Ftl::least_to_move() const {
  std::uint32_t best = kNoBlock;
  std::uint64_t least = 0;
  for (std::uint32_t block = 0; block < blocks_.size(); ++block) {
    if (blocks_[block].state != BlockState::closed) continue;
    const std::uint64_t move = most_to_move(block);
    if (best != kNoBlock && move >= least) continue;
    best = block;
    least = move;
  }
  return best;
}

}  // namespace spillway::ssd
