#include "spill/live/arena.h"

namespace spillway::spill {
namespace {

// Small, because there are many generations. Each block is twice as large as the one before it, up to the last.
// Source: guess.
constexpr std::size_t kFirstBlockBytes = std::size_t{4} << 10;
constexpr std::size_t kLastBlockBytes = std::size_t{2} << 20;

}  // namespace

Arena::~Arena() {
  in_commit_queue.assume_held();  // nobody else refers to it any more
  for (const Block& block : blocks_) HugePages<std::byte>().deallocate(block.memory, block.bytes);
}

void Arena::add_block(std::size_t least_bytes) {
  const std::size_t usual = std::min(kFirstBlockBytes << std::min<std::size_t>(blocks_.size(), 9), kLastBlockBytes);
  Block& block = blocks_.emplace_back();
  block.bytes = std::max(least_bytes, usual);
  block.memory = HugePages<std::byte>().allocate(block.bytes);
  free_ = block.memory;
  free_bytes_ = block.bytes;
  memory_bytes_.fetch_add(block.bytes, std::memory_order_relaxed);
}

}  // namespace spillway::spill
