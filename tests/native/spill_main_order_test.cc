// RocksDB's log and the spill store's log after a crash: what is replayed is a prefix of one order (T26).
#include <gtest/gtest.h>

#include <string>

#include "spill/main_db/main_order.h"

namespace spillway::spill {
namespace {

TEST(MainOrder, ReadsTheMarkThatItWrote) {
  const auto mark = decode_mark(encode(Mark{.generation = 1ULL << 60, .sequence = 258}));
  ASSERT_TRUE(mark);
  EXPECT_EQ(mark->generation, 1ULL << 60);
  EXPECT_EQ(mark->sequence, 258U);
}

TEST(MainOrder, LeavesTheLogDataOfOthersAlone) {
  EXPECT_FALSE(decode_mark(""));
  EXPECT_FALSE(decode_mark("spillway.mark.1"));
  EXPECT_FALSE(decode_mark(std::string(encode(Mark{}).size(), 'x')));
}

TEST(MainOrder, AMarkSurvivesWithWhatItNames) {
  const Survivors survivors{.generations = {7, 8}, .last = 20};
  EXPECT_TRUE(survives({.generation = 7, .sequence = 20}, survivors));
  EXPECT_FALSE(survives({.generation = 8, .sequence = 21}, survivors));
  EXPECT_TRUE(survives({.generation = 6, .sequence = 21}, survivors)) << "it was dropped: RocksDB has it";
}

}  // namespace
}  // namespace spillway::spill
