#include "load/ycsb/records.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "load/ycsb/lengths.h"

namespace spillway::load::ycsb {
namespace {

constexpr std::uint64_t kMostDigits = 20;  // of 2^64 in decimal

std::uint64_t digits_of(std::uint64_t number) {
  std::uint64_t digits = 1;
  while (number >= 10) {
    number /= 10;
    ++digits;
  }
  return digits;
}

}  // namespace

std::uint64_t fnv_hash(std::uint64_t number) {
  std::uint64_t hash = 0xCBF29CE484222325ULL;  // the offset basis and the prime of FNV's 64-bit form
  for (int i = 0; i < 8; ++i) {
    hash ^= number & 0xff;
    hash *= 0x100000001B3ULL;
    number >>= 8;
  }
  return hash >> 63 != 0 ? ~hash + 1 : hash;
}

KeyNames::KeyNames(const Properties& properties)
    : hashed_(properties.insertorder == InsertOrder::hashed),
      padding_(properties.zeropadding),
      prefix_bytes_(properties.keyprefix.size()),
      bytes_(properties.keyprefix) {}

std::string_view KeyNames::key(std::uint64_t record) {
  std::array<char, kMostDigits> text;
  const char* const end = std::to_chars(text.data(), text.data() + text.size(), printed(record)).ptr;
  const auto digits = static_cast<std::size_t>(end - text.data());
  bytes_.resize(prefix_bytes_);
  if (digits < padding_) bytes_.append(padding_ - digits, '0');
  bytes_.append(text.data(), digits);
  return bytes_;
}

std::uint64_t KeyNames::key_bytes(std::uint64_t record) const {
  return prefix_bytes_ + std::max<std::uint64_t>(padding_, digits_of(printed(record)));
}

double mean_value_bytes(const Properties& properties) {
  double bytes = properties.fieldcount * field_lengths(properties).mean();
  if (properties.layout == Layout::values) return bytes;
  constexpr std::uint64_t kLengthsBytes = 8;  // four for the name's length, four for the field's
  for (std::uint32_t field = 0; field < properties.fieldcount; ++field) {
    bytes += static_cast<double>(kLengthsBytes + properties.fieldnameprefix.size() + digits_of(field));
  }
  return bytes;
}

}  // namespace spillway::load::ycsb
