// How a generation lies in a key-value namespace: cut into pairs, whose keys say where each begins.
//
//   key    generation | position, 8 bytes each with the highest first, so that the drive's order is the store's
//   value  records, each behind a frame: length u32 | CRC-32C u32 of generation, offset, length and the record; or a
//          piece of one that is longer than a pair
//
// A pair's bytes have positions from a multiple of the pair's size on, whether it is full or not; a record's offset is
// the position of its frame. One that is longer than a pair has its pairs for itself, and the key of its i-th pair,
// from 0, is i further: where no record begins, and no pair of another record lies, so that what is read beyond a
// record is never another's.
#pragma once

#include <rocksdb/slice.h>
#include <rocksdb/status.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "device/kv/kv_namespace.h"
#include "spill/store/store.h"

namespace spillway::spill {

struct Position {
  GenerationId generation = 0;
  std::uint64_t offset = 0;
  friend bool operator==(const Position&, const Position&) = default;
  friend bool operator<(const Position& a, const Position& b) {
    return a.generation != b.generation ? a.generation < b.generation : a.offset < b.offset;
  }
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

// Bytes that a drive counts in addition to the bytes of a pair.
inline constexpr std::uint64_t kPairOverheadBytes = ssd::kPairHeaderBytes + sizeof(PositionBytes);

// The header of a record, in the machine's byte order.
struct RecordFrame {
  std::uint32_t length = 0;
  std::uint32_t checksum = 0;
};
static_assert(sizeof(RecordFrame) == 8);
// REQUIRES: record.size() < 4 GiB
RecordFrame frame_of(Position where, const rocksdb::Slice& record);

inline std::uint64_t framed_bytes(std::uint64_t record_bytes) { return sizeof(RecordFrame) + record_bytes; }
inline std::uint64_t pairs_of(std::uint64_t framed_bytes, std::uint32_t pair_bytes) {
  return (framed_bytes + pair_bytes - 1) / pair_bytes;
}
// Where the i-th pair of a record of several lies, if its first is at `offset`. REQUIRES: i < pair_bytes
inline std::uint64_t offset_of_pair(std::uint64_t offset, std::uint64_t i, std::uint32_t pair_bytes) {
  return offset + i * pair_bytes + i;
}
// The most that a drive counts for it: in pairs of its own.
inline std::uint64_t stored_bytes(std::uint64_t record_bytes, std::uint32_t pair_bytes) {
  const std::uint64_t bytes = framed_bytes(record_bytes);
  return bytes + pairs_of(bytes, pair_bytes) * kPairOverheadBytes;
}

// Puts records together from pairs, which come in order.
class Assembler {
 public:
  Assembler(const Store::Each& each, std::uint32_t pair_bytes) : each_(each), pair_bytes_(pair_bytes) {}

  // Behind the last record that was whole, of its generation.
  Position end() const { return end_; }
  // A pair with this key is the next: of the same generation, or the first of a later one.
  bool wants(Position position) const;
  // It is in the middle of a record.
  bool is_inside() const { return missing_ > 0; }

  // False where the records end: a pair is missing, or is none. An error is the callback's, or Corruption: a pair is
  // there whole or not at all, so a record in it that does not fit its checksum was damaged.
  bool take(Position position, std::string_view bytes, rocksdb::Status* status);

 private:
  bool take_records(Position position, std::string_view bytes, rocksdb::Status* status);
  rocksdb::Status hand_over(std::uint64_t offset, const RecordFrame& frame, const rocksdb::Slice& record);

  const Store::Each& each_;
  const std::uint32_t pair_bytes_;
  GenerationId generation_ = 0;
  std::uint64_t next_ = 0;  // where the next pair's bytes begin
  Position end_;
  // The part of a record that has been seen, if it has several pairs.
  std::string bytes_;
  RecordFrame frame_;
  std::uint64_t begins_ = 0;
  std::uint64_t pieces_ = 0;
  std::uint64_t missing_ = 0;
};

// Says that what lies there is not what was stored.
rocksdb::Status damaged_at(Position where);

// What became of a command, for its caller; `what` names it.
rocksdb::Status status_of(const device::KvDone& done, const char* what);

}  // namespace spillway::spill
