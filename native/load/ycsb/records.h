// A record as a key-value pair: its key out of its number, its value out of its fields.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "load/ycsb/properties.h"

namespace spillway::load::ycsb {

// YCSB's scramble of a number: FNV-1a of 64 bits (Fowler, Noll and Vo) over its eight bytes, least significant first,
// read as a signed number without its sign. The sign of the most negative one cannot be dropped; it stays 2^63.
std::uint64_t fnv_hash(std::uint64_t number);

// Makes keys: keyprefix, then the number's hash (or with ordered inserts the number itself) in decimal, filled with
// zeros to `zeropadding` digits. So keys are of different lengths, mostly 23 bytes where they are hashed. The buffer
// is reused: a key lives until the next one is made.
class KeyNames {
 public:
  explicit KeyNames(const Properties& properties);

  std::string_view key(std::uint64_t record);
  // As long as key(record), without making it.
  std::uint64_t key_bytes(std::uint64_t record) const;

 private:
  std::uint64_t printed(std::uint64_t record) const { return hashed_ ? fnv_hash(record) : record; }

  bool hashed_;
  std::uint32_t padding_;
  std::size_t prefix_bytes_;
  std::string bytes_;
};

// The mean size of a value, with the names and lengths of its layout; exact as Lengths::mean() is.
double mean_value_bytes(const Properties& properties);

}  // namespace spillway::load::ycsb
