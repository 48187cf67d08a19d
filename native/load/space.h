// What a directory holds on its disk.
#pragma once

#include <cstdint>
#include <string>

namespace spillway::load {

// Bytes allocated to the regular files under `path` (st_blocks), not their lengths: RocksDB preallocates its logs.
// What cannot be read, or goes away meanwhile, counts as nothing.
std::uint64_t directory_bytes(const std::string& path);

}  // namespace spillway::load
