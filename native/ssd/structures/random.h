// The drive's own randomness: a small, seeded, portable generator, so that the same seed gives the same bytes.
#pragma once

#include <cstdint>

namespace spillway::ssd {

// One step of a counter hashed to 64 bits (the finaliser of SplitMix64; Steele, Lea and Flood 2014).
inline std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    const std::uint64_t out = mix(state_);
    state_ += 0x9E3779B97F4A7C15ULL;
    return out;
  }
  // Uniform in [0, bound). The bias of the multiply-shift is below bound / 2^64. REQUIRES: bound > 0
  std::uint64_t below(std::uint64_t bound) {
    return static_cast<std::uint64_t>((static_cast<Wide>(next()) * bound) >> 64);
  }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  std::uint64_t state() const { return state_; }

 private:
  __extension__ using Wide = unsigned __int128;
  std::uint64_t state_;
};

// A bijection of [0, size): position → value, without memory. A balanced Feistel network of four rounds over the next
// even power of two, repeated until the result is below size.
class Permutation {
 public:
  Permutation(std::uint64_t size, std::uint64_t seed) : size_(size), seed_(seed) {
    while ((std::uint64_t{1} << (2 * half_bits_)) < size) ++half_bits_;
    mask_ = (std::uint64_t{1} << half_bits_) - 1;
  }
  // REQUIRES: position < size
  std::uint64_t operator()(std::uint64_t position) const {
    do {
      position = once(position);
    } while (position >= size_);
    return position;
  }

 private:
  std::uint64_t once(std::uint64_t x) const {
    std::uint64_t left = x >> half_bits_;
    std::uint64_t right = x & mask_;
    for (std::uint64_t round = 0; round < 4; ++round) {
      const std::uint64_t key = (right + (round << 32)) ^ seed_;
      const std::uint64_t next =
          left ^ (((key * 0x9E3779B97F4A7C15ULL) ^ ((key * 0xD6E8FEB86659FD93ULL) >> 32)) >> 24 & mask_);
      left = right;
      right = next;
    }
    return (left << half_bits_) | right;
  }

  std::uint64_t size_;
  std::uint64_t seed_;
  unsigned half_bits_ = 1;
  std::uint64_t mask_ = 0;
};

}  // namespace spillway::ssd
