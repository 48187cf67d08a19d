// What stands in a value log, byte for byte. Numbers are little-endian unless something else is said.
//
//   segment   file NNNNNN.vlog: header, records
//   header    magic 8 | number 4 | previous segment 4 | where its records end 4 | synced segment 4 | synced offset 4 |
//             CRC-32C of these 4; the log was synced up to there when the segment was made
//   record    CRC-32C 4 | kind 1 | key length varint | value length varint | key | value
//             The checksum is of the record's position and of what follows it, so that a record is one at its own
//             place only. The kind's highest bit says that the record after it belongs to the same batch.
//
// An address is what LevelDB's tree holds in place of a value: 12 bytes, segment, offset and length of the record, each
// with its highest byte first. Source: Lu et al., WiscKey, FAST'16, section 3.2, counts 12 bytes for where a value is
// and how long.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::engine::vlog {

// A place in the log, between two records.
struct Position {
  std::uint32_t segment = 0;
  std::uint32_t offset = 0;
  auto operator<=>(const Position&) const = default;
};

struct Address {
  Position at;
  std::uint32_t length = 0;  // of the record
  bool operator==(const Address&) const = default;
};

enum class RecordKind : std::uint8_t {
  put = 1,      // the tree holds its address
  remove = 2,   // no value
  in_tree = 3,  // the tree holds the value, too: it is smaller than vlog.min_value_bytes
  mark = 4,     // the log was closed here, and everything before is synced; no key, no value
};

struct Record {
  RecordKind kind = RecordKind::put;
  bool more = false;  // the next record belongs to the same batch
  std::string_view key{};
  std::string_view value{};
};

inline constexpr std::size_t kHeaderBytes = 32;
inline constexpr std::size_t kMarkBytes = 7;
inline constexpr std::size_t kAddressBytes = 12;
inline constexpr std::size_t kPositionBytes = 8;
// So many bytes at a record's beginning tell how long it is.
inline constexpr std::size_t kMostPrefixBytes = 4 + 1 + 5 + 5;

// Appends the record as it stands at `at`; returns its length.
std::uint32_t append_record(Position at, const Record& record, std::string* log);
std::size_t record_bytes(std::size_t key_bytes, std::size_t value_bytes);

// How long the record is that begins with `bytes`; none: too few bytes to tell, or not a record.
std::optional<std::uint64_t> record_length(std::string_view bytes);
// The record that stands at `at`, whose bytes are at the beginning of `bytes`; it points into them. None: there is no
// whole one.
std::optional<Record> parse_record(Position at, std::string_view bytes);

struct Header {
  std::uint32_t number = 0;
  Position previous;  // segment 0: none
  Position synced;
};
std::string format_header(const Header& header);
std::optional<Header> parse_header(std::string_view bytes);

std::string format_position(Position position);
// REQUIRES: kPositionBytes of them
Position parse_position(std::string_view bytes);

// What the tree holds for a key: an address, or a value after a byte that no address begins with.
inline constexpr std::uint32_t kMostSegments = 0xff000000;
void format_address(const Address& address, std::string* text);
inline constexpr char kInTree = '\xff';
bool is_in_tree(std::string_view held);
// None: not an address.
std::optional<Address> parse_address(std::string_view held);

std::string segment_name(std::uint32_t number);
// None: not a segment's name.
std::optional<std::uint32_t> segment_number(const std::string& name);

}  // namespace spillway::engine::vlog
