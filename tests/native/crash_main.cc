// test_crash [--times N] [--seed S] [GoogleTest's options]: N times as many kills as `make test`, with other seeds.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>

#include "crash_harness.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view option = argv[i];
    const std::uint64_t number = std::strtoull(argv[i + 1], nullptr, 10);
    if (option == "--times" && number > 0) {
      spillway::crash::effort().times = static_cast<unsigned>(number);
    } else if (option == "--seed") {
      spillway::crash::effort().seed = number;
    }
  }
  return RUN_ALL_TESTS();
}
