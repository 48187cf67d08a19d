// Keys and values by number, and the ordered map against which engines are checked.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace spillway::engine {

using Model = std::map<std::string, std::string>;

inline std::string key_of(std::uint64_t number) { return "key" + std::to_string(1'000'000 + number); }

// A value that identifies its write, of a given length.
inline std::string value_of(std::uint64_t number, std::size_t bytes) {
  std::string value = std::to_string(number) + ":";
  while (value.size() < bytes) value += static_cast<char>('a' + (value.size() * 7 + number) % 26);
  return value;
}

}  // namespace spillway::engine
