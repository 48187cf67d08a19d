// CRC-32C (Castagnoli) of what lies on a drive, in staging, or on its way to a reader.
//
// RocksDB's own is slow where RocksDB was built without the processor's instruction, as Debian's is: sixteen times as
// long for 4 KiB.
#pragma once

#include <rocksdb/slice.h>

#include <cstdint>
#include <initializer_list>
#include <string>

namespace spillway::spill {

// The checksum of the parts as one. `before` is the checksum of the bytes before them: crc32c({b}, crc32c({a})) ==
// crc32c({a, b}).
std::uint32_t crc32c(std::initializer_list<rocksdb::Slice> parts, std::uint32_t before = 0);
inline std::uint32_t crc32c(const rocksdb::Slice& bytes) { return crc32c({bytes}); }

// The same without the processor's instruction.
std::uint32_t crc32c_by_table(const rocksdb::Slice& bytes, std::uint32_t before = 0);

// Its 4 bytes as files have them, the highest first.
std::string checksum_of(std::initializer_list<rocksdb::Slice> parts);

}  // namespace spillway::spill
