// Keys and values in the format of db_bench.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace spillway::load {

// Number and size of a run's key-value pairs.
struct PairSpec {
  std::uint32_t key_bytes = 16;
  std::uint32_t value_bytes = 100;
  double compression_ratio = 0.5;  // compressed size / size of a value, in (0, 1]
  std::uint64_t num = 1'000'000;   // keys are the numbers [0, num)

  // The ratio of a whole pair, whose key does not compress.
  double compression_ratio_of_pair() const {
    return (key_bytes + compression_ratio * value_bytes) / static_cast<double>(pair_bytes());
  }
  std::uint64_t pair_bytes() const { return std::uint64_t{key_bytes} + value_bytes; }
};

// A key has its number big-endian in its first eight bytes (in all of them if it is shorter), and '0' in the rest. So
// keys sort by number. The buffer is reused: a key is valid until the next one is made.
class KeyBuffer {
 public:
  // REQUIRES: key_bytes > 0
  explicit KeyBuffer(std::uint32_t key_bytes) : bytes_(key_bytes, '0') {}

  std::string_view key(std::uint64_t number) {
    const std::size_t digits = bytes_.size() < 8 ? bytes_.size() : 8;
    for (std::size_t i = digits; i-- > 0; number >>= 8) bytes_[i] = static_cast<char>(number & 0xff);
    return bytes_;
  }

 private:
  std::string bytes_;
};

// Values that compress to a given ratio: slices of one buffer filled beforehand, handed out in turn.
//
// A value is made of segments; each is `ratio` of its length in random bytes, repeated to its end. A segment is at
// most 4 KiB, so that the repetition lies within the window of every compressor (snappy: 64 KiB, deflate: 32 KiB).
// Segments never cross values, so the ratio holds for each value alone, whatever its neighbours are.
class ValueBuffer {
 public:
  // `segment_bytes`: longest segment; more than 4 KiB counts as 4 KiB, 0 as one byte.
  ValueBuffer(const PairSpec& pairs, std::uint64_t seed, std::uint64_t segment_bytes = kMostSegmentBytes);

  std::uint64_t values() const { return values_; }

  // REQUIRES: index < values()
  std::string_view value(std::uint64_t index) const {
    return std::string_view(bytes_).substr(index * value_bytes_, value_bytes_);
  }

 private:
  static constexpr std::uint64_t kMostSegmentBytes = 4096;

  std::uint64_t value_bytes_;
  std::uint64_t values_;
  std::string bytes_;
};

}  // namespace spillway::load
