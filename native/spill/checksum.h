// CRC-32C of what lies on a drive or in staging.
#pragma once

#include <rocksdb/slice.h>

#include <initializer_list>
#include <string>

namespace spillway::spill {

// 4 bytes, of the parts as one. RocksDB's own, which uses the processor's instruction, by the only door to it that is
// public.
std::string checksum_of(std::initializer_list<rocksdb::Slice> parts);

}  // namespace spillway::spill
