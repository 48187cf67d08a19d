// The key index against an ordered map, with readers concurrent to the writer.
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "spill/live/key_index.h"

namespace spillway::spill {
namespace {

const ColumnFamilies& bytewise_families() {
  static const ColumnFamilies none;
  return none;
}

std::shared_ptr<Generation> make_generation(GenerationId id) {
  return std::make_shared<Generation>(id, bytewise_families(), std::function<void(GenerationId)>());
}

TEST(KeyIndex, IsAMapToTheNewestEntry) {
  KeyIndex index;
  const std::uint64_t empty_bytes = index.memory_bytes();
  std::map<std::pair<std::uint32_t, std::string>, const Entry*> model;
  std::deque<std::shared_ptr<Generation>> live;
  std::mt19937_64 random(3);
  Sequence sequence = 0;
  const auto random_key = [&] {  // of 1 to 21 bytes
    const std::string number = std::to_string(random() % 20000);
    return number.back() % 2 == 0 ? number : std::string(16, 'k') + number;
  };
  for (GenerationId id = 1; id <= 8; ++id) {
    live.push_back(make_generation(id));
    for (int i = 0; i < 6000; ++i) {
      const auto family = static_cast<std::uint32_t>(random() % 2);
      const std::string key = random_key();
      const Entry* entry = live.back()->add(family, key, ++sequence, Kind::put, {});
      index.insert(entry);
      model[{family, key}] = entry;
      const std::string other = random_key();
      const auto expected = model.find({family, other});
      const auto found = index.find(family, other);
      ASSERT_EQ(index.contains(family, other), expected != model.end());
      ASSERT_EQ(found.has_value(), expected != model.end());
      if (!found) continue;
      EXPECT_EQ(found->entry.sequence, expected->second->sequence);
      EXPECT_EQ(found->generation.get(), expected->second->generation);
    }
    EXPECT_EQ(index.size(), model.size());
    EXPECT_GE(index.memory_bytes(), empty_bytes + model.size() * sizeof(void*));
    if (id % 3 != 0) continue;
    index.remove(*live.front());
    std::erase_if(model, [&](const auto& one) { return one.second->generation == live.front().get(); });
    live.pop_front();  // the address sanitizer would find remaining pointers to it
    EXPECT_EQ(index.size(), model.size());
    for (const auto& [place, entry] : model)
      ASSERT_EQ(index.find(place.first, place.second)->entry.sequence, entry->sequence);
  }
  for (const auto& one : live) index.remove(*one);
  EXPECT_TRUE(index.empty());
  EXPECT_EQ(index.memory_bytes(), empty_bytes);
}

TEST(KeyIndex, DistinguishesFamiliesAndUnusualKeys) {
  KeyIndex index;
  EXPECT_FALSE(index.contains(0, ""));
  const auto one = make_generation(1);
  index.insert(one->add(0, "", 1, Kind::put, {}));
  index.insert(one->add(0, std::string_view("\0", 1), 2, Kind::put, {}));
  index.insert(one->add(1, "a", 3, Kind::remove, {}));
  const std::string long_key(17, 'a');
  index.insert(one->add(1, std::string_view(long_key).substr(0, 16), 4, Kind::put, {}));
  EXPECT_FALSE(index.contains(1, long_key));
  EXPECT_TRUE(index.contains(0, ""));
  EXPECT_TRUE(index.contains(0, std::string_view("\0", 1)));
  EXPECT_FALSE(index.contains(1, ""));
  EXPECT_FALSE(index.contains(0, "a"));
  EXPECT_EQ(index.find(1, "a")->entry.kind, Kind::remove);
}

TEST(KeyIndex, AFindKeepsTheGeneration) {
  KeyIndex index;
  bool released = false;
  auto one = std::make_shared<Generation>(1, bytewise_families(), [&](GenerationId) { released = true; });
  index.insert(one->add(0, "a", 1, Kind::put, {}));
  auto found = index.find(0, "a");
  index.remove(*one);
  one->mark_dropped();
  one.reset();
  EXPECT_FALSE(released);
  found.reset();
  EXPECT_TRUE(released);
}

// A generation is removed and destroyed while readers search and the writer overwrites its keys. Keys that are written
// all the time are always found.
TEST(KeyIndex, IsReadWhileGenerationsComeAndGo) {
  KeyIndex index;
  constexpr int kKeys = 200;
  std::atomic<bool> done{false};
  std::atomic<bool> ready{false};
  const auto read = [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    Sequence last = 0;
    while (!done.load()) {
      if (!ready.load()) continue;
      ASSERT_TRUE(index.contains(0, std::to_string(random() % kKeys)));
      const auto found = index.find(0, "0");
      ASSERT_TRUE(found);
      ASSERT_GE(found->entry.sequence, last);
      last = found->entry.sequence;
      ASSERT_EQ(found->generation->id(), found->entry.value.offset);
      index.find(0, "once" + std::to_string(random() % 2000));
    }
  };
  std::vector<std::thread> readers;
  for (std::uint64_t seed = 1; seed <= 2; ++seed) readers.emplace_back(read, seed);
  std::shared_ptr<Generation> older;
  std::thread remover;
  Sequence sequence = 0;
  for (GenerationId id = 1; id <= 60; ++id) {
    auto newer = make_generation(id);
    for (int key = 0; key < kKeys; ++key) {
      index.insert(newer->add(0, std::to_string(key), ++sequence, Kind::put, {.offset = id, .from = 0, .length = 0}));
      ++sequence;
      index.insert(newer->add(0, "once" + std::to_string(sequence % 2000), sequence, Kind::put, {}));
    }
    ready.store(true);
    if (remover.joinable()) remover.join();
    if (older) remover = std::thread([&index, gone = std::move(older)] { index.remove(*gone); });
    older = std::move(newer);
  }
  remover.join();
  done.store(true);
  for (std::thread& reader : readers) reader.join();
  index.remove(*older);
  EXPECT_TRUE(index.empty());
}

// What a key is: which one it is and of what length is in its bytes, so that an entry of another key is told.
std::string key_of(std::uint64_t number) { return std::to_string(number) + std::string(number % 40, '.'); }

// Against an ordered map while generations of very different sizes are added and removed, so that the tables grow and
// shrink under readers. Some hundred pairs of keys have the same bits of the hash in their slots.
TEST(KeyIndex, IsExactWhileItGrowsAndShrinks) {
  KeyIndex index;
  constexpr std::uint64_t kKeys = 60'000;
  std::atomic<bool> done{false};
  const auto read = [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::map<std::uint64_t, Sequence> seen;
    while (!done.load()) {
      const std::uint64_t number = random() % kKeys;
      const auto found = index.find(0, key_of(number));
      if (!found) continue;
      ASSERT_EQ(found->entry.value.offset, number);
      ASSERT_EQ(found->generation->id(), found->entry.value.from);
      Sequence& before = seen[number];
      ASSERT_GE(found->entry.sequence, before);
      before = found->entry.sequence;
    }
  };
  std::vector<std::thread> readers;
  for (std::uint64_t seed = 1; seed <= 2; ++seed) readers.emplace_back(read, seed);
  std::mt19937_64 random(9);
  std::map<std::uint64_t, std::pair<Sequence, GenerationId>> model;
  std::deque<std::shared_ptr<Generation>> live;
  Sequence sequence = 0;
  for (GenerationId id = 1; id <= 12; ++id) {
    std::thread remover;  // of the older half, beside the writer
    GenerationId removed = 0;
    if (id % 4 == 0) {
      std::vector<std::shared_ptr<Generation>> gone(live.begin(), live.begin() + 2);
      live.erase(live.begin(), live.begin() + 2);
      removed = gone.back()->id();
      remover = std::thread([&index, gone = std::move(gone)] {
        for (const auto& one : gone) index.remove(*one);
      });
    }
    live.push_back(make_generation(id));
    const std::uint64_t writes = id % 3 == 0 ? 100 : 15'000;
    for (std::uint64_t i = 0; i < writes; ++i) {
      const std::uint64_t number = random() % kKeys;
      index.insert(live.back()->add(0, key_of(number), ++sequence, Kind::put,
                                    {.offset = number, .from = static_cast<std::uint32_t>(id), .length = 0}));
      model[number] = {sequence, id};
    }
    if (remover.joinable()) remover.join();
    std::erase_if(model, [&](const auto& one) { return one.second.second <= removed; });
    ASSERT_EQ(index.size(), model.size());
    for (std::uint64_t number = 0; number < kKeys; ++number) {
      const auto expected = model.find(number);
      const auto found = index.find(0, key_of(number));
      ASSERT_EQ(found.has_value(), expected != model.end());
      ASSERT_EQ(found ? found->entry.sequence : 0, expected != model.end() ? expected->second.first : 0);
    }
  }
  done.store(true);
  for (std::thread& reader : readers) reader.join();
  for (const auto& one : live) index.remove(*one);
  EXPECT_TRUE(index.empty());
}

}  // namespace
}  // namespace spillway::spill
