// Bytes that a directory occupies on its drive.
#pragma once

#include <cstdint>
#include <string>

namespace spillway::load {

// Bytes allocated to the regular files under `path` (st_blocks). Not their lengths, because RocksDB preallocates its
// logs. Files that cannot be read, or are deleted meanwhile, count as 0.
std::uint64_t directory_bytes(const std::string& path);

}  // namespace spillway::load
