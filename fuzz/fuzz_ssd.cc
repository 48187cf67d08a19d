// Runs random cases against the drive model for a stated time; a case is repeated by its seed.
//
//   fuzz_ssd --seconds 60 [--seed N]     random cases from seed N on
//   fuzz_ssd --case N                    one case
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "ssd/structures/random.h"
#include "ssd_target.h"

namespace {

std::vector<std::uint8_t> bytes_of_case(std::uint64_t seed) {
  spillway::ssd::Random random(seed);
  std::vector<std::uint8_t> bytes(200 + random.below(8000));
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random.next());
  return bytes;
}

bool run(std::uint64_t seed) {
  const auto bytes = bytes_of_case(seed);
  const auto broken = spillway::fuzz::run_ssd_case(bytes.data(), bytes.size());
  if (broken) std::printf("case %llu: %s\n", static_cast<unsigned long long>(seed), broken->c_str());
  return !broken;
}

}  // namespace

int main(int argc, char** argv) {
  double seconds = 60;
  std::uint64_t seed = 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--seconds") == 0) seconds = std::atof(argv[i + 1]);
    if (std::strcmp(argv[i], "--seed") == 0) seed = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--case") == 0) return run(std::strtoull(argv[i + 1], nullptr, 10)) ? 0 : 1;
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  std::uint64_t cases = 0;
  std::uint64_t failed = 0;
  while (std::chrono::steady_clock::now() < until && failed < 10) {
    failed += run(seed + cases) ? 0 : 1;
    ++cases;
  }
  std::printf("fuzz_ssd: %llu cases from seed %llu, %llu failed\n", static_cast<unsigned long long>(cases),
              static_cast<unsigned long long>(seed), static_cast<unsigned long long>(failed));
  return failed == 0 ? 0 : 1;
}
