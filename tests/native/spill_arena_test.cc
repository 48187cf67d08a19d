// Memory for entries: what is allocated is aligned, its own, and counted.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "spill/live/arena.h"

namespace spillway::spill {
namespace {

struct Piece {
  std::byte* memory;
  std::size_t bytes;
  int filled_with;
};

TEST(Arena, PiecesAreAlignedAndDoNotOverlap) {
  in_commit_queue.assume_held();
  std::mt19937_64 random(1);
  Arena arena;
  std::vector<Piece> pieces;
  std::size_t allocated = 0;
  for (int i = 0; i < 5000; ++i) {
    // Mostly keys, and some that are larger than the largest block.
    const std::size_t bytes = i % 1000 == 999 ? (std::size_t{3} << 20) + i : 1 + random() % 200;
    std::byte* const memory = arena.allocate(bytes);
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(memory) % Arena::kAlignment, 0U);
    std::memset(memory, i % 251, bytes);
    pieces.push_back({memory, bytes, i % 251});
    allocated += bytes;
    ASSERT_GE(arena.memory_bytes(), allocated);
  }
  for (const Piece& piece : pieces) {
    for (std::size_t i = 0; i < piece.bytes; ++i) {
      ASSERT_EQ(std::to_integer<int>(piece.memory[i]), piece.filled_with);
    }
  }
}

TEST(Arena, ASmallOneTakesLittle) {
  in_commit_queue.assume_held();
  Arena arena;
  EXPECT_EQ(arena.memory_bytes(), 0U);
  arena.allocate(1);
  EXPECT_EQ(arena.memory_bytes(), std::size_t{4} << 10);
}

}  // namespace
}  // namespace spillway::spill
