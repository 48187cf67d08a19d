#include <gtest/gtest.h>

#include <vector>

#include "device/emulated/queue_registry.h"

namespace spillway::device {
namespace {

struct Owner {};

struct Numbered {
  Numbered(Owner& /*owner*/, std::uint32_t given) : number(given) {}
  const std::uint32_t number;
};

std::vector<std::uint32_t> open_numbers(QueueRegistry<Numbered>& registry) {
  std::vector<std::uint32_t> numbers;
  registry.each([&](const Numbered& queue) { numbers.push_back(queue.number); });
  return numbers;
}

TEST(QueueRegistry, NumbersAreDistinctAndTheLowestFreeOneIsTakenAgain) {
  Owner owner;
  QueueRegistry<Numbered> registry;
  const auto a = registry.open(owner);
  const auto b = registry.open(owner);
  const auto c = registry.open(owner);
  EXPECT_EQ(open_numbers(registry), (std::vector<std::uint32_t>{0, 1, 2}));

  registry.close(b->number);
  registry.close(a->number);
  EXPECT_EQ(open_numbers(registry), (std::vector<std::uint32_t>{2}));
  const auto again = registry.open(owner);
  EXPECT_EQ(again->number, 0U);
  EXPECT_EQ(&registry[0], again.get());
  EXPECT_EQ(&registry[2], c.get());
  EXPECT_EQ(registry.open(owner)->number, 1U);
}

}  // namespace
}  // namespace spillway::device
