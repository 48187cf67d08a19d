// The set of live generations alone: what readers get while it changes.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
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

}  // namespace
}  // namespace spillway::spill
