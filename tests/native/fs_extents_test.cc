#include <gtest/gtest.h>

#include <random>
#include <set>

#include "fs/extents.h"

namespace spillway::fs {
namespace {

TEST(ExtentList, NeighboursJoin) {
  ExtentList list;
  list.append({10, 5});
  list.append({15, 5});
  list.append({30, 2});
  EXPECT_EQ(list.extents(), (std::vector<Extent>{{10, 10}, {30, 2}}));
  EXPECT_EQ(list.pages(), 12U);
}

TEST(ExtentList, SliceCrossesExtents) {
  ExtentList list;
  list.append({10, 4});
  list.append({100, 4});
  list.append({50, 4});
  EXPECT_EQ(list.slice(2, 8), (std::vector<Extent>{{12, 2}, {100, 4}, {50, 2}}));
  EXPECT_EQ(list.slice(4, 4), (std::vector<Extent>{{100, 4}}));
  EXPECT_TRUE(list.slice(12, 0).empty());
}

TEST(ExtentList, CutReturnsTheRestInFileOrder) {
  ExtentList list;
  list.append({10, 4});
  list.append({100, 4});
  list.append({50, 4});
  EXPECT_EQ(list.cut(3), (std::vector<Extent>{{13, 1}, {100, 4}, {50, 4}}));
  EXPECT_EQ(list.pages(), 3U);
  EXPECT_EQ(list.slice(0, 3), (std::vector<Extent>{{10, 3}}));
}

TEST(FreeExtents, TakesAfterTheGivenPlaceThenWrapsAround) {
  FreeExtents space(100);
  EXPECT_EQ(space.take(10, 90), (Extent{90, 10}));
  EXPECT_EQ(space.take(10, 95), (Extent{0, 10}));
}

TEST(FreeExtents, GivesTheLongestRunWhenNoneIsLongEnough) {
  FreeExtents space(100);
  ASSERT_TRUE(space.take_exactly({20, 10}));
  ASSERT_TRUE(space.take_exactly({70, 10}));
  EXPECT_EQ(space.take(60, 0), (Extent{30, 40}));
}

TEST(FreeExtents, RefusesPagesThatAreTakenOrBeyondTheEnd) {
  FreeExtents space(100);
  ASSERT_TRUE(space.take_exactly({20, 10}));
  EXPECT_FALSE(space.take_exactly({29, 1}));
  EXPECT_FALSE(space.take_exactly({10, 11}));
  EXPECT_FALSE(space.take_exactly({95, 6}));
  EXPECT_EQ(space.free_pages(), 90U);
}

TEST(FreeExtents, CoalescesOnBothSides) {
  FreeExtents space(100);
  ASSERT_TRUE(space.take_exactly({0, 100}));
  space.give_back({10, 10});
  space.give_back({30, 10});
  EXPECT_EQ(space.runs(), 2U);
  space.give_back({20, 10});
  EXPECT_EQ(space.runs(), 1U);
  EXPECT_EQ(space.take(30, 0), (Extent{10, 30}));
}

// Against a set of pages: a taken page was free, a returned page is free again, and no other page changes.
TEST(FreeExtents, AgreesWithASetOfPages) {
  constexpr std::uint64_t kPages = 500;
  std::mt19937_64 random(7);
  FreeExtents space(kPages);
  std::set<std::uint64_t> free_pages;
  for (std::uint64_t page = 0; page < kPages; ++page) free_pages.insert(page);
  std::vector<Extent> held;
  for (int step = 0; step < 5000; ++step) {
    if (random() % 2 == 0 || held.empty()) {
      const auto extent = space.take(1 + random() % 40, random() % kPages);
      ASSERT_EQ(extent.has_value(), !free_pages.empty());
      if (!extent) continue;
      for (std::uint64_t i = 0; i < extent->pages; ++i) ASSERT_EQ(free_pages.erase(extent->first_page + i), 1U);
      held.push_back(*extent);
    } else {
      std::swap(held[random() % held.size()], held.back());
      for (std::uint64_t i = 0; i < held.back().pages; ++i) free_pages.insert(held.back().first_page + i);
      space.give_back(held.back());
      held.pop_back();
    }
    ASSERT_EQ(space.free_pages(), free_pages.size());
  }
}

}  // namespace
}  // namespace spillway::fs
