#include "engine/vlog/record.h"

#include <array>
#include <cassert>
#include <charconv>
#include <cstdio>

#include "spill/store/checksum.h"

namespace spillway::engine::vlog {

namespace {

constexpr std::string_view kMagic = "SPWVLOG1";
constexpr std::size_t kChecksumBytes = 4;
constexpr std::uint8_t kMore = 0x80;

void put32(std::uint32_t number, std::string* text) {
  for (int shift = 0; shift < 32; shift += 8) text->push_back(static_cast<char>(number >> shift));
}

std::uint32_t get32(std::string_view bytes) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < 4; ++i) number |= std::uint32_t{static_cast<std::uint8_t>(bytes[i])} << (8 * i);
  return number;
}

void put32_high_first(std::uint32_t number, std::string* text) {
  for (int shift = 24; shift >= 0; shift -= 8) text->push_back(static_cast<char>(number >> shift));
}

std::uint32_t get32_high_first(std::string_view bytes) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < 4; ++i) number = number << 8 | static_cast<std::uint8_t>(bytes[i]);
  return number;
}

void put_varint(std::size_t number, std::string* text) {
  for (; number >= 0x80; number >>= 7) text->push_back(static_cast<char>(number | 0x80));
  text->push_back(static_cast<char>(number));
}

// Parses 32 bits, and removes the parsed bytes from `bytes`.
std::optional<std::uint32_t> get_varint(std::string_view* bytes) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < 5 && i < bytes->size(); ++i) {
    const auto byte = static_cast<std::uint8_t>((*bytes)[i]);
    number |= std::uint64_t{byte & 0x7fU} << (7 * i);
    if (byte >= 0x80) continue;
    bytes->remove_prefix(i + 1);
    if (number > UINT32_MAX) return std::nullopt;
    return static_cast<std::uint32_t>(number);
  }
  return std::nullopt;
}

std::size_t varint_bytes(std::size_t number) {
  std::size_t bytes = 1;
  for (; number >= 0x80; number >>= 7) ++bytes;
  return bytes;
}

std::uint32_t checksum(Position at, std::string_view rest) {
  const std::string place = format_position(at);
  return spill::crc32c({{place.data(), place.size()}, {rest.data(), rest.size()}});
}

// A record before its key, without the checksum.
struct Prefix {
  std::uint8_t kind = 0;
  std::uint32_t key_bytes = 0;
  std::uint32_t value_bytes = 0;
  std::size_t bytes = 0;  // including the checksum
};

std::optional<Prefix> parse_prefix(std::string_view bytes) {
  if (bytes.size() < kClosingRecordBytes) return std::nullopt;
  std::string_view rest = bytes.substr(kChecksumBytes + 1);
  const auto key_bytes = get_varint(&rest);
  const auto value_bytes = key_bytes ? get_varint(&rest) : std::nullopt;
  if (!value_bytes) return std::nullopt;
  return Prefix{.kind = static_cast<std::uint8_t>(bytes[kChecksumBytes]),
                .key_bytes = *key_bytes,
                .value_bytes = *value_bytes,
                .bytes = bytes.size() - rest.size()};
}

}  // namespace

std::size_t record_bytes(std::size_t key_bytes, std::size_t value_bytes) {
  return kChecksumBytes + 1 + varint_bytes(key_bytes) + varint_bytes(value_bytes) + key_bytes + value_bytes;
}

std::uint32_t append_record(Position at, const Record& record, std::string* log) {
  const std::size_t begin = log->size();
  log->append(kChecksumBytes, '\0');
  log->push_back(static_cast<char>(static_cast<std::uint8_t>(record.kind) | (record.more ? kMore : 0)));
  put_varint(record.key.size(), log);
  put_varint(record.value.size(), log);
  log->append(record.key);
  log->append(record.value);
  std::string sum;
  put32(checksum(at, std::string_view(*log).substr(begin + kChecksumBytes)), &sum);
  log->replace(begin, kChecksumBytes, sum);
  return static_cast<std::uint32_t>(log->size() - begin);
}

std::optional<std::uint64_t> record_length(std::string_view bytes) {
  const auto prefix = parse_prefix(bytes);
  if (!prefix) return std::nullopt;
  return prefix->bytes + std::uint64_t{prefix->key_bytes} + prefix->value_bytes;
}

std::optional<Record> parse_record(Position at, std::string_view bytes) {
  const auto prefix = parse_prefix(bytes);
  if (!prefix) return std::nullopt;
  const std::uint64_t length = prefix->bytes + std::uint64_t{prefix->key_bytes} + prefix->value_bytes;
  if (length > bytes.size()) return std::nullopt;
  if (get32(bytes) != checksum(at, bytes.substr(kChecksumBytes, length - kChecksumBytes))) return std::nullopt;
  const auto kind = static_cast<std::uint8_t>(prefix->kind & ~kMore);
  if (kind < static_cast<std::uint8_t>(RecordKind::put) || kind > static_cast<std::uint8_t>(RecordKind::closing)) {
    return std::nullopt;
  }
  return Record{.kind = static_cast<RecordKind>(kind),
                .more = (prefix->kind & kMore) != 0,
                .key = bytes.substr(prefix->bytes, prefix->key_bytes),
                .value = bytes.substr(prefix->bytes + prefix->key_bytes, prefix->value_bytes)};
}

std::string format_header(const Header& header) {
  std::string text(kMagic);
  for (const std::uint32_t number :
       {header.number, header.previous.segment, header.previous.offset, header.synced.segment, header.synced.offset}) {
    put32(number, &text);
  }
  put32(spill::crc32c(rocksdb::Slice(text)), &text);
  assert(text.size() == kHeaderBytes);
  return text;
}

std::optional<Header> parse_header(std::string_view bytes) {
  if (bytes.size() < kHeaderBytes || !bytes.starts_with(kMagic)) return std::nullopt;
  const std::size_t body = kHeaderBytes - kChecksumBytes;
  if (get32(bytes.substr(body)) != spill::crc32c(rocksdb::Slice(bytes.data(), body))) return std::nullopt;
  const auto field = [&](std::size_t i) { return get32(bytes.substr(kMagic.size() + 4 * i)); };
  return Header{.number = field(0), .previous = {field(1), field(2)}, .synced = {field(3), field(4)}};
}

std::string format_position(Position position) {
  std::string text;
  put32(position.segment, &text);
  put32(position.offset, &text);
  return text;
}

Position parse_position(std::string_view bytes) { return {get32(bytes), get32(bytes.substr(4))}; }

void format_address(const Address& address, std::string* text) {
  text->clear();
  put32_high_first(address.at.segment, text);
  put32_high_first(address.at.offset, text);
  put32_high_first(address.length, text);
}

bool is_in_tree(std::string_view held) { return !held.empty() && held.front() == kInTree; }

std::optional<Address> parse_address(std::string_view held) {
  if (held.size() != kAddressBytes || is_in_tree(held)) return std::nullopt;
  return Address{.at = {get32_high_first(held), get32_high_first(held.substr(4))},
                 .length = get32_high_first(held.substr(8))};
}

std::string segment_name(std::uint32_t number) {
  std::array<char, 24> name{};
  (void)std::snprintf(name.data(), name.size(), "%06u.vlog", number);
  return name.data();
}

std::optional<std::uint32_t> segment_number(const std::string& name) {
  std::uint32_t number = 0;
  const char* const end = name.data() + name.size();
  const auto [behind, problem] = std::from_chars(name.data(), end, number);
  if (problem != std::errc() || std::string_view(behind, end) != ".vlog" || segment_name(number) != name) {
    return std::nullopt;
  }
  return number;
}

}  // namespace spillway::engine::vlog
