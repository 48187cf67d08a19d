#include "spill/store/record.h"

#include <cstddef>

namespace spillway::spill {
namespace {

constexpr unsigned char kSyncFlag = 1;

void put_u64(std::string& bytes, std::uint64_t value) {
  for (int shift = 0; shift < 64; shift += 8) bytes.push_back(static_cast<char>(value >> shift));
}

std::uint64_t get_u64(const char* bytes) {
  std::uint64_t value = 0;
  for (int i = 7; i >= 0; --i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

}  // namespace

std::string encode(const RecordHeader& header) {
  std::string bytes;
  bytes.reserve(kRecordHeaderBytes);
  put_u64(bytes, header.first_sequence);
  put_u64(bytes, header.main_sequence);
  put_u64(bytes, header.main_durable);
  bytes.push_back(static_cast<char>(header.sync ? kSyncFlag : 0));
  return bytes;
}

std::optional<RecordHeader> decode_header(const rocksdb::Slice& record) {
  if (record.size() < kRecordHeaderBytes) return std::nullopt;
  const auto flags = static_cast<unsigned char>(record[kRecordHeaderBytes - 1]);
  if ((flags & ~kSyncFlag) != 0) return std::nullopt;
  return RecordHeader{.first_sequence = get_u64(record.data()),
                      .main_sequence = get_u64(record.data() + 8),
                      .main_durable = get_u64(record.data() + 16),
                      .sync = (flags & kSyncFlag) != 0};
}

}  // namespace spillway::spill
