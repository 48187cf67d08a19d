// RocksDB's log and the spill store's log after a crash: what is replayed is a prefix of one order (T26).
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
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

TEST(MainOrder, ACompactionThatIsNoLongerWantedIsNotHeld) {
  MainOrder order;
  order.let_compactions_run();  // as when the database is open
  std::atomic<bool> is_wanted{true};
  EXPECT_TRUE(order.await_compactions(&is_wanted));
  order.hold_compactions(MainOrder::Until::note_taken);
  auto held = std::async(std::launch::async, [&] { return order.await_compactions(&is_wanted); });
  EXPECT_EQ(held.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  is_wanted = false;
  EXPECT_EQ(held.wait_for(std::chrono::seconds(30)), std::future_status::ready);
  EXPECT_FALSE(held.get());
  EXPECT_FALSE(order.await_compactions(&is_wanted));
  is_wanted = true;
  held = std::async(std::launch::async, [&] { return order.await_compactions(&is_wanted); });
  order.let_compactions_run(MainOrder::Until::note_taken);
  EXPECT_TRUE(held.get());
}

}  // namespace
}  // namespace spillway::spill
