// Changes bytes of a file in place.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "base/file_bytes.h"

namespace spillway {

// Flips bits of a byte in place. A second call restores them.
inline void flip(const std::string& file, std::uint64_t offset, std::uint8_t bits) {
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(descriptor, 0) << file;
  std::uint8_t byte = 0;
  ASSERT_EQ(pread(descriptor, &byte, 1, static_cast<off_t>(offset)), 1) << file << " at " << offset;
  byte ^= bits;
  ASSERT_EQ(pwrite(descriptor, &byte, 1, static_cast<off_t>(offset)), 1);
  ::close(descriptor);
}

// The offset of the first `wanted` in a file, or npos.
inline std::size_t find_in(const std::string& file, const std::string& wanted) { return file_bytes(file).find(wanted); }

}  // namespace spillway
