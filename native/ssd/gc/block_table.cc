#include "ssd/gc/block_table.h"

#include <algorithm>
#include <cassert>

namespace spillway::ssd {

BlockTable::BlockTable(const SsdConfig& config, std::uint32_t blocks)
    : policy_(config.gc.policy),
      choices_(config.gc.choices),
      dynamic_(config.wear_levelling.dynamic),
      planes_(config.geometry.planes()),
      slots_per_block_(config.geometry.units_per_block() * config.slots_per_unit()),
      blocks_(blocks),
      lists_(config.gc.policy == GcPolicy::fifo ? 1 : slots_per_block_ + 1),
      free_(config.geometry.planes()) {
  for (std::uint32_t block = 0; block < blocks; ++block) {
    blocks_[block] = Block();
    add_free(block);
  }
}

void BlockTable::add_free(std::uint32_t block) {
  auto& heap = free_[plane_of(block)];
  heap.push_back({dynamic_ ? blocks_[block].erases : free_order_++, block});
  std::push_heap(heap.begin(), heap.end());
  ++free_total_;
}

std::uint32_t BlockTable::open(std::uint32_t plane, bool slc) {
  auto& heap = free_[plane];
  assert(!heap.empty());
  std::pop_heap(heap.begin(), heap.end());
  const std::uint32_t block = heap.back().block;
  heap.pop_back();
  --free_total_;
  Block& b = blocks_[block];
  b.state = BlockState::open;
  b.slc = slc;
  b.valid = 0;
  b.programmed_pages = 0;
  return block;
}

void BlockTable::close(std::uint32_t block) {
  Block& b = blocks_[block];
  assert(b.state == BlockState::open);
  if (b.slc) {
    b.state = BlockState::cached;
    return;
  }
  b.state = BlockState::closed;
  b.changed = clock_++;
  ++closed_total_;
  if (keeps_lists()) link(block);
}

void BlockTable::begin_collecting(std::uint32_t block) {
  Block& b = blocks_[block];
  assert(b.state == BlockState::closed || b.state == BlockState::cached);
  if (b.state == BlockState::closed) {
    if (keeps_lists()) unlink(block);
    --closed_total_;
  }
  b.state = BlockState::collecting;
}

void BlockTable::erase(std::uint32_t block) {
  Block& b = blocks_[block];
  assert(b.state == BlockState::collecting && b.valid == 0);
  b.state = BlockState::free;
  b.slc = false;
  ++b.erases;
  ++erases_total_;
  erases_max_ = std::max(erases_max_, b.erases);
  add_free(block);
}

void BlockTable::remove_valid(std::uint32_t block, std::uint32_t slots) {
  Block& b = blocks_[block];
  assert(b.valid >= slots);
  if (b.state == BlockState::closed && policy_ != GcPolicy::fifo && keeps_lists()) {
    unlink(block);
    b.valid -= slots;
    b.changed = clock_++;
    link(block);
    return;
  }
  b.valid -= slots;
  cached_units_ -= b.slc ? 1 : 0;
}

void BlockTable::link(std::uint32_t block) {
  Block& b = blocks_[block];
  const std::size_t index = list_of(b);
  List& list = lists_[index];
  b.previous = list.tail;
  b.next = kNoBlock;
  (list.tail == kNoBlock ? list.head : blocks_[list.tail].next) = block;
  list.tail = block;
  first_list_ = std::min(first_list_, static_cast<std::uint32_t>(index));
}

void BlockTable::unlink(std::uint32_t block) {
  const Block& b = blocks_[block];
  List& list = lists_[list_of(b)];
  (b.previous == kNoBlock ? list.head : blocks_[b.previous].next) = b.next;
  (b.next == kNoBlock ? list.tail : blocks_[b.next].previous) = b.previous;
}

void BlockTable::rebuild(const std::vector<std::uint32_t>& closed_in_order) {
  for (auto& heap : free_) heap.clear();
  for (auto& list : lists_) list = List();
  free_total_ = 0;
  closed_total_ = 0;
  erases_total_ = 0;
  erases_max_ = 0;
  first_list_ = 0;
  cached_units_ = 0;
  for (std::uint32_t block = 0; block < size(); ++block) {
    erases_total_ += blocks_[block].erases;
    erases_max_ = std::max(erases_max_, blocks_[block].erases);
    if (blocks_[block].state == BlockState::free) add_free(block);
    if (blocks_[block].slc) cached_units_ += blocks_[block].valid;
  }
  for (const std::uint32_t block : closed_in_order) {
    ++closed_total_;
    if (keeps_lists()) link(block);
  }
}

std::vector<std::uint32_t> BlockTable::closed_in_order() const {
  std::vector<std::uint32_t> order;
  order.reserve(closed_total_);
  if (!keeps_lists()) {
    for (std::uint32_t block = 0; block < size(); ++block) {
      if (blocks_[block].state == BlockState::closed) order.push_back(block);
    }
    return order;
  }
  for (const auto& list : lists_) {
    for (std::uint32_t block = list.head; block != kNoBlock; block = blocks_[block].next) order.push_back(block);
  }
  return order;
}

}  // namespace spillway::ssd
