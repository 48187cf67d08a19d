// The set of live generations alone: what readers get while it changes.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "spill/live/live_set.h"

namespace spillway::spill {
namespace {

// Sums over the generations are formed by any thread, while commits add generations and rollbacks retire them. Each
// generation is alone in its list, so that a reader that keeps no list of its own reads one that was freed.
TEST(LiveSet, SumsAreFormedWhileGenerationsComeAndGo) {
  LiveSet live(nullptr);
  std::atomic<bool> ends{false};
  std::atomic<int> rounds{0};
  std::vector<std::thread> readers;
  readers.reserve(2);
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      while (!ends) {
        EXPECT_EQ(live.user_bytes(), 0U);
        EXPECT_GT(live.memory_bytes(), 0U);
        EXPECT_EQ(live.tally(std::nullopt).puts, 0U);
        ++rounds;
      }
    });
  }
  for (GenerationId id = 1; id <= 2000 || rounds < 100; ++id) {
    const auto generation = std::make_shared<Generation>(id, live.families(), nullptr);
    live.add(generation);
    live.retire({generation});
  }
  ends = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_FALSE(live.has_any());
}

// A view of the newest generation keeps its entries; one that was made before it does not have it.
TEST(LiveSet, EntriesAreReplacedOnlyWhereNoViewHasThem) {
  LiveSet live(nullptr);
  const auto replaces = [&] {
    const bool may = live.begin_replacing();
    if (may) live.end_replacing();
    return may;
  };
  live.add(std::make_shared<Generation>(1, live.families(), nullptr));
  EXPECT_TRUE(replaces());
  std::optional<View> first = live.view();
  EXPECT_FALSE(replaces());
  std::optional<View> copy = first;
  first.reset();
  EXPECT_FALSE(replaces()) << "a copy of the view is one";
  live.add(std::make_shared<Generation>(2, live.families(), nullptr));
  EXPECT_TRUE(replaces()) << "the view is older than the generation";
  std::optional<View> second = live.try_view([](const auto&) {});
  ASSERT_TRUE(second);
  EXPECT_FALSE(replaces());
  copy.reset();
  live.retire({live.generations()->front()});
  EXPECT_FALSE(replaces()) << "its list is another one now";
  second.reset();
  EXPECT_TRUE(replaces());
}

TEST(LiveSet, NoViewIsMadeWhileEntriesAreReplaced) {
  LiveSet live(nullptr);
  live.add(std::make_shared<Generation>(1, live.families(), nullptr));
  ASSERT_TRUE(live.begin_replacing());
  std::atomic<bool> is_made{false};
  Sequence seen = 0;
  std::thread reader([&] {
    seen = live.view().up_to;
    is_made = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(is_made);
  live.show({1, 7});
  live.end_replacing();
  reader.join();
  EXPECT_EQ(seen, 7U);
}

// Readers find one version of each key, the same at each look through one view, while a writer replaces them.
TEST(LiveSet, AViewNeverChangesWhileKeysAreOverwritten) {
  constexpr std::uint64_t kKeys = 50;
  LiveSet live(nullptr);
  live.add(std::make_shared<Generation>(1, live.families(), nullptr));
  std::atomic<bool> ends{false};
  std::atomic<int> rounds{0};
  const auto read = [&](const View& view) {
    std::vector<Sequence> found;
    for (std::uint64_t key = 0; key < kKeys; ++key) {
      const Entry* const entry = view.find(0, std::to_string(key));
      found.push_back(entry == nullptr ? 0 : entry->sequence);
      EXPECT_LE(found.back(), view.up_to);
      EXPECT_TRUE(entry == nullptr || entry->value.offset == entry->sequence);
    }
    return found;
  };
  std::vector<std::thread> readers;
  readers.reserve(2);
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      while (!ends) {
        const View view = live.view();
        const auto found = read(view);
        // Each round writes all keys, in order.
        for (std::uint64_t key = 0; key < kKeys && view.up_to >= kKeys; ++key) {
          EXPECT_EQ(found[key], view.up_to - (view.up_to - 1 - key) % kKeys);
        }
        std::this_thread::yield();
        EXPECT_EQ(read(view), found);
        ++rounds;
      }
    });
  }
  GenerationId newest = 1;
  std::uint64_t replaced = 0;
  Sequence sequence = 0;
  while (rounds < 2000 || replaced < 1000) {
    if (sequence % 9973 == 0) {
      live.add(std::make_shared<Generation>(++newest, live.families(), nullptr));
      if (newest > 4) {
        const auto oldest = live.generations()->front();
        live.retire({oldest});
        live.index().remove(*oldest);
      }
    }
    const bool may_replace = live.begin_replacing();
    replaced += may_replace ? 1 : 0;
    const auto generation = live.generations()->back();
    const std::string key = std::to_string(sequence % kKeys);
    ++sequence;
    live.index().write({.key = key, .sequence = sequence, .value = {.offset = sequence}}, *generation, may_replace);
    live.show({newest, sequence});
    if (may_replace) live.end_replacing();
    if (sequence % 64 == 0) std::this_thread::yield();
  }
  ends = true;
  for (std::thread& reader : readers) reader.join();
}

}  // namespace
}  // namespace spillway::spill
