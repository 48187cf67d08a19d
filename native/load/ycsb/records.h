// A record as a key-value pair: its key from its number, its value from its fields.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "load/ycsb/properties.h"

namespace spillway::load::ycsb {

// YCSB's hash of a number: 64-bit FNV-1a (Fowler, Noll and Vo) over its eight bytes, least significant first, as the
// absolute value of a signed number. The most negative number has none and gives 2^63.
std::uint64_t fnv_hash(std::uint64_t number);

// Makes keys: keyprefix, then the number's hash (or with ordered inserts the number itself) in decimal, padded with
// zeros to `zeropadding` digits. Key lengths differ; hashed keys mostly have 23 bytes. The buffer is reused: a key is
// valid until the next one is made.
class KeyNames {
 public:
  explicit KeyNames(const Properties& properties);

  std::string_view key(std::uint64_t record);
  // The length of key(record), without making it.
  std::uint64_t key_bytes(std::uint64_t record) const;

 private:
  std::uint64_t printed(std::uint64_t record) const { return hashed_ ? fnv_hash(record) : record; }

  bool hashed_;
  std::uint32_t padding_;
  std::size_t prefix_bytes_;
  std::string bytes_;
};

// The mean size of a value, including the names and lengths of its layout. As exact as Lengths::mean().
double mean_value_bytes(const Properties& properties);

}  // namespace spillway::load::ycsb
