// How a record lies in a key-value namespace: behind a header of its length, in pieces, one pair each.
#pragma once

#include <rocksdb/slice.h>
#include <rocksdb/status.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "device/kv_namespace.h"
#include "spill/store.h"

namespace spillway::spill {

// Which the pair's key says: both numbers with the highest byte first, so that the drive's order is the store's.
struct Position {
  GenerationId generation = 0;
  std::uint64_t offset = 0;
};
using PositionBytes = std::array<char, 16>;

inline PositionBytes bytes_of(Position position) {
  PositionBytes key{};
  for (std::size_t i = 0; i < 8; ++i) {
    key[i] = static_cast<char>(position.generation >> (56 - 8 * i));
    key[8 + i] = static_cast<char>(position.offset >> (56 - 8 * i));
  }
  return key;
}

inline Position position_of(std::string_view key) {
  Position position;
  for (std::size_t i = 0; i < 8; ++i) {
    position.generation = position.generation << 8 | static_cast<unsigned char>(key[i]);
    position.offset = position.offset << 8 | static_cast<unsigned char>(key[8 + i]);
  }
  return position;
}

using RecordLength = std::uint64_t;  // the header

// A byte beyond a record belongs to nobody, so that no piece of one has the position that the next record begins at.
inline std::uint64_t end_of(std::uint64_t offset, std::uint64_t record_bytes) {
  return offset + sizeof(RecordLength) + record_bytes + 1;
}

// What the drive counts for it.
inline std::uint64_t stored_bytes(std::uint64_t record_bytes, std::uint32_t piece_bytes) {
  const std::uint64_t bytes = sizeof(RecordLength) + record_bytes;
  return bytes + (bytes + piece_bytes - 1) / piece_bytes * (ssd::kPairHeaderBytes + sizeof(PositionBytes));
}

// What became of a command, for its caller; `what` names it.
rocksdb::Status status_of(const device::KvDone& done, const char* what);

}  // namespace spillway::spill
