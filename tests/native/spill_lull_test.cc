// When nobody has written for a while.
#include <gtest/gtest.h>

#include "spill/rollback/lull.h"

namespace spillway::spill {
namespace {

TEST(Lull, BeginsAWhileAfterTheLastWriteAndEndsWithTheNext) {
  const Lull::Time start{std::chrono::seconds(1)};
  const auto at = [&](int ms) { return start + std::chrono::milliseconds(ms); };
  Lull lull;
  EXPECT_FALSE(lull.lasts(0, at(0))) << "what was before is not known";
  EXPECT_FALSE(lull.lasts(0, at(49)));
  EXPECT_TRUE(lull.lasts(0, at(50)));
  EXPECT_TRUE(lull.lasts(0, at(5000)));
  EXPECT_FALSE(lull.lasts(1, at(5001)));
  EXPECT_FALSE(lull.lasts(2, at(5050)));
  EXPECT_FALSE(lull.lasts(2, at(5099)));
  EXPECT_TRUE(lull.lasts(2, at(5100)));
}

}  // namespace
}  // namespace spillway::spill
