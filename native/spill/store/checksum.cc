#include "spill/store/checksum.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace spillway::spill {
namespace {

// The state of the computation is the checksum's complement. Feeding a byte is linear in the state and the byte, over
// GF(2). So the effect of a number of zero bytes on a state is the sum of their effects on each of its bits.
using State = std::uint32_t;

constexpr State kPolynomial = 0x82f63b78;  // Castagnoli's, lowest coefficient first. Source: RFC 3720, 12.1
static_assert(std::endian::native == std::endian::little);

constexpr State after_zero_byte(State state) {
  for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1) != 0 ? kPolynomial : 0);
  return state;
}

using ByteTable = std::array<State, 256>;

// [k][b]: what byte b becomes after k further bytes of zero ("slicing by 8").
constexpr std::array<ByteTable, 8> kSlices = [] {
  std::array<ByteTable, 8> tables{};
  for (State byte = 0; byte < 256; ++byte) {
    State state = byte;
    for (ByteTable& table : tables) table[byte] = state = after_zero_byte(state);
  }
  return tables;
}();

State feed_by_table(State state, const char* bytes, std::size_t count) {
  for (; count >= 8; bytes += 8, count -= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes, 8);
    word ^= state;
    state = 0;
    for (std::size_t i = 0; i < 8; ++i) state ^= kSlices[7 - i][word >> (8 * i) & 0xff];
  }
  for (; count > 0; ++bytes, --count) {
    state = (state >> 8) ^ kSlices[0][(state ^ static_cast<unsigned char>(*bytes)) & 0xff];
  }
  return state;
}

#if defined(__x86_64__)
// The instruction takes three cycles and can begin in each cycle, so three lanes of this many bytes are computed in
// parallel and combined by the effect of a lane's length of zeros. Short enough for one round in a value of 1 KiB.
constexpr std::size_t kLaneBytes = 256;

// [k]: the effect of a lane of zeros on byte k of a state.
constexpr std::array<ByteTable, 4> kLane = [] {
  std::array<State, 32> of_bit{};
  for (std::size_t bit = 0; bit < 32; ++bit) {
    of_bit[bit] = State{1} << bit;
    for (std::size_t i = 0; i < kLaneBytes; ++i) of_bit[bit] = after_zero_byte(of_bit[bit]);
  }
  std::array<ByteTable, 4> tables{};
  for (std::size_t bit = 0; bit < 32; ++bit) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      if ((byte >> (bit % 8) & 1) != 0) tables[bit / 8][byte] ^= of_bit[bit];
    }
  }
  return tables;
}();

State after_lane(std::uint64_t state) {
  return kLane[0][state & 0xff] ^ kLane[1][state >> 8 & 0xff] ^ kLane[2][state >> 16 & 0xff] ^ kLane[3][state >> 24];
}

std::uint64_t word_at(const char* bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

__attribute__((target("sse4.2"))) State feed_by_instruction(State state, const char* bytes, std::size_t count) {
  std::uint64_t first = state;
  for (; count >= 3 * kLaneBytes; bytes += 3 * kLaneBytes, count -= 3 * kLaneBytes) {
    std::uint64_t second = 0;
    std::uint64_t third = 0;
    for (std::size_t i = 0; i < kLaneBytes; i += 8) {
      first = _mm_crc32_u64(first, word_at(bytes + i));
      second = _mm_crc32_u64(second, word_at(bytes + kLaneBytes + i));
      third = _mm_crc32_u64(third, word_at(bytes + 2 * kLaneBytes + i));
    }
    first = after_lane(after_lane(first) ^ second) ^ third;
  }
  for (; count >= 8; bytes += 8, count -= 8) first = _mm_crc32_u64(first, word_at(bytes));
  auto last = static_cast<State>(first);
  for (; count > 0; ++bytes, --count) last = _mm_crc32_u8(last, static_cast<unsigned char>(*bytes));
  return last;
}

State feed(State state, const rocksdb::Slice& bytes) {
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  return has_instruction ? feed_by_instruction(state, bytes.data(), bytes.size())
                         : feed_by_table(state, bytes.data(), bytes.size());
}
#else
State feed(State state, const rocksdb::Slice& bytes) { return feed_by_table(state, bytes.data(), bytes.size()); }
#endif

}  // namespace

std::uint32_t crc32c(std::initializer_list<rocksdb::Slice> parts, std::uint32_t before) {
  State state = ~before;
  for (const rocksdb::Slice& part : parts) state = feed(state, part);
  return ~state;
}

std::uint32_t crc32c_by_table(const rocksdb::Slice& bytes, std::uint32_t before) {
  return ~feed_by_table(~before, bytes.data(), bytes.size());
}

std::string checksum_of(std::initializer_list<rocksdb::Slice> parts) {
  const std::uint32_t sum = crc32c(parts);
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(sum >> shift));
  return bytes;
}

}  // namespace spillway::spill
