// The format of a value log. Numbers are little-endian unless noted otherwise.
//
//   segment   file NNNNNN.vlog: header, records
//   header    magic 8 | number 4 | previous segment 4 | where its records end 4 | synced segment 4 | synced offset 4 |
//             CRC-32C of these 4; the log was synced up to there when the segment was made
//   record    CRC-32C 4 | kind 1 | key length varint | value length varint | key | value
//             The checksum covers the record's position and what follows it, so a record is valid only at its own
//             place. The highest bit of the kind says that the next record belongs to the same batch.
//
// LevelDB's tree stores an address in place of a value: 12 bytes with segment, offset and length of the record, each
// with its highest byte first. Source: Lu et al., WiscKey, FAST'16, section 3.2, uses 12 bytes for a value's place and
// length.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::engine::vlog {

// A place between two records of the log.
struct Position {
  std::uint32_t segment = 0;
  std::uint32_t offset = 0;
  auto operator<=>(const Position&) const = default;  // NOLINT(modernize-use-nullptr): its own 0 is meant
};

struct Address {
  Position at;
  std::uint32_t length = 0;  // of the record
  bool operator==(const Address&) const = default;
};

enum class RecordKind : std::uint8_t {
  put = 1,      // the tree has its address
  remove = 2,   // no value
  in_tree = 3,  // the tree has the value, too: it is smaller than vlog.min_value_bytes
  closing = 4,  // the log was closed here, and everything before it is synced; no key, no value
};

struct Record {
  RecordKind kind = RecordKind::put;
  bool more = false;  // the next record belongs to the same batch
  std::string_view key{};
  std::string_view value{};
};

inline constexpr std::size_t kHeaderBytes = 32;
inline constexpr std::size_t kClosingRecordBytes = 7;
inline constexpr std::size_t kAddressBytes = 12;
inline constexpr std::size_t kPositionBytes = 8;
// The length of a record is known from this many bytes at its beginning.
inline constexpr std::size_t kMostPrefixBytes = 4 + 1 + 5 + 5;

// Appends the record as it is stored at `at`. Returns its length.
std::uint32_t append_record(Position at, const Record& record, std::string* log);
std::size_t record_bytes(std::size_t key_bytes, std::size_t value_bytes);

// The length of the record that begins with `bytes`; none if there are too few bytes, or it is not a record.
std::optional<std::uint64_t> record_length(std::string_view bytes);
// The record at `at`, whose bytes begin `bytes`; it points into them. None if there is no complete record.
std::optional<Record> parse_record(Position at, std::string_view bytes);

struct Header {
  std::uint32_t number = 0;
  Position previous;  // segment 0: none
  Position synced;
};
std::string format_header(const Header& header);
std::optional<Header> parse_header(std::string_view bytes);

std::string format_position(Position position);
// REQUIRES: at least kPositionBytes
Position parse_position(std::string_view bytes);

// The tree's value for a key: an address, or a value after a byte with which no address begins.
inline constexpr std::uint32_t kMostSegments = 0xff000000;
void format_address(const Address& address, std::string* text);
inline constexpr char kInTree = '\xff';
bool is_in_tree(std::string_view held);
// None if it is not an address.
std::optional<Address> parse_address(std::string_view held);

std::string segment_name(std::uint32_t number);
// None if it is not a segment's name.
std::optional<std::uint32_t> segment_number(const std::string& name);

}  // namespace spillway::engine::vlog
