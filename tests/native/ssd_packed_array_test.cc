#include <gtest/gtest.h>

#include <vector>

#include "ssd/structures/packed_array.h"
#include "ssd/structures/random.h"

namespace spillway::ssd {
namespace {

class PackedArrayOfBits : public testing::TestWithParam<std::uint32_t> {};

TEST_P(PackedArrayOfBits, HoldsWhatAnArrayOfWordsHolds) {
  const std::uint32_t largest = GetParam() == 32 ? ~std::uint32_t{0} : (std::uint32_t{1} << GetParam()) - 1;
  constexpr std::size_t kSize = 1001;
  PackedArray packed(kSize, largest);
  std::vector<std::uint32_t> words(kSize, 0);
  Random random(mix(GetParam()));
  for (int step = 0; step < 20'000; ++step) {
    const std::size_t i = random.below(kSize);
    words[i] = static_cast<std::uint32_t>(random.below(std::uint64_t{largest} + 1));
    packed.set(i, words[i]);
  }
  for (std::size_t i = 0; i < kSize; ++i) ASSERT_EQ(packed[i], words[i]) << "number " << i;
}

INSTANTIATE_TEST_SUITE_P(Widths, PackedArrayOfBits, testing::Values(1, 7, 8, 27, 28, 31, 32));

TEST(PackedArray, StartsAsZerosAndTakesNoMoreThanItNeeds) {
  const PackedArray packed(1'000'000, 100'000'000);  // 27 bits
  EXPECT_EQ(packed[0], 0U);
  EXPECT_EQ(packed[999'999], 0U);
  EXPECT_EQ(packed.bytes(), 1'000'000U * 27 / 8 + 8);
}

}  // namespace
}  // namespace spillway::ssd
