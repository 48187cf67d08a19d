#include "load/client/pairs.h"

#include <algorithm>
#include <cmath>

#include "ssd/structures/random.h"

namespace spillway::load {
namespace {

// As large as db_bench's: much larger than compressors' windows, and small enough for a processor's second-level cache.
constexpr std::uint64_t kBufferBytes = 1U << 20;

void append_segment(std::string& bytes, std::uint64_t length, double ratio, ssd::Random& random) {
  const auto wanted = static_cast<std::uint64_t>(std::llround(ratio * static_cast<double>(length)));
  const std::uint64_t distinct = std::clamp<std::uint64_t>(wanted, 1, length);
  const std::size_t start = bytes.size();
  for (std::uint64_t i = 0; i < distinct; ++i) bytes.push_back(static_cast<char>(random.next() >> 56));
  for (std::uint64_t i = distinct; i < length; ++i) bytes.push_back(bytes[start + i % distinct]);
}

}  // namespace

ValueBuffer::ValueBuffer(const PairSpec& pairs, std::uint64_t seed, std::uint64_t segment_bytes)
    : value_bytes_(pairs.value_bytes),
      values_(std::max<std::uint64_t>(2, kBufferBytes / std::max<std::uint64_t>(1, pairs.value_bytes))) {
  ssd::Random random(seed);
  bytes_.reserve(values_ * value_bytes_);
  segment_bytes = std::clamp<std::uint64_t>(segment_bytes, 1, kMostSegmentBytes);
  const std::uint64_t segments = (value_bytes_ + segment_bytes - 1) / segment_bytes;
  for (std::uint64_t value = 0; value < values_; ++value) {
    for (std::uint64_t segment = 0; segment < segments; ++segment) {
      const std::uint64_t begin = value_bytes_ * segment / segments;
      const std::uint64_t end = value_bytes_ * (segment + 1) / segments;
      append_segment(bytes_, end - begin, pairs.compression_ratio, random);
    }
  }
}

}  // namespace spillway::load
