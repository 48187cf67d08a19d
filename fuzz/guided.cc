// libFuzzer's entry to the same cases.
#include <cstdio>
#include <cstdlib>

#include "ssd_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (const auto broken = spillway::fuzz::run_ssd_case(bytes, size)) {
    std::fprintf(stderr, "%s\n", broken->c_str());
    std::abort();
  }
  return 0;
}
